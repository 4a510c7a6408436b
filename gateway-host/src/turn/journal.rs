//! The write-ahead record of the running turn. Entries are redacted here, on their way in, and written in batches by a
//! task of their own, so that streaming never waits for the disk; a tool call is written the moment it is reported.
//! Fails loud: when a batch cannot be written, the attempt is stopped and the person is told.

use std::sync::Arc;

use gateway_core::event::Event;
use gateway_core::handoff::cut;
use gateway_core::ids::TurnId;
use gateway_core::journal::JournalEntry;
use gateway_core::route::Route;
use tokio::sync::{mpsc, oneshot};

use crate::effects::Effects;
use crate::store::{Store, StoreError};

/// The running turn's record, in memory and on its way to the disk.
pub struct Journal {
    entries: Vec<JournalEntry>,
    route: Option<Route>,
    /// Text of one block that may still end in half a secret: it goes on at the next space, entry or flush.
    held: Option<(u32, String)>,
    /// The block being recorded and the end of what is recorded of it, as it came: many secrets show only by the words
    /// before them.
    before: (u32, String),
    writer: mpsc::UnboundedSender<Write>,
    broken: Arc<parking_lot::Mutex<Option<String>>>,
}

/// The longest argument or result that is recorded, in characters; a handoff keeps far less.
const BODY_MAX: usize = 64 * 1024;

/// Text without any space is held back no longer than this, in bytes.
const HELD_MAX: usize = 4096;

/// Bytes of recorded text that later text is redacted with: a key in PEM form fits.
const BEFORE_MAX: usize = 4096;

enum Write {
    Entry(JournalEntry),
    Flush(oneshot::Sender<()>),
}

impl Journal {
    /// Starts the writer. `durable` resolves once the turn's first row is on disk; nothing is written before.
    pub fn start(store: Arc<dyn Store>, turn: TurnId, durable: oneshot::Receiver<()>) -> Self {
        let (writer, queue) = mpsc::unbounded_channel();
        let broken = Arc::new(parking_lot::Mutex::new(None));
        tokio::spawn(write(store, turn, durable, queue, Arc::clone(&broken)));
        Self {
            entries: Vec::new(),
            route: None,
            held: None,
            before: (0, String::new()),
            writer,
            broken,
        }
    }

    /// Records one entry.
    pub fn record(&mut self, entry: JournalEntry) {
        if let JournalEntry::Attempt { route, .. } = &entry {
            self.route = Some(route.clone());
        }
        if matches!(
            entry,
            JournalEntry::Attempt { .. } | JournalEntry::Retract { .. }
        ) {
            self.before.1.clear();
        }
        self.remember(entry.clone());
        let _ = self.writer.send(Write::Entry(entry)); // the writer ends only with this journal
    }

    /// Records what a provider reported, redacted. Usage, limits and signs of life are not part of the record.
    pub fn record_event(&mut self, event: &Event, effects: &Effects) {
        let redact = |text: &str| {
            effects
                .redactor
                .redact(&cut::head(text, BODY_MAX))
                .into_owned()
        };
        if let Event::Text { block, delta } = event {
            self.hold(*block, delta, effects);
            return;
        }
        if matches!(
            event,
            Event::Usage(_) | Event::Limit(_) | Event::Activity { .. }
        ) {
            return;
        }
        self.release(effects);
        let entry = match event {
            Event::Session { id } => JournalEntry::Session { id: id.clone() },
            Event::Retract { from_block } => JournalEntry::Retract {
                from_block: *from_block,
            },
            Event::ToolCall {
                id,
                name,
                arguments,
            } => JournalEntry::ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments: redact(arguments),
            },
            Event::ToolResult { id, outcome, text } => JournalEntry::ToolResult {
                id: id.clone(),
                outcome: *outcome,
                text: redact(text),
            },
            Event::Todos(todos) => JournalEntry::Todos {
                todos: todos
                    .iter()
                    .map(|todo| gateway_core::event::Todo {
                        content: redact(&todo.content),
                        ..todo.clone()
                    })
                    .collect(),
            },
            Event::Text { .. } | Event::Usage(_) | Event::Limit(_) | Event::Activity { .. } => {
                return;
            }
        };
        self.record(entry);
    }

    /// The shapes of secrets are runs of ASCII without a space: up to the last character that ends one, text can go on.
    fn hold(&mut self, block: u32, delta: &str, effects: &Effects) {
        if self.held.as_ref().is_some_and(|(held, _)| *held != block) {
            self.release(effects);
        }
        let (_, mut text) = self.held.take().unwrap_or_default();
        text.push_str(delta);
        let ends = |(_, c): &(usize, char)| c.is_whitespace() || !c.is_ascii();
        let last = text.char_indices().rev().find(ends);
        let cut = last.map_or(0, |(at, c)| at + c.len_utf8());
        let cut = if text.len() > HELD_MAX {
            text.len()
        } else {
            text.ceil_char_boundary(cut)
        };
        let rest = text.split_off(cut);
        self.held = Some((block, rest));
        self.tell(block, &text, effects);
    }

    /// Records more of a block, redacted together with the words before it.
    fn tell(&mut self, block: u32, text: &str, effects: &Effects) {
        if text.is_empty() {
            return;
        }
        if self.before.0 != block {
            self.before = (block, String::new());
        }
        let told = effects.redactor.redact(&self.before.1).into_owned();
        self.before.1.push_str(text);
        let all = effects.redactor.redact(&self.before.1).into_owned();
        let same = told
            .bytes()
            .zip(all.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let new = all
            .get(all.floor_char_boundary(same)..)
            .unwrap_or_default()
            .to_owned();
        let surplus = self.before.1.len().saturating_sub(BEFORE_MAX);
        let surplus = self.before.1.ceil_char_boundary(surplus);
        self.before.1.drain(..surplus);
        if !new.is_empty() {
            self.record(JournalEntry::Text { block, text: new });
        }
    }

    /// Records what was held back.
    pub fn release(&mut self, effects: &Effects) {
        if let Some((block, text)) = self.held.take() {
            self.tell(block, &text, effects);
        }
    }

    /// Waits until everything recorded so far is on disk.
    pub async fn flush(&mut self, effects: &Effects) -> Result<(), StoreError> {
        self.release(effects);
        let (done, flushed) = oneshot::channel();
        let _ = self.writer.send(Write::Flush(done));
        let _ = flushed.await;
        self.check()
    }

    /// Whether the record is broken; asked between events.
    pub fn check(&self) -> Result<(), StoreError> {
        self.broken
            .lock()
            .clone()
            .map_or(Ok(()), |why| Err(StoreError::Write(why)))
    }

    /// What is recorded so far.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.entries
    }

    /// The route of the last attempt.
    pub fn route(&self) -> Option<&Route> {
        self.route.as_ref()
    }

    /// Whether the last attempt has shown text or started a tool call.
    pub fn attempt_has_effects(&self) -> bool {
        let of_attempt = self.entries.iter().rev();
        of_attempt
            .take_while(|entry| !matches!(entry, JournalEntry::Attempt { .. }))
            .any(is_effect)
    }

    /// Whether any attempt of this turn has shown text or started a tool call.
    pub fn has_effects(&self) -> bool {
        self.entries.iter().any(is_effect)
    }

    fn remember(&mut self, entry: JournalEntry) {
        match (self.entries.last_mut(), &entry) {
            (
                Some(JournalEntry::Text { block, text }),
                JournalEntry::Text {
                    block: same,
                    text: more,
                },
            ) if block == same => {
                text.push_str(more);
            }
            _ => self.entries.push(entry),
        }
    }
}

fn is_effect(entry: &JournalEntry) -> bool {
    matches!(
        entry,
        JournalEntry::Text { .. } | JournalEntry::ToolCall { .. }
    )
}

async fn write(
    store: Arc<dyn Store>,
    turn: TurnId,
    durable: oneshot::Receiver<()>,
    mut queue: mpsc::UnboundedReceiver<Write>,
    broken: Arc<parking_lot::Mutex<Option<String>>>,
) {
    if durable.await.is_err() {
        return;
    }
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, 512).await > 0 {
        let (mut batch, mut flushes) = (Vec::new(), Vec::new());
        for write in waiting.drain(..) {
            match write {
                Write::Entry(entry) => merge(&mut batch, entry),
                Write::Flush(done) => flushes.push(done),
            }
        }
        if !batch.is_empty()
            && broken.lock().is_none()
            && let Err(error) = store.append(&turn, &batch).await
        {
            *broken.lock() = Some(error.to_string());
        }
        for done in flushes {
            let _ = done.send(()); // whoever asked may be gone
        }
    }
}

/// Deltas of one block that wait for the disk together become one row.
fn merge(batch: &mut Vec<JournalEntry>, entry: JournalEntry) {
    match (batch.last_mut(), &entry) {
        (
            Some(JournalEntry::Text { block, text }),
            JournalEntry::Text {
                block: same,
                text: more,
            },
        ) if block == same => {
            text.push_str(more);
        }
        _ => batch.push(entry),
    }
}
