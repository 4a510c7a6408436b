//! One row of the audit in words. The machine is stepped again with what was known then, so that what is shown is the
//! decision itself and no retelling of it. Pure.

use gateway_core::banner::{named, why_not};
use gateway_core::switch::facts::Selection;
use gateway_core::switch::look::Look;
use gateway_core::switch::machine::{self, Effect, Event, Place, RunEnd};
use gateway_core::switch::{Board, Rejection};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::store::routing::AuditRow;

/// What the step of a row decided, as it comes out again.
struct Again {
    effects: Vec<Effect>,
}

impl Again {
    fn of(row: &AuditRow) -> Self {
        let replay = &row.replay;
        let (_, effects) = machine::step(&replay.machine, &replay.event, &replay.facts, row.at);
        Self { effects }
    }

    fn rejected(&self) -> Vec<Rejection> {
        let of = |effect: &Effect| match effect {
            Effect::Audit(audit) => audit.rejected.clone(),
            _ => Vec::new(),
        };
        self.effects.iter().flat_map(of).collect()
    }

    fn outcome(&self) -> Vec<String> {
        self.effects.iter().filter_map(outcome).collect()
    }
}

/// The lines for a person; clock times in `zone`.
pub fn lines(row: &AuditRow, zone: &TimeZone) -> Vec<String> {
    let again = Again::of(row);
    let facts = &row.replay.facts;
    let board = Board::new(facts, row.at);
    let mut lines = vec![format!(
        "{} {}: {}",
        zone.to_datetime(row.at).strftime("%a %H:%M:%S"),
        row.kind.word(),
        asked(&row.replay.event, &row.replay.machine.place)
    )];
    let places = std::iter::once(source(row)).chain(facts.chain.iter().cloned());
    let mut shown: Vec<Selection> = Vec::new();
    for place in places {
        if !shown.contains(&place) {
            lines.push(format!(
                "  known of {}: {}",
                name(&place),
                known(&board, &place)
            ));
            shown.push(place);
        }
    }
    for rejection in again.rejected() {
        lines.push(format!(
            "  not taken: {} ({})",
            why_not(&board, &rejection),
            rejection.reason.word()
        ));
    }
    let cap = facts.settings.cap_thread;
    let used = gateway_core::switch::caps::counted(&row.replay.machine.switches, row.at);
    lines.push(format!("  automatic switches in 24h: {used} of {cap}"));
    lines.extend(
        again
            .outcome()
            .into_iter()
            .map(|what| format!("  → {what}")),
    );
    lines
}

/// The same as one value.
pub fn value(row: &AuditRow) -> Value {
    let again = Again::of(row);
    let facts = &row.replay.facts;
    let board = Board::new(facts, row.at);
    let rejected: Vec<Value> = again
        .rejected()
        .iter()
        .map(|one| {
            json!({
                "subscription": one.subscription.as_str(),
                "reason": one.reason.word(),
                "words": why_not(&board, one),
            })
        })
        .collect();
    let candidates: Vec<Value> = facts
        .chain
        .iter()
        .map(|place| json!({ "route": name(place), "windows": windows(&board, place) }))
        .collect();
    json!({
        "seq": row.seq,
        "at": row.at.to_string(),
        "turn": row.turn.as_ref().map(|turn| turn.as_str()),
        "conversation": row.conversation.as_str(),
        "kind": row.kind.word(),
        "episode": row.episode,
        "attempt": row.attempt,
        "asked": asked(&row.replay.event, &row.replay.machine.place),
        "source": { "route": name(&source(row)), "windows": windows(&board, &source(row)) },
        "candidates": candidates,
        "rejected": rejected,
        "cap": {
            "used": gateway_core::switch::caps::counted(&row.replay.machine.switches, row.at),
            "limit": facts.settings.cap_thread,
        },
        "spend": {
            "day_micros": facts.spent.day.micros(),
            "thread_micros": facts.spent.thread.micros(),
        },
        "outcome": again.outcome(),
    })
}

fn source(row: &AuditRow) -> Selection {
    let place = &row.replay.machine.place;
    Selection::new(place.subscription.as_str(), place.model.as_deref())
}

fn name(place: &Selection) -> String {
    named(&Place {
        subscription: place.subscription.clone(),
        model: place.model.clone(),
    })
}

fn asked(event: &Event, place: &Place) -> String {
    let on = named(place);
    match event {
        Event::TurnRequested { .. } => format!("a message came while on {on}"),
        Event::LimitReported { report, .. } => format!(
            "{on} reported a limit in the middle of a turn{}",
            of_window(report.window.as_deref())
        ),
        Event::BoundaryReached { .. } => "the open tool ended".to_owned(),
        Event::InterruptAcked { .. } => "the turn stopped".to_owned(),
        Event::TurnEnded { end, .. } => match end {
            RunEnd::Answered => format!("{on} answered"),
            RunEnd::Stopped => format!("the turn on {on} was stopped"),
            RunEnd::Failed { report, .. } => {
                format!(
                    "{on} refused the turn{}",
                    of_window(report.window.as_deref())
                )
            }
        },
        Event::Checked { .. } => format!("where does the work of {on} go on?"),
        Event::SwitchAccepted { .. } => "the new place was started".to_owned(),
        Event::SwitchFailed { .. } => "the new place did not start".to_owned(),
        Event::FirstOutput { .. } => "the new place answers".to_owned(),
        Event::Walked { place, .. } => format!("the walk went on to {}", named(place)),
        Event::GivenUp { .. } => "the turn was given up".to_owned(),
        Event::Tick => "it was time to look again".to_owned(),
        Event::NewReading => "a new reading came".to_owned(),
        Event::Selected { place } => format!("a person chose {}", named(place)),
        Event::SwitchBack { .. } => "a person took the switch back".to_owned(),
        Event::Paused(true) => "a person paused switching".to_owned(),
        Event::Paused(false) => "a person ended the pause".to_owned(),
        Event::Archived => "the conversation was closed".to_owned(),
    }
}

fn of_window(window: Option<&str>) -> String {
    window.map_or_else(String::new, |window| format!(" ({window})"))
}

fn known(board: &Board<'_>, place: &Selection) -> String {
    let looks = board.looks(place);
    if looks.is_empty() {
        return "no reading".to_owned();
    }
    let each: Vec<String> = looks.iter().map(|look| window(look, board.now)).collect();
    each.join("; ")
}

fn window(look: &Look<'_>, now: Timestamp) -> String {
    let level = look
        .level
        .map_or_else(|| "unknown".to_owned(), |level| format!("{level:.0}%"));
    let resets = match look.resets_at {
        Some(at) => format!(
            ", resets in {}",
            gateway_core::duration::time_until(Some(at), now)
        ),
        None => String::new(),
    };
    let age = look
        .age_ms
        .map_or_else(String::new, |ms| format!(", read {}s ago", ms / 1000));
    let doubt = match (look.fresh, look.rolled) {
        (_, true) => ", its cycle has ended since",
        (false, _) => ", not fresh",
        _ => "",
    };
    format!("{} {level}{resets}{age}{doubt}", look.window)
}

fn windows(board: &Board<'_>, place: &Selection) -> Vec<Value> {
    let each = |look: &Look<'_>| {
        json!({
            "window": look.window,
            "used_pct": look.level,
            "resets_at": look.resets_at.map(|at| at.to_string()),
            "age_ms": look.age_ms,
            "fresh": look.fresh,
            "rolled": look.rolled,
            "exhausted": look.exhausted,
        })
    };
    board.looks(place).iter().map(each).collect()
}

fn outcome(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::StartTurn { on, .. } => format!("the turn runs on {}", named(on)),
        Effect::Switch { to, reason, .. } => format!(
            "goes on at {} ({})",
            named(to),
            serde_json::to_value(reason).ok()?.as_str()?
        ),
        Effect::Resume { on, .. } => format!("goes on at {}", named(on)),
        Effect::Interrupt { .. } => "the turn is stopped at a boundary".to_owned(),
        Effect::AbortTool { .. } => "the open tool is stopped; its outcome is unknown".to_owned(),
        Effect::Banner(machine::Banner::Waiting { until, .. }) => match until {
            Some(until) => format!("waits until {until}"),
            None => "waits, and looks again from time to time".to_owned(),
        },
        Effect::Banner(machine::Banner::Held(_)) => "is held for a person".to_owned(),
        Effect::Banner(machine::Banner::Continued { to, .. }) => {
            format!("has arrived at {}", named(to))
        }
        Effect::Banner(machine::Banner::SwitchedBack { to, .. }) => {
            format!("back to {}", named(to))
        }
        Effect::CancelWake => "the wait is over".to_owned(),
        _ => return None,
    })
}
