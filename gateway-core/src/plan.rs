//! Which routes are eligible, in what order, and why each other one was skipped: the quota gate.
//!
//! The gate skips only on affirmative evidence: an applicable window refused by the newest reading, observed at most six
//! hours ago and not ahead of the clock (a minute of difference between clocks is borne), with a known reset more than
//! five minutes and at most 366 days away. Everything else is tried. The order of the chain is never changed, and nothing
//! here changes the chain: what a turn learns is a value of that turn.
//!
//! The gate speaks at two moments. Before the first attempt ([`prologue`]) it looks at the chain's head only: a free head
//! leaves the turn as it is and does not use the gate up. After a quota failure ([`before_walk`]) it looks at what is left,
//! once per turn. A position skipped once stays skipped for the rest of the turn, whatever the later reason.
//!
//! Everything is borrowed, so that a plugin runs it over the records of the plugin boundary in place: no allocation per
//! entry or window.

use std::collections::HashSet;

use crate::failure::FailureKind;
use crate::notice;
use crate::usage::ReadingSource;
use crate::usage::blocking::blocked_until_ms;
use crate::usage::scope::{self, Reach};

/// A window as the gate looks at it; borrowed, so that a plugin can read records in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowView<'a> {
    pub id: &'a str,
    pub scope: ScopeView<'a>,
    pub status: crate::usage::WindowStatus,
    /// Points of 100; `None` = unknown.
    pub used_pct: Option<f64>,
    pub resets_at_ms: Option<i64>,
    pub observed_at_ms: Option<i64>,
    pub source: ReadingSource,
}

/// A borrowed [`WindowScope`](crate::usage::WindowScope).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeView<'a> {
    /// Not stated: decided by the window's id.
    Unstated,
    Account,
    Model(&'a str),
    Bucket(&'a str),
    Spend,
}

/// A chain entry as the gate looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryView<'a> {
    /// As shown to people.
    pub subscription: &'a str,
    pub model: &'a str,
    /// Folded name or quota group: entries that share it count as one subscription in N.
    pub counts_as: &'a str,
    /// `false` = passed over whatever its quota (metered without an opt-in): never skipped, counted or named as in use.
    pub usable: bool,
}

/// The gate's constants, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSettings {
    /// Evidence older than this is not used; equal is trusted. 21,600 s.
    pub max_age_ms: i64,
    /// A reset this close or closer is not worth a skip. 300 s.
    pub horizon_ms: i64,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            max_age_ms: 21_600_000,
            horizon_ms: 300_000,
        }
    }
}

/// The gate's word on one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryVerdict<'a> {
    Eligible,
    /// Spent: the blocking window that resets last, and when.
    Skip {
        window: &'a str,
        until_ms: i64,
    },
}

/// Judges one entry. Windows must be the newest reading per (window, scope) of its subscription.
///
/// A window of a bucket blocks nobody here: a caller whose entry draws on a bucket passes that bucket's windows alone, as
/// account-wide ones.
pub fn judge<'a>(
    model: &str,
    windows: impl IntoIterator<Item = WindowView<'a>>,
    settings: GateSettings,
    now_ms: i64,
) -> EntryVerdict<'a> {
    let mut verdict = EntryVerdict::Eligible;
    let mut latest = i64::MIN;
    for window in windows {
        if let Some(until_ms) = blocked_until_ms(&window, settings, now_ms)
            && until_ms > latest
            && limits(&window, model)
        {
            latest = until_ms;
            verdict = EntryVerdict::Skip {
                window: window.id,
                until_ms,
            };
        }
    }
    verdict
}

/// Whether a window is about this model. An id nobody knows, without a scope, is not proof enough.
fn limits(window: &WindowView<'_>, model: &str) -> bool {
    if window.source == ReadingSource::Rollout {
        return false;
    }
    match scope::reach(window.id, window.scope) {
        Reach::Account => true,
        Reach::Model(family) => scope::fits(family, model),
        Reach::Bucket(_) | Reach::Spend | Reach::Unknown => false,
    }
}

/// A quota failure, as the gate is asked about it.
#[derive(Debug, Clone, Copy)]
pub struct WalkQuestion<'q> {
    pub reason: FailureKind,
    /// The name of the subscription that failed, as shown to people.
    pub failed: &'q str,
    /// The first position not tried yet; the ones before it are left alone.
    pub cursor: usize,
    /// The gate has run in this turn.
    pub already_gated: bool,
    /// The turn has shown its status line.
    pub line_shown: bool,
    /// The failing provider is a pool and only one seat of it is out: no gate, and the turn does not count as gated.
    pub relay_seat: bool,
    /// Positions skipped earlier in this turn, in any order.
    pub memo: &'q [usize],
    pub settings: GateSettings,
    /// Unix milliseconds.
    pub now_ms: i64,
}

/// What the gate says at either moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateAdvice {
    /// Positions to leave out, in chain order; the memo's are among them.
    pub skips: Vec<GateSkip>,
    /// Distinct subscriptions (quota groups) among the skips.
    pub count: usize,
    /// What the walk tries next; `None` = nothing is left.
    pub target: Option<usize>,
    /// The one line to show now; `None` = nothing to say.
    pub status_line: Option<String>,
    /// The soonest known reset in Unix milliseconds, if all that is left is skipped. For the closing line.
    pub all_spent_until_ms: Option<i64>,
    /// Whether the gate counts as run in this turn from now on.
    pub gated: bool,
    pub ruling: GateRuling,
}

/// A position to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSkip {
    pub position: usize,
    /// The latest reset over the windows that block it, Unix milliseconds; `None` = skipped earlier, reset not known here.
    pub until_ms: Option<i64>,
}

/// What kind of answer a [`GateAdvice`] is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRuling {
    /// The gate looked at the evidence and something is left to try.
    Walk,
    /// The gate looked and everything that is left is skipped.
    AllExhausted,
    /// Not about quota: the registry was not asked.
    NotQuota,
    RelaySeat,
    AlreadyGated,
    /// Nothing is left to walk; the gate counts as run.
    EmptyChain,
    /// Prologue only: the head is not known to be spent.
    #[default]
    HeadFree,
}

/// Asks the gate after a failure. `entries` is the whole chain in order, each with its windows.
pub fn before_walk<'a, W>(
    question: &WalkQuestion<'_>,
    entries: impl IntoIterator<Item = (EntryView<'a>, W)>,
) -> GateAdvice
where
    W: IntoIterator<Item = WindowView<'a>>,
{
    let closed = if !question.reason.is_quota() {
        Some(GateRuling::NotQuota)
    } else if question.relay_seat {
        Some(GateRuling::RelaySeat)
    } else if question.already_gated {
        Some(GateRuling::AlreadyGated)
    } else {
        None
    };
    let memo = Memo::of(question.memo);
    let mut tally = Tally::default();
    for (position, (entry, windows)) in entries.into_iter().enumerate().skip(question.cursor) {
        if !entry.usable {
            continue;
        }
        let verdict = match closed {
            None => judge(entry.model, windows, question.settings, question.now_ms),
            Some(_) => EntryVerdict::Eligible,
        };
        match verdict {
            EntryVerdict::Skip { until_ms, .. } => tally.skip(position, &entry, Some(until_ms)),
            EntryVerdict::Eligible if memo.holds(position) => tally.skip(position, &entry, None),
            EntryVerdict::Eligible => tally.keep(position, &entry),
        }
    }
    let ruling = closed.unwrap_or(tally.ruling());
    let says = ruling == GateRuling::Walk && !question.line_shown;
    let count = tally.count();
    let line = says.then(|| notice::gate_line(question.reason, question.failed, count));
    let gated = match ruling {
        GateRuling::NotQuota | GateRuling::RelaySeat => question.already_gated,
        _ => true,
    };
    tally.advice(ruling, line, gated)
}

/// Asks the gate before the first attempt. Only a head (the first usable entry) known to be spent makes it speak.
pub fn prologue<'a, W>(
    settings: GateSettings,
    now_ms: i64,
    entries: impl IntoIterator<Item = (EntryView<'a>, W)>,
) -> GateAdvice
where
    W: IntoIterator<Item = WindowView<'a>>,
{
    let mut tally = Tally::default();
    for (position, (entry, windows)) in entries.into_iter().enumerate() {
        if !entry.usable {
            continue;
        }
        match judge(entry.model, windows, settings, now_ms) {
            EntryVerdict::Skip { until_ms, .. } => tally.skip(position, &entry, Some(until_ms)),
            EntryVerdict::Eligible if tally.skips.is_empty() => return GateAdvice::default(),
            EntryVerdict::Eligible => tally.keep(position, &entry),
        }
    }
    match tally.ruling() {
        GateRuling::EmptyChain => GateAdvice::default(),
        ruling => {
            let line = tally.target.map(|(_, entry)| {
                notice::known_spent_line(tally.count(), entry.subscription, entry.model)
            });
            tally.advice(ruling, line, true)
        }
    }
}

/// What one pass over the chain gathers.
#[derive(Default)]
struct Tally<'a> {
    skips: Vec<GateSkip>,
    subscriptions: Distinct<'a>,
    target: Option<(usize, EntryView<'a>)>,
    soonest_ms: Option<i64>,
}

impl<'a> Tally<'a> {
    fn skip(&mut self, position: usize, entry: &EntryView<'a>, until_ms: Option<i64>) {
        if self.skips.is_empty() {
            self.skips.reserve(Distinct::FEW);
        }
        self.skips.push(GateSkip { position, until_ms });
        self.subscriptions.add(entry.counts_as);
        self.soonest_ms = match (self.soonest_ms, until_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn keep(&mut self, position: usize, entry: &EntryView<'a>) {
        if self.target.is_none() {
            self.target = Some((position, *entry));
        }
    }

    fn count(&self) -> usize {
        self.subscriptions.len()
    }

    fn ruling(&self) -> GateRuling {
        match (self.target, self.skips.is_empty()) {
            (Some(_), _) => GateRuling::Walk,
            (None, false) => GateRuling::AllExhausted,
            (None, true) => GateRuling::EmptyChain,
        }
    }

    fn advice(self, ruling: GateRuling, status_line: Option<String>, gated: bool) -> GateAdvice {
        let all_spent = ruling == GateRuling::AllExhausted;
        GateAdvice {
            count: self.count(),
            target: self.target.map(|(position, _)| position),
            status_line,
            all_spent_until_ms: self.soonest_ms.filter(|_| all_spent),
            gated,
            ruling,
            skips: self.skips,
        }
    }
}

/// Positions as a set; the usual empty one costs nothing.
struct Memo(Vec<bool>);

impl Memo {
    /// A chain is far shorter; a position beyond is somebody's mistake and not worth the memory.
    const MAX: usize = 1 << 20;

    fn of(positions: &[usize]) -> Self {
        let positions = || {
            positions
                .iter()
                .copied()
                .filter(|position| *position < Self::MAX)
        };
        let mut held = vec![false; positions().max().map_or(0, |last| last + 1)];
        for position in positions() {
            if let Some(slot) = held.get_mut(position) {
                *slot = true;
            }
        }
        Self(held)
    }

    fn holds(&self, position: usize) -> bool {
        self.0.get(position).copied().unwrap_or(false)
    }
}

/// Counts distinct names. Chains are short, and comparing a few checksums beats hashing; long ones get a real set.
#[derive(Default)]
struct Distinct<'a> {
    few: Vec<(u64, &'a str)>,
    many: HashSet<&'a str>,
}

impl<'a> Distinct<'a> {
    const FEW: usize = 64;

    fn add(&mut self, name: &'a str) {
        if !self.many.is_empty() {
            self.many.insert(name);
            return;
        }
        let sum = checksum(name);
        if self
            .few
            .iter()
            .any(|(other, known)| *other == sum && *known == name)
        {
            return;
        }
        if self.few.is_empty() {
            self.few.reserve(Self::FEW);
        }
        if self.few.len() < Self::FEW {
            self.few.push((sum, name));
        } else {
            self.many.extend(self.few.iter().map(|(_, name)| *name));
            self.many.insert(name);
        }
    }

    fn len(&self) -> usize {
        self.few.len().max(self.many.len())
    }
}

/// Eight bytes at a time: names are looked at once per entry of every gated chain.
fn checksum(name: &str) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let sum = words
        .iter()
        .fold(0, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter()
        .fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

#[cfg(test)]
mod tests;
