//! The process: assembly and effects.

pub mod config;
pub mod plugins;
pub mod store;
pub mod usage;
