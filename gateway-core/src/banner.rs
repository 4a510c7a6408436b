//! What routing says: why the work moved, waits or is held (section 3.7 of the routing contract). Words only; one of them
//! takes the place of the gate's line in a turn.
//!
//! Subscriptions are called what the configuration calls them, so that it is always clear which one is meant.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::duration::time_until;
use crate::spend::Usd;
use crate::switch::decide::{HoldReason, SwitchReason, WaitReason};
use crate::switch::eligibility::{RejectReason, Rejection};
use crate::switch::facts::{Facts, Selection};
use crate::switch::look::{Cycle, Look};
use crate::switch::machine::{Banner, Place};
use crate::switch::{Board, caps};

/// The sentence for a banner, as of now; clock times in `zone`. `rejected` = who was considered and not taken.
pub fn text(
    banner: &Banner,
    rejected: &[Rejection],
    place: &Place,
    facts: &Facts,
    zone: &TimeZone,
    now: Timestamp,
) -> String {
    let board = Board::new(facts, now);
    match banner {
        Banner::Continued { from, to, reason } => continued(&board, from, to, *reason),
        Banner::Waiting { reason, until } => {
            waiting(&board, rejected, place, *reason, *until, zone)
        }
        Banner::Held(reason) => held(&board, rejected, *reason),
        Banner::SwitchedBack { to, still_limited } => {
            let back = format!("Switched back to {}.", named(to));
            match still_limited {
                true => {
                    format!("{back} It is still limited: the next message waits for its reset.")
                }
                false => back,
            }
        }
    }
}

fn continued(board: &Board<'_>, from: &Place, to: &Place, reason: SwitchReason) -> String {
    let look = fullest(board, from);
    let left = from.subscription.as_str();
    if reason == SwitchReason::Exhausted {
        let paid = board
            .login(&to.subscription)
            .is_some_and(|state| state.login.metered);
        let limit = look
            .as_ref()
            .map_or_else(String::new, |look| format!("{} ", window(look)));
        let on = match paid {
            true => format!("Continued on {} (paid). {}", named(to), money(board, to)),
            false => format!("Continued on {}.", named(to)),
        };
        return format!("{left} hit its {limit}limit. {on}");
    }
    let Some(look) = look else {
        return format!("{left} is nearly full. This turn runs on {}.", named(to));
    };
    let used = look.fullness().round();
    let burn = board
        .expected_burn(&from.subscription, look.window)
        .filter(|_| reason == SwitchReason::Predicted);
    let burn = burn.map_or_else(String::new, |burn| {
        format!(" (about {:.0}% per turn)", burn.round())
    });
    format!(
        "{left} is at {used:.0}% of its {} window{burn}. This turn runs on {}.",
        window(&look),
        named(to)
    )
}

fn money(board: &Board<'_>, to: &Place) -> String {
    let chain = &board.facts.chain;
    let entry = chain
        .iter()
        .find(|entry| entry.subscription == to.subscription && entry.model == to.model);
    let worst = entry.and_then(|entry| entry.price).unwrap_or(Usd::ZERO);
    format!(
        "Up to {worst} this turn, {} of {} today.",
        board.facts.spent.day, board.facts.settings.paid.caps.day
    )
}

fn waiting(
    board: &Board<'_>,
    rejected: &[Rejection],
    place: &Place,
    reason: WaitReason,
    until: Option<Timestamp>,
    zone: &TimeZone,
) -> String {
    let name = place.subscription.as_str();
    let resets = match until {
        Some(until) => format!(
            "{name} resets at {} (in {}). Waiting, then continuing here.",
            clock(until, board.now, zone),
            time_until(Some(until), board.now)
        ),
        None => {
            format!("{name} is looked at again from time to time. Waiting, then continuing here.")
        }
    };
    match reason {
        WaitReason::NoCandidate if !rejected.is_empty() => {
            format!("{} {resets}", no_room(board, rejected))
        }
        WaitReason::Cap => format!("{} {resets}", cap(board)),
        _ => resets,
    }
}

/// The clock time, with the day where it is another one.
fn clock(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (there, here) = (zone.to_datetime(at), zone.to_datetime(now));
    let form = match there.date() == here.date() {
        true => "%H:%M",
        false => "%a %-d %b %H:%M",
    };
    there.strftime(form).to_string()
}

fn held(board: &Board<'_>, rejected: &[Rejection], reason: HoldReason) -> String {
    let unknown = "Reset time unavailable; choose an account or retry.";
    match reason {
        HoldReason::ResetUnknown if !rejected.is_empty() => {
            format!("{} {unknown}", no_room(board, rejected))
        }
        HoldReason::ResetUnknown => unknown.to_owned(),
        HoldReason::Cap => format!("{} {unknown}", cap(board)),
        HoldReason::ApprovalPending => {
            "A limit was hit; your approval is still asked for.".to_owned()
        }
        HoldReason::NoInterruptAck => {
            "The limited turn does not stop; nothing else is started beside it. `/stop` ends it."
                .to_owned()
        }
    }
}

fn cap(board: &Board<'_>) -> String {
    let settings = &board.facts.settings;
    let of_thread = caps::counted(&board.facts.thread.auto_switches, board.now);
    let (used, cap) = match u32::try_from(of_thread).unwrap_or(u32::MAX) {
        used if used >= settings.cap_thread => (used, settings.cap_thread),
        _ => (
            u32::try_from(caps::counted(&board.facts.environment_switches, board.now))
                .unwrap_or(u32::MAX),
            settings.cap_environment,
        ),
    };
    format!("Automatic switching paused: {used} of {cap} used in 24h.")
}

/// Why nobody took the work, in the words of one line.
fn no_room(board: &Board<'_>, rejected: &[Rejection]) -> String {
    let source = board.facts.source.as_ref();
    let is_source =
        |one: &Rejection| source.is_some_and(|source| source.subscription == one.subscription);
    let reasons: Vec<String> = rejected
        .iter()
        .filter(|one| one.reason != RejectReason::Duplicate && !is_source(one))
        .map(|one| why_not(board, one))
        .collect();
    format!("No account has confirmed room: {}.", reasons.join("; "))
}

/// Why an entry of the chain was not taken, in words.
pub fn why_not(board: &Board<'_>, rejection: &Rejection) -> String {
    let name = rejection.subscription.as_str();
    let looks = board
        .facts
        .chain
        .get(rejection.position)
        .map(|entry| board.looks(entry))
        .unwrap_or_default();
    let oldest = looks.iter().filter_map(|look| look.age_ms).max();
    let full = looks
        .iter()
        .max_by(|a, b| a.fullness().total_cmp(&b.fullness()));
    let what = match rejection.reason {
        RejectReason::Duplicate => "stands further up".to_owned(),
        RejectReason::Unknown => "is not configured".to_owned(),
        RejectReason::Disabled => "is switched off".to_owned(),
        RejectReason::NotInstalled => "is not set up".to_owned(),
        RejectReason::Unauthenticated => "is not known to be logged in".to_owned(),
        RejectReason::Unavailable => "is not available".to_owned(),
        RejectReason::IdentityUnknown => "may be the same allowance".to_owned(),
        RejectReason::SameQuota => "is the same allowance, or was tried".to_owned(),
        RejectReason::Cooling => "failed a moment ago".to_owned(),
        RejectReason::Privilege => "cannot keep the permissions of this chat".to_owned(),
        RejectReason::ContextTooSmall => "is too small for the request".to_owned(),
        RejectReason::PaidNotAllowed => "costs money and is not opted in".to_owned(),
        RejectReason::SpendCap => "would pass the spending cap".to_owned(),
        RejectReason::NoData => "has no reading".to_owned(),
        RejectReason::Ambiguous => "has an unclear reading".to_owned(),
        RejectReason::Stale => match oldest {
            Some(ms) if ms >= 0 => format!("reading is {}m old", ms / 60_000),
            _ => "reading is not of now".to_owned(),
        },
        RejectReason::WindowRolled => "has reset and was not read since".to_owned(),
        RejectReason::Exhausted => full.map_or_else(
            || "is full".to_owned(),
            |look| format!("{} is full", window(look)),
        ),
        RejectReason::Headroom => full.map_or_else(
            || "has too little room".to_owned(),
            |look| format!("{} is at {:.0}%", window(look), look.fullness().round()),
        ),
        RejectReason::Hysteresis => "is hardly emptier".to_owned(),
    };
    format!("{name} {what}")
}

/// A window as people call it.
pub fn window(look: &Look<'_>) -> &'static str {
    match look.cycle {
        Cycle::Session => "5-hour",
        Cycle::Weekly => "weekly",
        Cycle::Monthly => "monthly",
    }
}

/// The fullest window of a place; `None` = nothing is known of it.
fn fullest<'f>(board: &Board<'f>, place: &Place) -> Option<Look<'f>> {
    let selection = Selection::new(place.subscription.as_str(), place.model.as_deref());
    let looks = board.looks(&selection);
    looks
        .into_iter()
        .max_by(|a, b| a.fullness().total_cmp(&b.fullness()))
}

/// A place as people call it.
pub fn named(place: &Place) -> String {
    match &place.model {
        Some(model) => format!("{} {model}", place.subscription),
        None => place.subscription.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{HOUR_S, at, base, now};

    fn place(id: &str, model: &str) -> Place {
        Place {
            subscription: id.into(),
            model: Some(model.to_owned()),
        }
    }

    fn say(banner: &Banner, rejected: &[Rejection], facts: &Facts) -> String {
        let from = place("claude", "opus");
        text(banner, rejected, &from, facts, &TimeZone::UTC, now())
    }

    fn moved(reason: SwitchReason) -> Banner {
        Banner::Continued {
            from: place("claude", "opus"),
            to: place("codex", "gpt-6.1-sol"),
            reason,
        }
    }

    #[test]
    fn a_move_says_why_and_where_to() {
        let mut facts = base();
        assert_eq!(
            say(&moved(SwitchReason::Exhausted), &[], &facts),
            "claude hit its 5-hour limit. Continued on codex gpt-6.1-sol."
        );
        facts.readings[0].used_pct = Some(84.0);
        facts.burn = vec![crate::switch::facts::Burn {
            subscription: "claude".into(),
            window: "five_hour".to_owned(),
            samples: vec![Some(7.0); 3],
        }];
        assert_eq!(
            say(&moved(SwitchReason::Predicted), &[], &facts),
            "claude is at 84% of its 5-hour window (about 7% per turn). This turn runs on codex gpt-6.1-sol."
        );
        assert_eq!(
            say(&moved(SwitchReason::HardGuard), &[], &facts),
            "claude is at 84% of its 5-hour window. This turn runs on codex gpt-6.1-sol."
        );
    }

    #[test]
    fn a_wait_says_until_when_and_why_nobody_else() {
        let facts = base();
        let wait = |reason| Banner::Waiting {
            reason,
            until: Some(at(3 * HOUR_S)),
        };
        let rejected = [Rejection {
            position: 0,
            subscription: "codex".into(),
            reason: RejectReason::Headroom,
        }];
        let clock = clock(at(3 * HOUR_S), now(), &TimeZone::UTC);
        assert_eq!(
            say(&wait(WaitReason::ResetImminent), &[], &facts),
            format!("claude resets at {clock} (in 3h). Waiting, then continuing here.")
        );
        assert_eq!(
            say(&wait(WaitReason::NoCandidate), &rejected, &facts),
            format!(
                "No account has confirmed room: codex 5-hour is at 40%. claude resets at {clock} (in 3h). Waiting, then continuing here."
            )
        );
        assert_eq!(
            say(&Banner::Held(HoldReason::ResetUnknown), &[], &facts),
            "Reset time unavailable; choose an account or retry."
        );
    }
}
