//! plugin-handoff
