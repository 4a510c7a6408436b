//! One message: what it shows, what it shall show, and what is under way for it.

use std::time::Duration;

use tokio::time::Instant;

use super::pace::{Kind, Pace, Uncertain, Urgency};
use super::{Request, Stage, Worth};
use crate::wire::{Body, MessageId, Place};

/// A text that is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) body: Body,
    pub(super) stage: Stage,
    /// When the slot began to differ from what is shown.
    pub(super) since: Instant,
}

/// What is under way, and the stage of the text it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) request: Request,
    pub(super) began: Instant,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) worth: Worth,
    /// Nonce of the message; a new one for each message the slot posts anew.
    nonce: String,
    posts: u32,
    pub(super) message: Option<MessageId>,
    pub(super) posted_at: Option<Instant>,
    pub(super) edited_at: Option<Instant>,
    pub(super) shown: Option<Body>,
    pub(super) want: Option<Want>,
    pub(super) busy: Option<Busy>,
    /// A post of unknown fate: what it said. It is tried again unchanged before anything newer.
    pub(super) limbo: Option<Body>,
    /// It was looked for and is not there.
    pub(super) not_found: bool,
    /// The messages it had before it was posted anew; to be deleted.
    pub(super) stale: Vec<MessageId>,
    /// Posted anew: it no longer takes part in the order of first posts.
    pub(super) again: bool,
    /// Somebody deleted the message; only a final text brings it back.
    pub(super) deleted: bool,
    pub(super) too_long: bool,
    removed: bool,
    /// Failures in a row, when the first of them was, and when the next try may be.
    pub(super) failures: u32,
    pub(super) failing_since: Option<Instant>,
    pub(super) retry_at: Option<Instant>,
}

impl Slot {
    pub(super) fn new(place: Place, worth: Worth, nonce: String) -> Self {
        Self {
            place,
            worth,
            nonce,
            posts: 0,
            message: None,
            posted_at: None,
            edited_at: None,
            shown: None,
            want: None,
            busy: None,
            limbo: None,
            not_found: false,
            stale: Vec::new(),
            again: false,
            deleted: false,
            too_long: false,
            removed: false,
            failures: 0,
            failing_since: None,
            retry_at: None,
        }
    }

    /// Whether its last text is known.
    pub(super) fn is_ending(&self) -> bool {
        self.removed || (self.ends() && !self.too_long)
    }

    /// Whether what it wants is final.
    pub(super) fn ends(&self) -> bool {
        let want = self.want.as_ref();
        want.is_some_and(|want| want.stage == Stage::Final)
    }

    /// Whether it still waits for its first post and holds up those behind it.
    pub(super) fn is_unposted(&self) -> bool {
        self.message.is_none()
            && !self.again
            && (self.want.is_some() || self.limbo.is_some() || self.busy.is_some())
    }

    pub(super) fn remove(&mut self) {
        self.removed = true;
        self.want = None;
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed
    }

    /// Whether a removed slot has left nothing behind.
    pub(super) fn is_over(&self) -> bool {
        self.removed
            && self.busy.is_none()
            && self.message.is_none()
            && self.limbo.is_none()
            && self.stale.is_empty()
    }

    /// The kind of request that comes next; `None` = there is nothing to do.
    pub(super) fn kind(&self, pace: &Pace, now: Instant) -> Option<Kind> {
        if self.limbo.is_some() {
            let look_up = pace.uncertain == Uncertain::LookUp && !self.not_found;
            return Some(if look_up { Kind::LookUp } else { Kind::Post });
        }
        if self.removed {
            let message = self.message.as_ref().or(self.stale.first());
            return message.map(|_| Kind::Delete);
        }
        let wants = self.wants();
        match &self.message {
            Some(_) if wants => Some(if self.is_too_old(pace, now) {
                Kind::Post
            } else {
                Kind::Edit
            }),
            None if wants => Some(Kind::Post),
            _ => self.stale.first().map(|_| Kind::Delete),
        }
    }

    /// Whether it has a text that may be sent.
    fn wants(&self) -> bool {
        self.want.is_some() && !self.too_long && (!self.deleted || self.ends())
    }

    pub(super) fn has_work(&self) -> bool {
        let leaves = self.removed && self.message.is_some();
        self.wants() || leaves || self.limbo.is_some() || !self.stale.is_empty()
    }

    fn is_too_old(&self, pace: &Pace, now: Instant) -> bool {
        let age = self.posted_at.map(|at| now.saturating_duration_since(at));
        age.zip(pace.edit_within)
            .is_some_and(|(age, within)| age >= within)
    }

    /// When its own rules let it go next; `None` = they do not mind.
    pub(super) fn not_before(&self, urgency: Urgency, pace: &Pace) -> Option<Instant> {
        let interval = match urgency {
            Urgency::Ending => Duration::ZERO,
            Urgency::Underway => pace.edit_interval,
        };
        let edit = self.edited_at.or(self.posted_at).map(|at| at + interval);
        self.retry_at.max(edit)
    }

    /// Turns what it wants into a request.
    pub(super) fn begin(&mut self, pace: &Pace, now: Instant) -> Option<Request> {
        let kind = self.kind(pace, now)?;
        if kind == Kind::Post && self.message.is_some() {
            self.post_anew();
        }
        let body = || {
            self.limbo
                .clone()
                .or_else(|| Some(self.want.as_ref()?.body.clone()))
        };
        let request = match kind {
            Kind::LookUp => Request::LookUp {
                nonce: self.nonce(),
            },
            Kind::Post => Request::Post {
                body: body()?,
                nonce: self.nonce(),
            },
            Kind::Edit => Request::Edit {
                message: self.message.clone()?,
                body: body()?,
            },
            Kind::Delete => Request::Delete {
                message: self.stale.first().or(self.message.as_ref()).cloned()?,
            },
        };
        self.retry_at = None;
        self.busy = Some(Busy {
            request: request.clone(),
            began: now,
        });
        Some(request)
    }

    /// Gives up its message for a new one.
    pub(super) fn post_anew(&mut self) {
        self.stale.extend(self.message.take());
        self.shown = None;
        self.posted_at = None;
        self.edited_at = None;
        self.again = true;
        self.posts += 1;
    }

    fn nonce(&self) -> String {
        match self.posts {
            0 => self.nonce.clone(),
            posts => format!("{}.{posts}", self.nonce),
        }
    }

    /// Notes a try that did not work; it is due again after 1, 2, 4 … at most 30 s.
    pub(super) fn back_off(&mut self, now: Instant) {
        let wait = 1_u64 << self.failures.min(5);
        self.failures += 1;
        self.failing_since.get_or_insert(now);
        self.retry_at = Some(now + Duration::from_secs(wait.min(30)));
    }

    pub(super) fn worked(&mut self) {
        self.failures = 0;
        self.failing_since = None;
        self.retry_at = None;
        self.not_found = false;
    }
}
