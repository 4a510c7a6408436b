//! The facts sheet.

/// A chain joined with readings.
#[derive(Debug, Default)]
pub struct FactSheet {}
