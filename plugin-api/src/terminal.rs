//! `on_terminal`: asked when nothing answered, with everything the turn did.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RSlice, RStr, RString, RVec};

use crate::context::TurnView;
use crate::records::{Attr, DocumentRecord, JournalRecord};

/// The pending request.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct RequestView<'a> {
    pub inbound: RStr<'a>,
    pub platform: RStr<'a>,
    pub address: RStr<'a>,
    /// Whole and verbatim.
    pub text: RStr<'a>,
    pub started_at_ms: i64,
    pub owner: RStr<'a>,
}

/// What the hook is told.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct TerminalContext<'a> {
    pub turn: TurnView<'a>,
    pub request: RequestView<'a>,
    pub journal: RSlice<'a, JournalRecord>,
    /// Handoffs the turn had claimed, oldest first: a second cut merges them.
    pub carried: RSlice<'a, DocumentRecord>,
    /// Short words: `rate limit`, …
    pub reason: RStr<'a>,
    /// The soonest known reset over the chain.
    pub next_reset_ms: ROption<i64>,
    /// The id a sealed handoff gets.
    pub handoff: RStr<'a>,
}

/// What the hook advises.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TerminalAdvice {
    /// The document to seal, as JSON (`gateway_core::handoff::Handoff`) with the id of the context.
    pub seal: Option<String>,
    /// Lines of the notice, a message of its own.
    pub notice: Vec<String>,
    /// Appended to the closing text; at most 2,000 characters.
    pub append: Option<String>,
}

/// [`TerminalAdvice`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct TerminalAnswer {
    pub seal: ROption<RString>,
    pub notice: RVec<RString>,
    pub append: ROption<RString>,
    pub attrs: RVec<Attr>,
}

impl From<TerminalAdvice> for TerminalAnswer {
    fn from(advice: TerminalAdvice) -> Self {
        Self {
            seal: advice.seal.map(Into::into).into(),
            notice: advice.notice.into_iter().map(Into::into).collect(),
            append: advice.append.map(Into::into).into(),
            attrs: RVec::new(),
        }
    }
}

impl From<TerminalAnswer> for TerminalAdvice {
    fn from(answer: TerminalAnswer) -> Self {
        Self {
            seal: answer.seal.into_option().map(Into::into),
            notice: answer.notice.into_iter().map(Into::into).collect(),
            append: answer.append.into_option().map(Into::into),
        }
    }
}
