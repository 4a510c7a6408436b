//! How long a subscription is out, and whether that is worth waiting for (section 3.3 of the contract, notes N13 and N14).
//!
//! Two instants, on purpose. [`Outage::until`] is when the thread goes on if nobody else can take it: the latest reset of
//! what is truly spent. [`Outage::blocked_until`] decides between waiting and moving, and also counts a week or a month that
//! is nearly gone: five minutes of waiting for a session are no help if the week ends in the turn after it.

use jiff::Timestamp;

use super::evidence::Board;
use super::facts::{LimitReport, Selection};
use super::look::{self, Cycle, Look, Window};
use crate::plan::ScopeView;
use crate::usage::blocking::TOLERANCE;
use crate::usage::scope::{self, Reach};

/// Until when a subscription is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The latest reset of the spent windows; `None` = one of them has none.
    pub until: Option<Timestamp>,
    /// The same with what is nearly gone.
    pub blocked_until: Option<Timestamp>,
}

/// A window that counts as spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent<'f> {
    pub window: &'f str,
    pub cycle: Cycle,
    pub resets_at: Option<Timestamp>,
}

impl<'f> From<&Look<'f>> for Spent<'f> {
    fn from(look: &Look<'f>) -> Self {
        Self {
            window: look.window,
            cycle: look.cycle,
            resets_at: look.resets_at,
        }
    }
}

impl Outage {
    /// The outage of these spent windows, among everything the subscription's windows say.
    pub fn of(spent: &[Spent<'_>], looks: &[Look<'_>], nearly_gone_pct: f64) -> Self {
        let until = latest(spent.iter().map(|window| window.resets_at));
        let session = spent.iter().any(|window| window.cycle == Cycle::Session);
        let gone = |look: &&Look<'_>| {
            session
                && look.cycle != Cycle::Session
                && look.is_usable()
                && look.fullness() >= nearly_gone_pct - TOLERANCE
        };
        let nearly_gone = looks.iter().filter(gone).map(|look| look.resets_at);
        let blocking = spent.iter().map(|window| window.resets_at);
        Self {
            until,
            blocked_until: latest(blocking.chain(nearly_gone)),
        }
    }

    /// Whether it ends within so many milliseconds, inclusive; an unknown end does not.
    pub fn ends_within(&self, limit_ms: i64, board: &Board<'_>) -> bool {
        self.blocked_until
            .is_some_and(|at| -board.age_ms(at) <= limit_ms)
    }
}

/// The latest of these resets; `None` = there is none, or one of them is unknown.
pub fn latest(resets: impl Iterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    let mut latest = None;
    for reset in resets {
        latest = latest.max(Some(reset?));
    }
    latest
}

/// The outage after a refused turn. The window the refusal names is spent; without a name those at 100 are, else the fullest
/// one is, as percentages may stick at 99 on an account that refuses.
pub fn after_refusal(board: &Board<'_>, source: &Selection, report: &LimitReport) -> Outage {
    let windows = board.windows(source);
    let looks: Vec<_> = windows
        .iter()
        .filter_map(|window| board.fullest(window))
        .collect();
    let reported = reset_of(board, report);
    let full = looks.iter().filter(|look| look.exhausted);
    let spent: Vec<Spent<'_>> = match &report.window {
        Some(name) => {
            let named = Named {
                board,
                source,
                report,
                name,
                reported,
            };
            let others = full.filter(|look| !named.is(look.window, &windows));
            let others: Vec<_> = others.map(Spent::from).collect();
            named.spent(&windows).into_iter().chain(others).collect()
        }
        None => unnamed(full.map(Spent::from).collect(), &looks, report, reported),
    };
    let nearly_gone = board.facts.settings.weekly_nearly_gone_pct;
    Outage::of(&spent, &looks, nearly_gone)
}

/// The outage as the report alone tells it.
pub fn reported(board: &Board<'_>, report: &LimitReport) -> Outage {
    let until = reset_of(board, report);
    Outage {
        until,
        blocked_until: until,
    }
}

fn reset_of(board: &Board<'_>, report: &LimitReport) -> Option<Timestamp> {
    let coming = report.resets_at.filter(|at| *at > board.now)?;
    board.believed(coming)
}

/// A refusal that names its window.
struct Named<'a, 'f> {
    board: &'a Board<'f>,
    source: &'a Selection,
    report: &'a LimitReport,
    name: &'a str,
    reported: Option<Timestamp>,
}

impl<'a> Named<'a, '_> {
    fn spent(&self, windows: &[Window<'_>]) -> Vec<Spent<'a>> {
        let named: Vec<_> = windows.iter().filter(|window| self.names(window)).collect();
        if named.is_empty() {
            let known = || self.board.reset_of(&self.source.subscription, self.name);
            return vec![self.one(None, self.reported.or_else(known))];
        }
        let one = |window: &&Window<'_>| {
            let told = || self.board.fullest(window)?.resets_at;
            let known = || self.board.coming_reset(window);
            let reset = self.reported.or_else(told).or_else(known);
            self.one(Some(window.cycle()), reset)
        };
        named.iter().map(one).collect()
    }

    fn one(&self, known: Option<Cycle>, resets_at: Option<Timestamp>) -> Spent<'a> {
        let said = self.report.duration_mins;
        let of_id = || Cycle::of(self.name, said);
        Spent {
            window: self.name,
            cycle: match (said, known) {
                (None, Some(cycle)) => cycle,
                _ => of_id(),
            },
            resets_at,
        }
    }

    fn is(&self, id: &str, windows: &[Window<'_>]) -> bool {
        let mut same = windows.iter().filter(|window| window.id() == id);
        same.any(|window| self.names(window))
    }

    fn names(&self, window: &Window<'_>) -> bool {
        let scoped = self.report.scope.as_ref().map(|scope| {
            let reach = scope::reach(self.name, scope::view(Some(scope)));
            window.limits(reach)
        });
        window.id() == self.name && scoped.unwrap_or(true)
    }
}

/// The spent windows of a refusal without a name. Its reset speaks for the only window, and for those that have none.
fn unnamed<'f>(
    mut spent: Vec<Spent<'f>>,
    looks: &[Look<'f>],
    report: &LimitReport,
    reported: Option<Timestamp>,
) -> Vec<Spent<'f>> {
    if spent.is_empty() {
        let fullest = looks
            .iter()
            .max_by(|a, b| a.fullness().total_cmp(&b.fullness()));
        spent.push(fullest.map_or(
            Spent {
                window: "",
                cycle: Cycle::of("", report.duration_mins),
                resets_at: None,
            },
            Spent::from,
        ));
    }
    if let ([only], Some(reset)) = (spent.as_mut_slice(), reported) {
        only.resets_at = Some(reset);
    }
    for window in &mut spent {
        window.resets_at = window.resets_at.max(reported);
    }
    spent
}

/// Whether a report is about a window that limits this selection. One without a name is about whatever runs.
pub fn concerns(report: &LimitReport, source: &Selection) -> bool {
    let Some(window) = &report.window else {
        let scope = report.scope.as_ref();
        return scope.is_none_or(|scope| {
            let reach = scope::reach("", scope::view(Some(scope)));
            look::applies(reach, source)
        });
    };
    let reach = match &report.scope {
        Some(scope) => scope::reach(window, scope::view(Some(scope))),
        None => scope::reach(window, ScopeView::Unstated),
    };
    reach != Reach::Spend && look::applies(reach, source)
}
