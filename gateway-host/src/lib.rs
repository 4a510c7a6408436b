//! The process: assembly and effects.

pub mod config;
pub mod handoffs;
pub mod plugins;
pub mod store;
