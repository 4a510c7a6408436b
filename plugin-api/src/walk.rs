//! `before_walk`: asked after a quota failure, before the walk goes on to the next entry.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RSlice, RString, RVec};

use crate::advice::Skip;
use crate::context::TurnView;
use crate::records::{Attr, ReasonCode};

/// What the hook is told.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct WalkContext<'a> {
    pub turn: TurnView<'a>,
    /// The position that failed.
    pub failed: u32,
    pub reason: ReasonCode,
    /// The first position not tried yet; advice about earlier ones is dropped.
    pub cursor: u32,
    /// Whether a gate has run in this turn.
    pub already_gated: bool,
    /// Whether the turn's one status line has been shown.
    pub line_shown: bool,
    /// Positions skipped earlier in this turn.
    pub memo: RSlice<'a, u32>,
}

/// What the hook advises.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WalkAdvice {
    pub skips: Vec<Skip>,
    /// Whether the plugin's gate counts as run for this turn.
    pub gated: bool,
    /// At most one line.
    pub status_line: Option<String>,
}

/// [`WalkAdvice`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct WalkAnswer {
    pub skips: RVec<Skip>,
    pub gated: bool,
    pub status_line: ROption<RString>,
    pub attrs: RVec<Attr>,
}

impl From<WalkAdvice> for WalkAnswer {
    fn from(advice: WalkAdvice) -> Self {
        Self {
            skips: advice.skips.into(),
            gated: advice.gated,
            status_line: advice.status_line.map(Into::into).into(),
            attrs: RVec::new(),
        }
    }
}

impl From<WalkAnswer> for WalkAdvice {
    fn from(answer: WalkAnswer) -> Self {
        Self {
            skips: answer.skips.into(),
            gated: answer.gated,
            status_line: answer.status_line.into_option().map(Into::into),
        }
    }
}
