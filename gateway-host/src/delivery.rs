//! One turn's voice: what is shown, in order, and never more than one status message. A platform that does not take an
//! op is logged and the turn goes on; the answer is in the store either way.

use std::sync::Arc;

use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, Button, ReplyOp, ReplyTarget};
use platforms::Platform;
use tracing::warn;

use crate::effects::Effects;

/// Shows what one turn has to say.
pub struct Voice {
    platform: Option<Arc<dyn Platform>>,
    target: ReplyTarget,
    turn: TurnId,
    status: Option<String>,
    /// What the person has seen of the answer: finished attempts, then the running one.
    settled: String,
    running: String,
    tools: Vec<String>,
}

impl Voice {
    /// A voice for one turn at one place.
    pub fn new(effects: &Effects, target: ReplyTarget, turn: TurnId) -> Self {
        let platform = effects.platforms.get(target.platform.as_str()).cloned();
        if platform.is_none() {
            warn!(platform = %target.platform, "no such platform is running: nothing of this turn can be shown");
        }
        Self {
            platform,
            target,
            turn,
            status: None,
            settled: String::new(),
            running: String::new(),
            tools: Vec::new(),
        }
    }

    /// Sets the turn's one status message; a later text edits it.
    pub async fn status(&mut self, text: &str) {
        if self.status.as_deref() != Some(text) {
            self.status = Some(text.to_owned());
            self.show(ReplyOp::Status {
                text: text.to_owned(),
            })
            .await;
        }
    }

    /// Adds to the status message, if there is one.
    pub async fn add_to_status(&mut self, suffix: &str) {
        if let Some(status) = self.status.clone() {
            self.status(&format!("{status}{suffix}")).await;
        }
    }

    /// Whether a status message stands.
    pub fn has_status(&self) -> bool {
        self.status.is_some()
    }

    /// Shows the running attempt's text so far.
    pub async fn answer(&mut self, text: &str) {
        if text == self.running {
            return;
        }
        let delta = text
            .strip_prefix(self.running.as_str())
            .map(ToOwned::to_owned);
        let first = self.running.is_empty() && !self.settled.is_empty();
        text.clone_into(&mut self.running);
        let delta = match delta {
            Some(new) if first => Some(format!("{ATTEMPT_BREAK}{new}")),
            other => other,
        };
        let (replaced, delta) = (delta.is_none(), delta.unwrap_or_default());
        self.show(ReplyOp::Answer {
            text: self.whole(),
            delta,
            replaced,
            done: false,
        })
        .await;
    }

    /// Ends an attempt: its text stays, the next attempt continues below it.
    pub fn settle(&mut self) {
        self.settled = self.whole();
        self.running.clear();
    }

    /// Says that the answer is complete as it stands. Called once, and only if there is an answer.
    pub async fn finish(&mut self) {
        let text = self.whole();
        self.show(ReplyOp::Answer {
            text,
            delta: String::new(),
            replaced: false,
            done: true,
        })
        .await;
    }

    /// Everything the person has seen of the answer.
    pub fn whole(&self) -> String {
        match (self.settled.is_empty(), self.running.is_empty()) {
            (_, true) => self.settled.clone(),
            (true, _) => self.running.clone(),
            _ => format!("{}{ATTEMPT_BREAK}{}", self.settled, self.running),
        }
    }

    /// Adds or replaces a line of the turn's one tool-activity message.
    pub async fn tool(&mut self, at: Option<usize>, line: String) -> usize {
        let at = match at {
            Some(at) if at < self.tools.len() => at,
            _ => {
                self.tools.push(String::new());
                self.tools.len() - 1
            }
        };
        if let Some(slot) = self.tools.get_mut(at) {
            *slot = line;
        }
        self.show(ReplyOp::Tools {
            text: self.tools.join("\n"),
        })
        .await;
        at
    }

    /// Says something in the gateway's own voice, as a message of its own.
    pub async fn notice(&self, text: &str) {
        self.show(ReplyOp::Notice {
            text: text.to_owned(),
        })
        .await;
    }

    async fn show(&self, op: ReplyOp) {
        let Some(platform) = &self.platform else {
            return;
        };
        if let Err(error) = platform.deliver(&self.target, Some(&self.turn), &op).await {
            warn!(turn = %self.turn, %error, "a reply was not shown");
        }
    }
}

/// Between the text of two attempts of one turn.
const ATTEMPT_BREAK: &str = "\n\n";

/// Answers a command, outside of any turn.
pub async fn reply(effects: &Effects, target: &ReplyTarget, text: &str, audience: Audience) {
    reply_with(effects, target, text, audience, Vec::new()).await;
}

/// The same, with buttons below it.
pub async fn reply_with(
    effects: &Effects,
    target: &ReplyTarget,
    text: &str,
    audience: Audience,
    buttons: Vec<Button>,
) {
    let Some(platform) = effects.platforms.get(target.platform.as_str()) else {
        return;
    };
    let op = ReplyOp::Reply {
        text: effects.redactor.redact(text).into_owned(),
        audience,
        buttons,
    };
    if let Err(error) = platform.deliver(target, None, &op).await {
        warn!(platform = %target.platform, %error, "a command's answer was not shown");
    }
}

/// Takes the buttons off the message that was pressed.
pub async fn settle(effects: &Effects, target: &ReplyTarget) {
    let Some(platform) = effects.platforms.get(target.platform.as_str()) else {
        return;
    };
    let op = ReplyOp::Settle { text: None };
    if let Err(error) = platform.deliver(target, None, &op).await {
        warn!(platform = %target.platform, %error, "the buttons of a message were not taken off");
    }
}

/// Says something about a message to its sender: to them alone where the platform can, else where they wrote. Never
/// anything that is not for everybody's eyes.
pub async fn aside(effects: &Effects, target: &ReplyTarget, text: &str) {
    let platform = effects.platforms.get(target.platform.as_str());
    let audience = match platform.is_none_or(|platform| platform.whispers()) {
        true => Audience::Asker,
        false => Audience::Everyone,
    };
    reply(effects, target, text, audience).await;
}

/// Says that a message could not be kept: a fault of ours, never an answer.
pub async fn fault(effects: &Effects, target: &ReplyTarget, fault: &str) {
    aside(effects, target, &told(fault)).await;
}

/// The same of a command or a press, by its own way.
pub async fn command_fault(effects: &Effects, target: &ReplyTarget, fault: &str) {
    reply(effects, target, &told(fault), Audience::Asker).await;
}

fn told(fault: &str) -> String {
    format!("⚠️ This message could not be processed: {fault}.")
}
