//! What stands in a button's `custom_id`, where an adapter looks for it. What it means is the core's.

pub use gateway_core::action::{ActionId, ActionKind, CUSTOM_ID_MAX, NotOurs};
