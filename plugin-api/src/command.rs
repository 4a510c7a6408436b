//! `on_command`: a slash command the plugin brings.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RSlice, RStr, RString, RVec};

use crate::records::{Attr, DocumentRecord};

/// A command the plugin offers.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// `^[a-z0-9_-]{1,32}$`
    pub name: RString,
    /// One line of help.
    pub about: RString,
    pub operators_only: bool,
}

/// What the hook is told.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct Invocation<'a> {
    pub name: RStr<'a>,
    /// The options as JSON.
    pub options: RStr<'a>,
    pub profile: RStr<'a>,
    pub session: RStr<'a>,
    pub user: RStr<'a>,
    pub channel: RStr<'a>,
    pub now_ms: i64,
    pub documents: RSlice<'a, DocumentRecord>,
    pub attrs: RSlice<'a, Attr>,
}

/// What the hook advises.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandAdvice {
    /// At most 2,000 characters.
    pub text: Option<String>,
    /// Ids of documents to discard.
    pub discards: Vec<String>,
}

/// [`CommandAdvice`] as it crosses.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct CommandAnswer {
    pub text: ROption<RString>,
    pub discards: RVec<RString>,
    pub attrs: RVec<Attr>,
}

impl From<CommandAdvice> for CommandAnswer {
    fn from(advice: CommandAdvice) -> Self {
        Self {
            text: advice.text.map(Into::into).into(),
            discards: advice.discards.into_iter().map(Into::into).collect(),
            attrs: RVec::new(),
        }
    }
}

impl From<CommandAnswer> for CommandAdvice {
    fn from(answer: CommandAnswer) -> Self {
        Self {
            text: answer.text.into_option().map(Into::into),
            discards: answer.discards.into_iter().map(Into::into).collect(),
        }
    }
}
