//! What the host does with saved handoffs beside keeping them in the store.

pub mod mirror;
