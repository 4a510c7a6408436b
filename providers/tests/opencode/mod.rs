//! What the tests of the real OpenCode share, and its permissions.

mod permissions;
pub(crate) mod world;
