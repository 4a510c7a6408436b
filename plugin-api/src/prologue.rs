//! `prologue`: asked once per turn, before the first attempt.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RSlice, RString, RVec};

use crate::advice::Skip;
use crate::context::TurnView;
use crate::records::{Attr, DocumentRecord};

/// What the hook is told.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct PrologueContext<'a> {
    pub turn: TurnView<'a>,
    /// The handoffs of this conversation in every state, newest first.
    pub documents: RSlice<'a, DocumentRecord>,
}

/// What the hook advises.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrologueAdvice {
    /// Positions known to be spent.
    pub skips: Vec<Skip>,
    /// Whether the plugin's gate counts as run for this turn.
    pub gated: bool,
    /// At most one line.
    pub status_line: Option<String>,
    /// Text for the user message, at most 256 KiB. For each claimed document that has a request it holds one
    /// `gateway_core::handoff::render::REQUEST_PLACEHOLDER`, in the order of `claims`; the gateway fills the requests in.
    pub inject: Option<String>,
    /// Ids of armed documents the text carries: claimed now, acked once the turn answers.
    pub claims: Vec<String>,
}

/// [`PrologueAdvice`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct PrologueAnswer {
    pub skips: RVec<Skip>,
    pub gated: bool,
    pub status_line: ROption<RString>,
    pub inject: ROption<RString>,
    pub claims: RVec<RString>,
    pub attrs: RVec<Attr>,
}

impl From<PrologueAdvice> for PrologueAnswer {
    fn from(advice: PrologueAdvice) -> Self {
        Self {
            skips: advice.skips.into(),
            gated: advice.gated,
            status_line: advice.status_line.map(Into::into).into(),
            inject: advice.inject.map(Into::into).into(),
            claims: advice.claims.into_iter().map(Into::into).collect(),
            attrs: RVec::new(),
        }
    }
}

impl From<PrologueAnswer> for PrologueAdvice {
    fn from(answer: PrologueAnswer) -> Self {
        Self {
            skips: answer.skips.into(),
            gated: answer.gated,
            status_line: answer.status_line.into_option().map(Into::into),
            inject: answer.inject.into_option().map(Into::into),
            claims: answer.claims.into_iter().map(Into::into).collect(),
        }
    }
}
