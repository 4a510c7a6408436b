//! The process: assembly and effects.

pub mod config;
pub mod instance;
pub mod plugins;
pub mod store;
