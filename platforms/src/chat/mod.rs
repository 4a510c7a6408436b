//! A [`Platform`] made of an adapter: what turns say becomes [boards](crate::board), boards become slots of the
//! [outbox](crate::outbox), and command replies go by the command's own reply channel. The adapter only translates.
//!
//! `deliver` returns once an op is taken, not once it is shown: a slow platform never holds up a turn. [`Chat::drained`]
//! waits for what is on its way, at shutdown.

mod tables;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{Audience, Button, ReplyOp, ReplyTarget};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::board::ToolsShown;
use crate::escape::Shape;
use crate::outbox::driver::{self, Sender};
use crate::outbox::{Pace, Report};
use crate::stream::Flow;
use crate::wire::{Body, MessageId, Place, Wire, WireError};
use crate::{DeliveryError, Limits, Platform, Receipt};
use tables::Tables;

/// What an adapter does beside [`Wire`].
#[async_trait]
pub trait Surface: Wire {
    /// The platform's name as it stands in [`ReplyTarget::platform`].
    fn name(&self) -> &'static str;

    /// The place of an address this adapter made; `None` = it made no such address.
    fn place(&self, address: &str) -> Option<Place>;

    /// Whether tool activity is shown there.
    fn tools_shown(&self, place: &Place) -> ToolsShown;

    /// Answers the command an address came with, by the command's own reply channel: the first body completes what was
    /// deferred, more follow it. Exactly one sender per command: nothing of it goes through the outbox.
    async fn reply(
        &self,
        address: &str,
        bodies: Vec<Body>,
        audience: Audience,
    ) -> Result<MessageId, WireError>;

    /// Ends the press an address came with: takes the buttons off the message that was pressed. `text` replaces what the
    /// message says; `None` = it stays.
    async fn settle(&self, address: &str, text: Option<&str>) -> Result<(), WireError>;

    /// Shows that somebody is working there. Best effort.
    async fn activity(&self, place: &Place) -> Result<(), WireError>;
}

/// A platform's numbers.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub shape: Shape,
    pub flow: Flow,
    pub pace: Pace,
    /// After how long the working sign is shown again.
    pub activity_every: Duration,
}

/// An adapter as a platform.
pub struct Chat<S> {
    surface: Arc<S>,
    style: Style,
    sender: Sender,
    shared: Arc<Shared>,
}

struct Shared {
    tables: Mutex<Tables>,
    changed: Notify,
    rested: Notify,
    closed: AtomicBool,
}

impl<S: Surface> Chat<S> {
    /// Starts the tasks. `prefix` as in [`Outbox::new`](crate::outbox::Outbox::new). They end when this value is dropped
    /// and what was on its way has gone out.
    pub fn start(surface: Arc<S>, style: Style, prefix: &str) -> Self {
        let (reports, told) = mpsc::unbounded_channel();
        let sender = driver::start(Arc::clone(&surface), style.pace, prefix, reports);
        let shared = Arc::new(Shared {
            tables: Mutex::new(Tables::new(style)),
            changed: Notify::new(),
            rested: Notify::new(),
            closed: AtomicBool::new(false),
        });
        tokio::spawn(run(
            Arc::clone(&surface),
            sender.clone(),
            Arc::clone(&shared),
            told,
        ));
        Self {
            surface,
            style,
            sender,
            shared,
        }
    }

    /// Shows the working sign at an address until its turn ends.
    pub fn working(&self, address: &str) {
        if let Some(place) = self.surface.place(address) {
            self.shared
                .tables
                .lock()
                .activity
                .start(place, Instant::now());
            self.shared.changed.notify_one();
        }
    }

    /// Shows it no more, where no turn came of what was said.
    pub fn rests(&self, address: &str) {
        if let Some(place) = self.surface.place(address) {
            self.shared.tables.lock().activity.stop(&place);
        }
    }

    /// Waits until everything taken so far is shown or reported as dropped.
    pub async fn drained(&self) {
        loop {
            let rested = self.shared.rested.notified();
            self.shared.changed.notify_one();
            if self
                .shared
                .tables
                .lock()
                .next_text(Instant::now())
                .is_none()
            {
                self.sender.drained().await;
                if self
                    .shared
                    .tables
                    .lock()
                    .next_text(Instant::now())
                    .is_none()
                {
                    return;
                }
            }
            rested.await;
        }
    }

    async fn reply(
        &self,
        address: &str,
        text: &str,
        audience: Audience,
        buttons: &[Button],
    ) -> Result<Receipt, DeliveryError> {
        let texts = self.style.shape.messages(text).into_iter();
        let mut bodies: Vec<Body> = texts.map(Body::text).collect();
        if let Some(last) = bodies.last_mut() {
            last.buttons = buttons.to_vec();
        }
        let shown = self.surface.reply(address, bodies, audience).await;
        shown
            .map(|message| Receipt(message.0))
            .map_err(|error| self.refused(address, error))
    }

    fn refused(&self, address: &str, error: WireError) -> DeliveryError {
        match error {
            WireError::RateLimited { .. }
            | WireError::NotDelivered(_)
            | WireError::Uncertain(_) => DeliveryError::Transient {
                platform: self.surface.name(),
                source: std::io::Error::other(error),
            },
            _ => DeliveryError::Gone {
                place: address.to_owned(),
                why: error.to_string(),
            },
        }
    }
}

#[async_trait]
impl<S: Surface> Platform for Chat<S> {
    fn name(&self) -> &'static str {
        self.surface.name()
    }

    fn limits(&self) -> Limits {
        Limits {
            message_chars: Some(self.style.shape.limit),
            edits: true,
            edit_interval: self.style.flow.interval,
            private_replies: true,
        }
    }

    async fn deliver(
        &self,
        to: &ReplyTarget,
        turn: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        let Some(place) = self.surface.place(&to.address) else {
            return Err(DeliveryError::Gone {
                place: to.address.clone(),
                why: format!("{} made no such address", self.surface.name()),
            });
        };
        let now = Instant::now();
        match (turn, op) {
            (
                _,
                ReplyOp::Reply {
                    text,
                    audience,
                    buttons,
                },
            ) => return self.reply(&to.address, text, *audience, buttons).await,
            (_, ReplyOp::Settle { text }) => {
                let settled = self.surface.settle(&to.address, text.as_deref()).await;
                settled.map_err(|error| self.refused(&to.address, error))?;
            }
            (Some(turn), op) => {
                let tools = self.surface.tools_shown(&place);
                self.shared.tables.lock().apply(turn, place, tools, op, now);
                self.shared.changed.notify_one();
            }
            (None, ReplyOp::Notice { .. }) => {
                let mut tables = self.shared.tables.lock();
                let alone = tables.fresh_turn();
                tables.apply(&alone, place, ToolsShown::No, op, now);
                self.shared.changed.notify_one();
            }
            // Everything else belongs to a turn.
            (None, _) => {}
        }
        let taken = turn.map_or("taken", TurnId::as_str);
        Ok(Receipt(taken.to_owned()))
    }
}

impl<S> Drop for Chat<S> {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.changed.notify_one();
    }
}

async fn run<S: Surface>(
    surface: Arc<S>,
    sender: Sender,
    shared: Arc<Shared>,
    mut told: mpsc::UnboundedReceiver<Report>,
) {
    loop {
        let now = Instant::now();
        let (signs, due, texts) = {
            let mut tables = shared.tables.lock();
            tables.give_out(&sender, now);
            (
                tables.activity.take(now),
                tables.due(now),
                tables.next_text(now),
            )
        };
        for place in signs {
            let surface = Arc::clone(&surface);
            tokio::spawn(async move {
                if let Err(error) = surface.activity(&place).await {
                    debug!(channel = %place.channel, %error, "the working sign was not shown");
                }
            });
        }
        if texts.is_none() {
            shared.rested.notify_waiters();
            if shared.closed.load(Ordering::Acquire) && sender.is_idle() && told.is_empty() {
                return;
            }
        }
        tokio::select! {
            () = shared.changed.notified() => {}
            () = until(due) => {}
            Some(report) = told.recv() => shared.tables.lock().hear(report, &sender, Instant::now()),
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
