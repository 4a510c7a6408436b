//! Checks against the platforms' own descriptions of themselves.

mod openapi;
mod swagger;
mod unknown_keys;

pub(crate) use openapi::{Operation, discord};
pub(crate) use swagger::{check_event, slack};
