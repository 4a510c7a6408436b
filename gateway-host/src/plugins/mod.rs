//! Plugins: found, checked, loaded, asked, merged.

pub mod facts;
pub mod sheet;
