//! How fast a platform lets us write, kept before it has to say so: sliding windows per channel and over all, and pauses
//! where it did say so.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::wire::Scope;

/// At most `count` requests in any span of `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub count: usize,
    pub per: Duration,
}

/// What a post of unknown fate asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncertain {
    /// The platform recognises the nonce of a repeated post and returns the message it has (Discord, `enforce_nonce`,
    /// for some minutes).
    SendAgain,
    /// It does not: look for the message first (Slack, message metadata).
    LookUp,
}

/// A platform's limits; `None` = not limited there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Posts, edits and deletions of one channel together.
    pub channel_writes: Option<Rate>,
    pub channel_posts: Option<Rate>,
    /// All channels together.
    pub all_writes: Option<Rate>,
    pub all_edits: Option<Rate>,
    /// The least time between two edits of one message, the last one excepted.
    pub edit_interval: Duration,
    /// How old a message may be and still be edited; older ones are posted anew.
    pub edit_within: Option<Duration>,
    /// How long a 429 lasts that does not say so.
    pub unsaid_pause: Duration,
    pub uncertain: Uncertain,
    /// How long a message that does not go out is tried before it is reported as dropped.
    pub give_up_after: Duration,
}

impl Pace {
    /// Discord does not publish its buckets; observed are 5 in 5 s per channel, sends and edits together, 50 a second over
    /// all, and the harder limit on edits after one hour (discord-api-docs#4413). Kept with room to spare.
    pub const DISCORD: Self = Self {
        channel_writes: Some(Rate {
            count: 4,
            per: Duration::from_millis(5_000),
        }),
        channel_posts: None,
        all_writes: Some(Rate {
            count: 40,
            per: Duration::from_secs(1),
        }),
        all_edits: None,
        edit_interval: Duration::from_millis(1_300),
        edit_within: Some(Duration::from_secs(3_540)),
        unsaid_pause: Duration::from_secs(5),
        uncertain: Uncertain::SendAgain,
        give_up_after: Duration::from_secs(900),
    };

    /// Slack: one message a second and channel, `chat.update` 50 a minute and workspace (its rate limit pages).
    pub const SLACK: Self = Self {
        channel_writes: None,
        channel_posts: Some(Rate {
            count: 1,
            per: Duration::from_millis(1_050),
        }),
        all_writes: None,
        all_edits: Some(Rate {
            count: 48,
            per: Duration::from_secs(60),
        }),
        edit_interval: Duration::from_millis(1_500),
        edit_within: None,
        unsaid_pause: Duration::from_secs(5),
        uncertain: Uncertain::LookUp,
        give_up_after: Duration::from_secs(900),
    };
}

/// The kinds of request that are limited apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Post,
    Edit,
    Delete,
    LookUp,
}

/// Whether a request may use the last fifth of a window: that is kept for what ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Ending,
    Underway,
}

/// When requests may go out, from those that went.
#[derive(Debug)]
pub(super) struct Gate {
    pace: Pace,
    all_writes: Window,
    all_edits: Window,
    channels: HashMap<String, Channel>,
    paused_kinds: HashMap<Kind, Instant>,
    paused: Option<Instant>,
}

#[derive(Debug, Default)]
struct Channel {
    writes: Window,
    posts: Window,
    paused: Option<Instant>,
}

impl Gate {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            all_writes: Window::default(),
            all_edits: Window::default(),
            channels: HashMap::new(),
            paused_kinds: HashMap::new(),
            paused: None,
        }
    }

    /// The earliest instant a request may go out, `now` if it may at once.
    pub(super) fn opens(
        &self,
        channel: &str,
        kind: Kind,
        urgency: Urgency,
        now: Instant,
    ) -> Instant {
        let pace = &self.pace;
        let known = self.channels.get(channel);
        let mut opens = now;
        let pauses = [
            self.paused,
            self.paused_kinds.get(&kind).copied(),
            known.and_then(|channel| channel.paused),
        ];
        for pause in pauses.into_iter().flatten() {
            opens = opens.max(pause);
        }
        let mut wait = |window: Option<&Window>, rate: Option<Rate>| {
            if let (Some(window), Some(rate)) = (window, rate) {
                opens = opens.max(window.opens(rate, urgency, now));
            }
        };
        if kind != Kind::LookUp {
            wait(known.map(|channel| &channel.writes), pace.channel_writes);
            wait(Some(&self.all_writes), pace.all_writes);
        }
        if kind == Kind::Post {
            wait(known.map(|channel| &channel.posts), pace.channel_posts);
        }
        if kind == Kind::Edit {
            wait(Some(&self.all_edits), pace.all_edits);
        }
        opens
    }

    /// Notes a request that goes out now.
    pub(super) fn passed(&mut self, channel: &str, kind: Kind, now: Instant) {
        if kind == Kind::LookUp {
            return;
        }
        let pace = self.pace;
        let known = self.channels.entry(channel.to_owned()).or_default();
        known.writes.note(pace.channel_writes, now);
        self.all_writes.note(pace.all_writes, now);
        match kind {
            Kind::Post => known.posts.note(pace.channel_posts, now),
            Kind::Edit => self.all_edits.note(pace.all_edits, now),
            Kind::Delete | Kind::LookUp => {}
        }
    }

    /// Notes that the platform asked for a pause.
    pub(super) fn pause(&mut self, channel: &str, kind: Kind, scope: Scope, until: Instant) {
        let later = |at: Option<Instant>| Some(at.map_or(until, |at| at.max(until)));
        match scope {
            Scope::Everything => self.paused = later(self.paused),
            Scope::Kind => {
                let at = self.paused_kinds.get(&kind).copied();
                self.paused_kinds.insert(kind, later(at).unwrap_or(until));
            }
            Scope::Channel => {
                let known = self.channels.entry(channel.to_owned()).or_default();
                known.paused = later(known.paused);
            }
        }
    }

    /// Forgets channels nothing is remembered of, so that memory follows what is busy.
    pub(super) fn tidy(&mut self, now: Instant) {
        let pace = self.pace;
        self.channels.retain(|_, channel| {
            channel.paused.is_some_and(|until| until > now)
                || channel.writes.holds(pace.channel_writes, now)
                || channel.posts.holds(pace.channel_posts, now)
        });
    }

    #[cfg(test)]
    pub(super) fn channels(&self) -> usize {
        self.channels.len()
    }
}

/// The instants of the last requests, oldest first.
#[derive(Debug, Default)]
struct Window(VecDeque<Instant>);

impl Window {
    fn opens(&self, rate: Rate, urgency: Urgency, now: Instant) -> Instant {
        let kept = match urgency {
            Urgency::Ending => 0,
            Urgency::Underway => rate.count / 5,
        };
        let free = rate.count.saturating_sub(kept).max(1);
        let blocking = self.0.len().checked_sub(free).and_then(|at| self.0.get(at));
        blocking.map_or(now, |at| (*at + rate.per).max(now))
    }

    fn note(&mut self, rate: Option<Rate>, now: Instant) {
        let Some(rate) = rate else { return };
        self.0.push_back(now);
        while self.0.len() > rate.count {
            self.0.pop_front();
        }
    }

    fn holds(&self, rate: Option<Rate>, now: Instant) -> bool {
        rate.zip(self.0.back())
            .is_some_and(|(rate, last)| *last + rate.per > now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However requests come, no span of `per` ever holds more than `count` of them.
        #[test]
        fn a_window_is_never_overfull(gaps in prop::collection::vec(0_u64..4_000, 1..60), count in 1_usize..6) {
            let rate = Rate { count, per: Duration::from_secs(5) };
            let mut window = Window::default();
            let mut now = Instant::now();
            let mut sent = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                now = now.max(window.opens(rate, Urgency::Ending, now));
                window.note(Some(rate), now);
                sent.push(now);
            }
            for (at, first) in sent.iter().enumerate() {
                let within = sent[at..].iter().filter(|one| **one < *first + rate.per).count();
                prop_assert!(within <= count);
            }
        }
    }
}
