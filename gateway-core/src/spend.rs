//! Paid routes: the worst case is reserved before a turn and settled after it, and no cap is ever passed. Everything here
//! fails closed: what has no price does not run, what cannot be read counts as too much.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An amount of money in millionths of a US dollar; integers, because caps are promises.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Usd(u64);

impl Usd {
    pub const ZERO: Self = Self(0);
    /// More than anybody may spend: what an unreadable amount counts as.
    pub const UNREADABLE: Self = Self(u64::MAX);

    /// Builds an amount from millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Rounds dollars to millionths; `None` = negative or not a number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and a float cast saturates"
    )]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars >= 0.0).then(|| Self((dollars * 1e6).round() as u64))
    }

    /// Millionths of a dollar.
    pub fn micros(self) -> u64 {
        self.0
    }

    /// The sum; too much stays too much.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Usd {
    /// Dollars and whole cents, rounded up: nobody is told less than they pay.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.0.div_ceil(10_000);
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

/// The hard limits. An amount of 0 means that nothing is spent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendCaps {
    pub day: Usd,
    pub thread: Usd,
}

/// What is gone or promised already, settled plus reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub day: Usd,
    pub thread: Usd,
}

/// Why a paid turn may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overspend {
    /// Nobody knows what it would cost at worst.
    Unpriced,
    Day,
    Thread,
}

impl SpendCaps {
    /// Whether spending is possible at all.
    pub fn allow_anything(&self) -> bool {
        self.day > Usd::ZERO && self.thread > Usd::ZERO
    }

    /// Admits a turn's worst case; reaching a cap exactly is allowed. Returns what to reserve.
    pub fn admit(&self, spent: Spent, worst: Option<Usd>) -> Result<Usd, Overspend> {
        let worst = worst.ok_or(Overspend::Unpriced)?;
        if spent.day.plus(worst) > self.day {
            Err(Overspend::Day)
        } else if spent.thread.plus(worst) > self.thread {
            Err(Overspend::Thread)
        } else {
            Ok(worst)
        }
    }
}

/// What one day has cost: money settled per thread, and money promised to turns that still run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayLedger {
    settled: BTreeMap<String, Usd>,
    /// By attempt: the thread it serves and its worst case.
    reserved: BTreeMap<String, (String, Usd)>,
}

impl DayLedger {
    /// Settled plus reserved, over everything and for one thread.
    pub fn spent(&self, thread: &str) -> Spent {
        let promised = self.reserved.values().map(|(of, amount)| (of, amount));
        let mut spent = Spent::default();
        for (of, amount) in self.settled.iter().chain(promised) {
            spent.day = spent.day.plus(*amount);
            if of == thread {
                spent.thread = spent.thread.plus(*amount);
            }
        }
        spent
    }

    /// Promises a turn its worst case, if the caps bear it. Asking again for the same attempt changes nothing.
    pub fn reserve(
        &mut self,
        attempt: &str,
        thread: &str,
        worst: Option<Usd>,
        caps: &SpendCaps,
    ) -> Result<Usd, Overspend> {
        if let Some((_, amount)) = self.reserved.get(attempt) {
            return Ok(*amount);
        }
        let amount = caps.admit(self.spent(thread), worst)?;
        self.reserved
            .insert(attempt.to_owned(), (thread.to_owned(), amount));
        Ok(amount)
    }

    /// Replaces a promise by what the turn really cost; `None` = it did not run. An attempt without a promise is left
    /// alone, so settling twice counts once.
    pub fn settle(&mut self, attempt: &str, cost: Option<Usd>) {
        if let Some((thread, _)) = self.reserved.remove(attempt)
            && let Some(cost) = cost
        {
            let settled = self.settled.entry(thread).or_default();
            *settled = settled.plus(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars).unwrap()
    }

    #[test]
    fn caps_are_reached_but_never_passed() {
        let caps = SpendCaps {
            day: usd(5.0),
            thread: usd(2.0),
        };
        let rows = [
            (4.60, 0.0, Some(0.40), Ok(usd(0.40))),
            (4.61, 0.0, Some(0.40), Err(Overspend::Day)),
            (0.0, 1.60, Some(0.40), Ok(usd(0.40))),
            (0.0, 1.70, Some(0.40), Err(Overspend::Thread)),
            (0.0, 0.0, None, Err(Overspend::Unpriced)),
            (0.0, 0.0, Some(0.0), Ok(Usd::ZERO)),
        ];
        for (day, thread, worst, want) in rows {
            let spent = Spent {
                day: usd(day),
                thread: usd(thread),
            };
            let worst = worst.map(usd);
            assert_eq!(caps.admit(spent, worst), want, "{day} {thread} {worst:?}");
        }
        let unreadable = Spent {
            day: Usd::UNREADABLE,
            thread: Usd::ZERO,
        };
        assert_eq!(caps.admit(unreadable, Some(Usd::ZERO)), Err(Overspend::Day));
    }

    #[test]
    fn amounts_are_read_and_shown_without_losing_a_cent() {
        assert_eq!(usd(0.1).plus(usd(0.2)), usd(0.3));
        assert_eq!(usd(1.234_501).to_string(), "$1.24");
        assert_eq!(usd(12.0).to_string(), "$12.00");
        for wrong in [-0.01, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Usd::from_dollars(wrong), None);
        }
        assert_eq!(Usd::from_dollars(f64::INFINITY), Some(Usd::UNREADABLE));
    }

    proptest! {
        // I6: settled plus reserved never passes a cap, as long as no turn costs more than its worst case.
        #[test]
        fn i6_no_history_of_turns_passes_a_cap(turns in prop::collection::vec((0_u8..6, 0_u8..3, 0_u64..3_000_000, 0_u64..3_000_000, any::<bool>()), 0..60)) {
            let caps = SpendCaps { day: usd(5.0), thread: usd(2.0) };
            let mut ledger = DayLedger::default();
            for (attempt, thread, worst, cost, settles) in turns {
                let (attempt, thread) = (attempt.to_string(), thread.to_string());
                if settles {
                    let promised = ledger.reserved.get(&attempt).map_or(Usd::ZERO, |(_, amount)| *amount);
                    ledger.settle(&attempt, Some(Usd::from_micros(cost).min(promised)));
                    let once = ledger.clone();
                    ledger.settle(&attempt, Some(Usd::from_micros(cost)));
                    prop_assert_eq!(&once, &ledger);
                } else {
                    let before = ledger.spent(&thread);
                    if ledger.reserve(&attempt, &thread, Some(Usd::from_micros(worst)), &caps).is_err() {
                        prop_assert_eq!(before, ledger.spent(&thread));
                    }
                }
                for thread in 0..3 {
                    let spent = ledger.spent(&thread.to_string());
                    prop_assert!(spent.day <= caps.day && spent.thread <= caps.thread);
                }
            }
        }
    }
}
