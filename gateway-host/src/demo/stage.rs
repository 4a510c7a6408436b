//! The demo's chat surface: a platform like any other, that also counts what it showed.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{ReplyOp, ReplyTarget};
use parking_lot::Mutex;
use platforms::{DeliveryError, Limits, Platform, Receipt};
use serde_json::json;

use super::Counters;

/// The platform's name.
pub(super) const NAME: &str = "demo";

/// Between two pieces of streamed text, when there is somebody to read it.
const READING_PACE: Duration = Duration::from_millis(45);

/// Between two messages.
const SCENE_PACE: Duration = Duration::from_millis(900);

/// A chat on stdout.
#[derive(Clone)]
pub(super) struct Stage(Arc<Inner>);

struct Inner {
    fast: bool,
    json: bool,
    shown: Mutex<Shown>,
}

struct Shown {
    out: Box<dyn Write + Send>,
    scene: usize,
    /// Status messages per turn: distinct messages, edits not counted.
    statuses: BTreeMap<TurnId, usize>,
    last_status: Option<String>,
    last_tools: String,
    notices: Vec<String>,
    replies: Vec<String>,
    answers: usize,
    mid_line: bool,
}

impl Stage {
    pub(super) fn new(out: Box<dyn Write + Send>, fast: bool, json: bool) -> Self {
        let shown = Shown {
            out,
            scene: 0,
            statuses: BTreeMap::new(),
            last_status: None,
            last_tools: String::new(),
            notices: Vec::new(),
            replies: Vec::new(),
            answers: 0,
            mid_line: false,
        };
        Self(Arc::new(Inner {
            fast,
            json,
            shown: Mutex::new(shown),
        }))
    }

    /// Opens a scene.
    pub(super) async fn scene(&self, number: usize, title: &str) {
        self.0.shown.lock().scene = number;
        self.say("scene", title, &format!("\n── {number} · {title}\n"));
        self.pause(SCENE_PACE).await;
    }

    /// Says something beside the chat.
    pub(super) async fn aside(&self, text: &str) {
        self.say("aside", text, &format!("   ({text})"));
        self.pause(SCENE_PACE).await;
    }

    /// Shows what the person typed.
    pub(super) async fn person(&self, text: &str) {
        self.say("person", text, &format!("\nyou    {text}"));
        self.pause(SCENE_PACE).await;
    }

    /// Ends with what was measured.
    pub(super) fn close(&self, counters: &Counters) {
        let mut shown = self.0.shown.lock();
        if self.0.json {
            shown.line(&counters.to_json().to_string());
            return;
        }
        let c = counters;
        shown.line(&format!(
            "\n── measured at the upstream servers and in this chat\n   {} requests, {} of them to the 17 spent subscriptions; at most {} status line per turn;\n   {} handoff sealed, {} previews, carried into {} request.",
            c.requests_total, c.requests_to_exhausted, c.status_lines, c.handoffs_sealed, c.previews, c.injections
        ));
    }

    /// The same for a scene with counters of its own.
    pub(super) fn close_with(&self, counters: &serde_json::Value) {
        let mut shown = self.0.shown.lock();
        if self.0.json {
            return shown.line(&counters.to_string());
        }
        shown.line("\n── measured at the upstream servers, in the audit and in this chat");
        for (name, count) in counters.as_object().into_iter().flatten() {
            shown.line(&format!("   {name}: {count}"));
        }
    }

    /// The most status messages any one turn showed.
    pub(super) fn status_lines(&self) -> usize {
        self.0
            .shown
            .lock()
            .statuses
            .values()
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// Notices that begin like this.
    pub(super) fn notices_with(&self, text: &str) -> usize {
        self.0
            .shown
            .lock()
            .notices
            .iter()
            .filter(|notice| notice.contains(text))
            .count()
    }

    /// Command answers that begin like this.
    pub(super) fn replies_with(&self, beginning: &str) -> usize {
        self.0
            .shown
            .lock()
            .replies
            .iter()
            .filter(|reply| reply.starts_with(beginning))
            .count()
    }

    /// Answers completed.
    pub(super) fn answers(&self) -> usize {
        self.0.shown.lock().answers
    }

    fn say(&self, kind: &str, text: &str, line: &str) {
        let mut shown = self.0.shown.lock();
        if self.0.json {
            let event = json!({ "scene": shown.scene, "event": kind, "text": text });
            shown.line(&event.to_string());
        } else {
            shown.line(line);
        }
    }

    async fn pause(&self, how_long: Duration) {
        if !self.0.fast && !self.0.json {
            tokio::time::sleep(how_long).await;
        }
    }

    fn stream(&self, delta: &str) {
        let mut shown = self.0.shown.lock();
        let lead = if shown.mid_line { "" } else { "baton  " };
        let text = format!("{lead}{}", delta.replace('\n', "\n       "));
        shown.mid_line = true;
        shown.write(&text);
    }
}

impl Shown {
    fn line(&mut self, line: &str) {
        let lead = if std::mem::take(&mut self.mid_line) {
            "\n"
        } else {
            ""
        };
        self.write(&format!("{lead}{line}\n"));
    }

    /// A reader that went away ends nothing: the scenes are still played and counted.
    fn write(&mut self, text: &str) {
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

#[async_trait]
impl Platform for Stage {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        Limits {
            message_chars: None,
            edits: true,
            edit_interval: Duration::ZERO,
            private_replies: true,
        }
    }

    async fn deliver(
        &self,
        _: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        match op {
            ReplyOp::Status { text } => self.status(turn, text),
            ReplyOp::Answer { done: false, .. } if self.0.json => {}
            ReplyOp::Answer {
                delta, done: false, ..
            } => self.stream(delta),
            ReplyOp::Answer {
                text, done: true, ..
            } => self.answered(text),
            ReplyOp::Tools { text } => self.tools(text),
            ReplyOp::Notice { text } => {
                self.0.shown.lock().notices.push(text.clone());
                self.say("notice", text, &indent("baton  ", text));
            }
            ReplyOp::Reply { text, .. } => {
                self.0.shown.lock().replies.push(text.clone());
                self.say("reply", text, &indent("only you see  │ ", text));
            }
            ReplyOp::Settle { .. } => {}
        }
        let pace = if matches!(op, ReplyOp::Answer { done: false, .. }) {
            READING_PACE
        } else {
            SCENE_PACE
        };
        self.pause(pace).await;
        Ok(Receipt(NAME.to_owned()))
    }
}

impl Stage {
    /// An edit of the standing status message is shown as what it adds.
    fn status(&self, turn: Option<&TurnId>, text: &str) {
        let mut shown = self.0.shown.lock();
        let first = turn.is_none_or(|turn| !shown.statuses.contains_key(turn));
        if let Some(turn) = turn {
            shown.statuses.entry(turn.clone()).or_insert(1);
        }
        let before = shown
            .last_status
            .replace(text.to_owned())
            .unwrap_or_default();
        drop(shown);
        match text.strip_prefix(before.as_str()).filter(|_| !first) {
            Some(added) => self.say(
                "status_edit",
                text,
                &format!("       (the line now ends:{added})"),
            ),
            None => self.say("status", text, &format!("       {text}")),
        }
    }

    fn answered(&self, text: &str) {
        self.0.shown.lock().answers += 1;
        if self.0.json {
            self.say("answer", text, "");
        }
    }

    fn tools(&self, text: &str) {
        let mut shown = self.0.shown.lock();
        let before = std::mem::replace(&mut shown.last_tools, text.to_owned());
        drop(shown);
        let new: Vec<_> = text
            .lines()
            .filter(|line| !before.lines().any(|old| old == *line))
            .collect();
        self.say("tools", text, &indent("       ", &new.join("\n")));
    }
}

fn indent(lead: &str, text: &str) -> String {
    let rest = if lead.contains('│') {
        lead.to_owned()
    } else {
        " ".repeat(lead.chars().count())
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| format!("{}{line}", if at == 0 { lead } else { &rest }))
        .collect::<Vec<_>>()
        .join("\n")
}
