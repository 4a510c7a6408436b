//! After this ending, what now? The cursor over one turn's chain.
//!
//! A [`Walk`] lives for one turn and is a value: the next turn starts at the head again with nothing remembered here.
//! It never changes the chain. Four things take an entry out of the running, and each stays visible as the entry's
//! [`Standing`]: it is metered and not opted in (passed over), its login is refused (locked out), it is known to be spent
//! (skipped, for the whole turn, whatever the later reason), or it was tried. One thing puts it last without taking it out:
//! it cools after a throttle ([`crate::cooling`]), which proves nothing, so it is asked when nobody else is left.
//!
//! Which failures go on and which end the turn:
//! * quota, overload, silence, broken connection, login, dead program: another route may well work, so try the next;
//! * a request refused for this model or account (unknown model): the next entry may know it, so try the next;
//! * a request refused as such, a content filter, a conversation that no longer fits: the next route would be asked the
//!   same thing, so stop and say so.

use jiff::Timestamp;

use crate::failure::{Failure, FailureKind, FailureScope};
use crate::route::{Billing, Chain};
use crate::turn::{Answer, AttemptEnd};

/// Where one entry stands in this turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Waiting,
    /// Metered, not first, not opted in.
    PassedOver,
    /// Its login is refused until the operator acts.
    LockedOut,
    /// Throttled a moment ago: tried when nothing else is left.
    Cooling,
    /// Known to be spent; `None` = no reset known.
    Skipped {
        until: Option<Timestamp>,
    },
    Running,
    Failed(Failure),
    Answered,
}

/// The walker's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Done(Answer),
    /// Try this position next.
    Try(usize),
    GiveUp(GiveUp),
}

/// Why nothing answered.
#[derive(Debug, Clone, PartialEq)]
pub enum GiveUp {
    /// Nothing was tried: every usable entry is known to be spent.
    KnownSpent,
    /// After the first failure, the gate took out every other entry.
    FallbacksSpent,
    /// At least two entries were tried and refused, or there was nothing behind the failing one.
    ChainEnded,
    /// Whatever was tried could not be reached.
    NetworkDown,
    /// Nothing was tried: the login of every usable entry is refused.
    LockedOut,
    /// Another route would be asked the same thing.
    NotRetryable,
    Stopped,
    /// The chain has no entry at all.
    EmptyChain,
}

/// The cursor over a chain, alive for one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Walk {
    standings: Vec<Standing>,
    running: Option<usize>,
    /// Whether the quota gate has run in this turn.
    pub gated: bool,
}

impl Walk {
    /// Starts at the head. `usable` says per position whether a metered entry is opted in; see [`usable`].
    pub fn new(usable: &[bool]) -> Self {
        let standings = usable
            .iter()
            .map(|ok| {
                if *ok {
                    Standing::Waiting
                } else {
                    Standing::PassedOver
                }
            })
            .collect();
        Self {
            standings,
            running: None,
            gated: false,
        }
    }

    /// Takes entries out for the rest of the turn. Only waiting ones move; unknown positions are ignored.
    pub fn skip(&mut self, position: usize, until: Option<Timestamp>) {
        let waiting = self.standings.get_mut(position);
        if let Some(standing @ (Standing::Waiting | Standing::Cooling)) = waiting {
            *standing = Standing::Skipped { until };
        }
    }

    /// Leaves an entry out whose login is refused. Only a waiting one moves.
    pub fn lock_out(&mut self, position: usize) {
        if let Some(standing @ Standing::Waiting) = self.standings.get_mut(position) {
            *standing = Standing::LockedOut;
        }
    }

    /// Puts an entry last. Only a waiting one moves; a skip still takes it out.
    pub fn cool(&mut self, position: usize) {
        if let Some(standing @ Standing::Waiting) = self.standings.get_mut(position) {
            *standing = Standing::Cooling;
        }
    }

    /// The first step of the turn.
    pub fn first(&mut self) -> Step {
        self.try_next().unwrap_or_else(|| {
            let any = |of: fn(&Standing) -> bool| self.standings.iter().any(of);
            Step::GiveUp(if any(|s| matches!(s, Standing::Skipped { .. })) {
                GiveUp::KnownSpent
            } else if any(|s| *s == Standing::LockedOut) {
                GiveUp::LockedOut
            } else {
                GiveUp::EmptyChain
            })
        })
    }

    /// Tries this position next, whatever the order says: somebody else has decided. One that was tried may be tried again.
    pub fn take(&mut self, position: usize) -> Step {
        match self.standings.get_mut(position) {
            Some(standing) => *standing = Standing::Running,
            None => return Step::GiveUp(GiveUp::EmptyChain),
        }
        self.running = Some(position);
        Step::Try(position)
    }

    /// Notes how the running attempt ended. Call before asking the gate, so that it sees the failure.
    pub fn note(&mut self, end: &AttemptEnd) {
        let Some(standing) = self
            .running
            .take()
            .and_then(|at| self.standings.get_mut(at))
        else {
            return;
        };
        *standing = match end {
            AttemptEnd::Answered(_) => Standing::Answered,
            AttemptEnd::Failed(failure) => Standing::Failed(failure.clone()),
            AttemptEnd::Stopped => Standing::Waiting,
        };
    }

    /// After this ending, what now? Facts learned since (skips) must be in already.
    pub fn next_step(&mut self, end: AttemptEnd) -> Step {
        match end {
            AttemptEnd::Answered(answer) => Step::Done(answer),
            AttemptEnd::Stopped => Step::GiveUp(GiveUp::Stopped),
            AttemptEnd::Failed(failure) if !goes_on(&failure) => Step::GiveUp(GiveUp::NotRetryable),
            AttemptEnd::Failed(_) => self
                .try_next()
                .unwrap_or_else(|| Step::GiveUp(self.ended())),
        }
    }

    /// The position being tried.
    pub fn running(&self) -> Option<usize> {
        self.running
    }

    /// Where each entry stands, by position.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The first position that no attempt has reached yet.
    pub fn cursor(&self) -> usize {
        let tried = |s: &Standing| {
            matches!(
                s,
                Standing::Running | Standing::Failed(_) | Standing::Answered
            )
        };
        self.standings
            .iter()
            .rposition(tried)
            .map_or(0, |at| at + 1)
    }

    /// Positions skipped so far.
    pub fn skipped(&self) -> Vec<usize> {
        let skipped =
            |(at, s): (usize, &Standing)| matches!(s, Standing::Skipped { .. }).then_some(at);
        self.standings
            .iter()
            .enumerate()
            .filter_map(skipped)
            .collect()
    }

    /// Whether an entry is left that could be tried after the running one.
    pub fn others_left(&self) -> bool {
        self.next_waiting().is_some()
    }

    /// Whether an attempt of this turn has failed and was left behind.
    pub fn any_failed(&self) -> bool {
        self.standings
            .iter()
            .any(|s| matches!(s, Standing::Failed(_)))
    }

    /// The soonest instant at which an entry of this chain is known to be back: skipped ones by their window, refused
    /// ones by what they stated. `None` = nobody stated one.
    pub fn soonest_reset(&self) -> Option<Timestamp> {
        self.resets(|_| true).min()
    }

    /// The same over the skipped entries alone.
    pub fn soonest_skipped(&self) -> Option<Timestamp> {
        self.resets(|s| matches!(s, Standing::Skipped { .. })).min()
    }

    fn resets(&self, of: impl Fn(&Standing) -> bool) -> impl Iterator<Item = Timestamp> {
        self.standings
            .iter()
            .filter(move |s| of(s))
            .filter_map(|standing| match standing {
                Standing::Skipped { until } => *until,
                Standing::Failed(failure) if failure.kind.is_quota() => failure.retry_at,
                _ => None,
            })
    }

    fn try_next(&mut self) -> Option<Step> {
        let at = self.next_waiting()?;
        if let Some(standing) = self.standings.get_mut(at) {
            *standing = Standing::Running;
        }
        self.running = Some(at);
        Some(Step::Try(at))
    }

    /// The next waiting entry in the chain's order, else the first cooling one.
    fn next_waiting(&self) -> Option<usize> {
        let is = |wanted: Standing| move |s: &Standing| *s == wanted;
        let from = self.cursor();
        let ahead = self.standings.iter().skip(from);
        let waiting = ahead
            .clone()
            .position(|s| is(Standing::Waiting)(s))
            .map(|at| from + at);
        waiting.or_else(|| self.standings.iter().position(is(Standing::Cooling)))
    }

    /// Every failure of the turn is about the way to a provider, and the last word of at least one is that there was none.
    fn unreachable(&self) -> bool {
        let mut failures = self.standings.iter().filter_map(|s| match s {
            Standing::Failed(failure) => Some(failure),
            _ => None,
        });
        let edge = |f: &Failure| f.scope == FailureScope::NetworkEdge;
        self.standings
            .iter()
            .any(|s| matches!(s, Standing::Failed(failure) if edge(failure)))
            && failures.all(|failure| failure.kind == FailureKind::Transport)
    }

    fn ended(&self) -> GiveUp {
        if self.unreachable() {
            return GiveUp::NetworkDown;
        }
        let tried = self
            .standings
            .iter()
            .filter(|s| matches!(s, Standing::Failed(_)))
            .count();
        let skipped_behind = self
            .standings
            .iter()
            .skip(self.cursor())
            .any(|s| matches!(s, Standing::Skipped { .. }));
        if tried == 1 && skipped_behind {
            GiveUp::FallbacksSpent
        } else {
            GiveUp::ChainEnded
        }
    }
}

/// Which positions may be used: every plan entry, and a metered one only as the chain's first. Putting it first is the
/// opt-in; the general opt-in (`routing.paid`) needs a spend ledger and does not exist yet. Fails closed.
pub fn usable(chain: &Chain) -> Vec<bool> {
    let entries = chain.entries.iter().enumerate();
    entries
        .map(|(at, entry)| at == 0 || entry.billing == Billing::Plan)
        .collect()
}

fn goes_on(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::ContextOverflow | FailureKind::ContentFilter => false,
        FailureKind::BadRequest => matches!(
            failure.scope,
            FailureScope::Account | FailureScope::AccountModel
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SubscriptionId;
    use crate::route::{ChainEntry, Route};

    fn failed(kind: FailureKind, reset: Option<i64>) -> AttemptEnd {
        let at = reset.map(|s| Timestamp::from_second(s).unwrap());
        AttemptEnd::Failed(Failure::new(kind, FailureScope::Account, "x").retry_at(at))
    }

    fn step(walk: &mut Walk, end: AttemptEnd) -> Step {
        walk.note(&end);
        walk.next_step(end)
    }

    fn second(s: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(s).unwrap())
    }

    #[test]
    fn a_quota_failure_tries_the_next_entry_in_order() {
        let mut walk = Walk::new(&[true, true, true]);
        assert_eq!(walk.first(), Step::Try(0));
        assert_eq!(
            step(&mut walk, failed(FailureKind::RateLimit, None)),
            Step::Try(1)
        );
        assert_eq!(
            step(&mut walk, failed(FailureKind::Timeout, None)),
            Step::Try(2)
        );
        assert_eq!(
            step(&mut walk, failed(FailureKind::RateLimit, None)),
            Step::GiveUp(GiveUp::ChainEnded)
        );
    }

    #[test]
    fn a_skip_holds_for_the_whole_turn_whatever_the_later_reason() {
        let mut walk = Walk::new(&[true, true, true]);
        walk.first();
        let end = failed(FailureKind::RateLimit, None);
        walk.note(&end);
        walk.skip(1, second(100));
        assert_eq!(walk.next_step(end), Step::Try(2));
        assert_eq!(
            step(&mut walk, failed(FailureKind::Timeout, None)),
            Step::GiveUp(GiveUp::ChainEnded)
        );
        assert_eq!(walk.skipped(), [1]);
    }

    #[test]
    fn a_wholly_skipped_tail_names_its_own_soonest_reset() {
        let mut walk = Walk::new(&[true, true, true]);
        walk.first();
        let end = failed(FailureKind::RateLimit, Some(50));
        walk.note(&end);
        walk.skip(1, second(300));
        walk.skip(2, second(200));
        assert_eq!(walk.next_step(end), Step::GiveUp(GiveUp::FallbacksSpent));
        assert_eq!(walk.soonest_skipped(), second(200));
        assert_eq!(walk.soonest_reset(), second(50));
    }

    #[test]
    fn a_spent_head_is_never_tried() {
        let mut walk = Walk::new(&[true, true]);
        walk.skip(0, second(9));
        assert_eq!(walk.first(), Step::Try(1));
    }

    #[test]
    fn everything_known_spent_ends_before_any_request() {
        let mut walk = Walk::new(&[true, false]);
        walk.skip(0, second(9));
        assert_eq!(walk.first(), Step::GiveUp(GiveUp::KnownSpent));
    }

    #[test]
    fn an_empty_chain_says_so() {
        assert_eq!(Walk::new(&[]).first(), Step::GiveUp(GiveUp::EmptyChain));
    }

    #[test]
    fn what_another_route_would_refuse_too_ends_the_turn() {
        for kind in [FailureKind::ContextOverflow, FailureKind::ContentFilter] {
            let mut walk = Walk::new(&[true, true]);
            walk.first();
            assert_eq!(
                step(&mut walk, failed(kind, None)),
                Step::GiveUp(GiveUp::NotRetryable)
            );
        }
    }

    #[test]
    fn a_stop_ends_the_turn() {
        let mut walk = Walk::new(&[true, true]);
        walk.first();
        assert_eq!(
            step(&mut walk, AttemptEnd::Stopped),
            Step::GiveUp(GiveUp::Stopped)
        );
    }

    #[test]
    fn a_skip_cannot_take_back_what_was_tried() {
        let mut walk = Walk::new(&[true, true]);
        walk.first();
        walk.skip(0, None);
        walk.skip(7, None);
        assert_eq!(walk.running(), Some(0));
        assert!(walk.skipped().is_empty());
    }

    #[test]
    fn a_cooling_entry_is_tried_last_and_not_never() {
        let mut walk = Walk::new(&[true, true, true]);
        walk.cool(0);
        walk.lock_out(1);
        assert_eq!(walk.first(), Step::Try(2));
        assert!(walk.others_left());
        assert_eq!(
            step(&mut walk, failed(FailureKind::Timeout, None)),
            Step::Try(0)
        );
        assert!(!walk.others_left());
        assert_eq!(
            step(&mut walk, failed(FailureKind::Timeout, None)),
            Step::GiveUp(GiveUp::ChainEnded)
        );
    }

    #[test]
    fn a_chain_of_cooling_entries_is_asked_all_the_same() {
        let mut walk = Walk::new(&[true, true]);
        walk.cool(0);
        walk.cool(1);
        walk.skip(0, second(9));
        assert_eq!(walk.first(), Step::Try(1));
    }

    #[test]
    fn a_chain_of_refused_logins_says_so() {
        let mut walk = Walk::new(&[true, false]);
        walk.lock_out(0);
        assert_eq!(walk.first(), Step::GiveUp(GiveUp::LockedOut));
    }

    #[test]
    fn the_network_is_down_if_nothing_was_reached_and_nothing_else_failed() {
        use FailureKind::{Overloaded, Transport};
        use FailureScope::{NetworkEdge, Request};
        let rows: [(&[(FailureKind, FailureScope)], GiveUp); 5] = [
            (&[(Transport, NetworkEdge)], GiveUp::NetworkDown),
            (
                &[(Transport, NetworkEdge), (Transport, NetworkEdge)],
                GiveUp::NetworkDown,
            ),
            // The first stream broke with the network.
            (
                &[(Transport, Request), (Transport, NetworkEdge)],
                GiveUp::NetworkDown,
            ),
            (
                &[(Overloaded, Request), (Transport, NetworkEdge)],
                GiveUp::ChainEnded,
            ),
            (&[(Transport, Request)], GiveUp::ChainEnded),
        ];
        for (failures, want) in rows {
            let mut walk = Walk::new(&vec![true; failures.len()]);
            let mut last = walk.first();
            for (kind, scope) in failures {
                let failure = Failure::new(*kind, scope.clone(), "x");
                last = step(&mut walk, AttemptEnd::Failed(failure));
            }
            assert_eq!(last, Step::GiveUp(want), "{failures:?}");
        }
    }

    #[test]
    fn metered_entries_are_passed_over_unless_first() {
        let entry = |name: &str, billing| ChainEntry {
            route: Route::new(name, "m"),
            slug: SubscriptionId::new(name),
            billing,
            group: None,
        };
        let (plan, metered) = (Billing::Plan, Billing::Metered);
        let rows: [(&[Billing], &[bool]); 3] = [
            (&[plan, metered, plan], &[true, false, true]),
            (&[metered, plan, metered], &[true, true, false]),
            (&[metered, metered], &[true, false]),
        ];
        for (billing, want) in rows {
            let chain = Chain {
                entries: billing.iter().map(|b| entry("s", *b)).collect(),
            };
            assert_eq!(usable(&chain), want, "{billing:?}");
        }
    }
}
