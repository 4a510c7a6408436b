//! Checks against the platforms' own descriptions of themselves.

mod openapi;
mod unknown_keys;

pub(crate) use openapi::{Operation, discord};
