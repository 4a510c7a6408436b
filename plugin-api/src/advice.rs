//! The one kind of advice several hooks give: leave this chain position out of the turn.

use abi_stable::StableAbi;
use abi_stable::std_types::ROption;

/// A chain position to leave out of this turn.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skip {
    pub position: u32,
    /// Until when the position is spent; absent = unknown.
    pub until_ms: ROption<i64>,
}

impl Skip {
    /// Skips a position until a known instant.
    pub fn until(position: u32, until_ms: i64) -> Self {
        Self {
            position,
            until_ms: ROption::RSome(until_ms),
        }
    }
}
