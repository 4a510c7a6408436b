//! The process: assembly and effects.

pub mod cli;
pub mod config;
pub mod logging;
pub mod plugins;
pub mod store;
