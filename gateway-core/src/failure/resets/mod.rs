//! When a refused subscription may be asked again, from what the answer states. Nothing stated, nothing derived.
//!
//! Precedence: the spent window's own reset (of several the latest), the vendor's absolute fields, its relative fields, its
//! hints, `retry-after-ms`, `retry-after`, the empty budget's reset header, an instant in prose, a wait in prose. Relative
//! values count from the receipt. A stated time is a measurement and is not clamped; one that is past, zero or absurdly far
//! is none.

mod civil;
pub(super) mod clock;
pub(super) mod duration;
pub(super) mod fields;
mod headers;
mod member;
mod names;
pub(super) mod number;
pub(super) mod prose;
mod token;
pub(super) mod when;

use jiff::{SignedDuration, Timestamp};

use self::clock::Clock;
use self::fields::{Form, Room, Stated};
use self::when::Found;
use super::evidence::Evidence;

/// Beside a limit of a day or more, a hint below this is about the next try, not about the limit.
const SHORT_HINT: SignedDuration = SignedDuration::from_mins(5);

/// Where a reset was stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The spent window itself.
    Window,
    Field,
    /// A hint of the vendor for the next try, or `retry-after`.
    Hint,
    /// A budget of requests or tokens in `x-ratelimit-*`.
    Budget,
    Prose,
}

/// What an answer states about trying again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reset {
    pub(super) at: Option<Timestamp>,
    pub(super) source: Option<Source>,
    /// A time of day was stated that has just passed.
    pub(super) just_passed: bool,
}

/// Reads everything the evidence states. `long` = a limit of a day or more is named.
pub(super) fn stated(evidence: &Evidence, clock: &Clock<'_>, long: bool) -> Reset {
    let field = |wanted: fn(&Stated) -> bool| innermost(&evidence.stated, clock, wanted);
    let believed = |at: &Timestamp| !long || at.duration_since(clock.now) > SHORT_HINT;
    let typed = headers::spent_window(&evidence.headers, clock)
        .into_iter()
        .chain(spent_field(&evidence.stated, clock))
        .max()
        .map(|at| (at, Source::Window))
        .or_else(|| {
            Some((
                field(|stated| !stated.hint && stated.form == Form::Instant)?,
                Source::Field,
            ))
        })
        .or_else(|| {
            Some((
                field(|stated| !stated.hint && stated.form != Form::Instant)?,
                Source::Field,
            ))
        })
        .or_else(|| Some((field(|stated| stated.hint).filter(believed)?, Source::Hint)))
        .or_else(|| {
            Some((
                headers::retry_after(&evidence.headers, clock).filter(believed)?,
                Source::Hint,
            ))
        })
        .or_else(|| {
            Some((
                headers::empty_budget(&evidence.headers, clock)?,
                Source::Budget,
            ))
        });
    if let Some((at, source)) = typed {
        return Reset {
            at: Some(at),
            source: Some(source),
            just_passed: false,
        };
    }
    let inner = in_prose(&evidence.message, clock, evidence.google && long);
    if inner != Reset::default() {
        return inner;
    }
    let around = in_prose(&evidence.outer, clock, evidence.google && long);
    if around != Reset::default() {
        return around;
    }
    let beside = spent_field(&evidence.beside, clock);
    Reset {
        at: beside,
        source: beside.map(|_| Source::Window),
        just_passed: false,
    }
}

pub(super) fn in_prose(text: &str, clock: &Clock<'_>, hints_lie: bool) -> Reset {
    let prose = prose::read(text, clock);
    let wait = prose
        .wait
        .and_then(|wait| clock.after(wait))
        .filter(|at| !hints_lie || at.duration_since(clock.now) > SHORT_HINT);
    let at = match prose.at {
        Some(Found::At(at)) => Some(at),
        _ => wait,
    };
    Reset {
        at,
        source: at.map(|_| Source::Prose),
        just_passed: at.is_none() && prose.at == Some(Found::JustPassed),
    }
}

fn spent_field(stated: &[Stated], clock: &Clock<'_>) -> Option<Timestamp> {
    let spent = stated.iter().filter(|stated| stated.room == Room::Spent);
    spent.filter_map(|stated| stated.instant(clock)).max()
}

/// The innermost field of a kind whose window is not known to have room.
fn innermost(
    stated: &[Stated],
    clock: &Clock<'_>,
    wanted: fn(&Stated) -> bool,
) -> Option<Timestamp> {
    let fields = stated
        .iter()
        .filter(|stated| wanted(stated) && stated.room != Room::Left);
    let read = fields.filter_map(|stated| Some((stated.depth, stated.instant(clock)?)));
    read.max().map(|(_, at)| at)
}
