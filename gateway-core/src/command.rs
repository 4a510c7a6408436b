//! Slash commands as data. `commands` holds the table; platforms, help and the terminal derive from it.

use serde::{Deserialize, Serialize};

use crate::action::ActionKind;
use crate::ids::{ConversationId, HandoffId};
use crate::message::Audience;
use crate::route::Route;

/// One slash command as every surface shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandSpec {
    /// Without the slash; `^[a-z0-9_-]{1,32}$`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// At most 100 characters.
    pub summary: &'static str,
    /// The argument as help shows it, for example `[sub/model]`; empty = none.
    pub argument: &'static str,
    pub audience: Audience,
    pub operators_only: bool,
    /// Whether it runs while a turn of the same conversation runs.
    pub while_busy: bool,
}

/// What a command says and asks the host to do.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandReply {
    pub text: String,
    pub audience: Audience,
    pub effects: Vec<CommandEffect>,
    /// What can be pressed below it, where the platform has buttons. [`ActionKind::UndoModel`] undoes the
    /// [`CommandEffect::ChooseRoute`] of the same reply.
    pub buttons: Vec<ActionKind>,
}

/// What a command asks the host to do, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEffect {
    /// Open a new conversation on this lane.
    NewConversation,
    /// Stop the running turn.
    StopTurn,
    /// Choose the route of this conversation; `None` = back to the chain.
    ChooseRoute(Option<Route>),
    /// Make an earlier conversation of this lane its current one.
    ResumeConversation(ConversationId),
    /// Drop a handoff, of whatever lane.
    Discard(HandoffId),
    /// Take the last automatic switch back.
    SwitchBack,
    /// Switch automatic switching off (`true`) or on again for this conversation.
    PauseRouting(bool),
}
