//! From the settings and what is known to the entries shown, the JSON document and the remarks below. Pure.

use commands::usage::{Room, room, subscriptions};
use commands::{EntryState, Verdict};
use gateway_core::ids::ProfileId;
use gateway_core::route::{Chain, Route};
use gateway_core::usage::freshness::freshness;
use gateway_core::usage::scope;
use gateway_core::usage::{Reading, WindowKind};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Answers;
use crate::config::{DEFAULT_PROFILE, ProfileSettings, Settings};
use crate::slash;
use crate::usage::Evidence;
use crate::usage::probes::Told;

/// Stands for the model of a subscription that no chain uses.
const ANY_MODEL: &str = "*";

/// What is shown: a profile's chain, or every chain (the default profile's first) and then what is in none.
pub(super) fn entries(
    settings: &Settings,
    profile: Option<&ProfileId>,
    evidence: &Evidence,
    now: Timestamp,
) -> Vec<EntryState> {
    let mut entries: Vec<EntryState> = Vec::new();
    for profile in profiles(settings, profile) {
        let mut chain = profile.chain_for(settings);
        evidence.group_entries(&mut chain);
        for entry in slash::entries(&chain, evidence, now) {
            if !entries.iter().any(|known| known.route == entry.route) {
                entries.push(entry);
            }
        }
    }
    if profile.is_none() {
        for id in settings.subscriptions.keys() {
            if !entries.iter().any(|known| known.route.subscription == *id) {
                let route = Route::new(id.as_str(), ANY_MODEL);
                let mut chain = Chain {
                    entries: settings.entry(&route).into_iter().collect(),
                };
                evidence.group_entries(&mut chain);
                entries.extend(slash::entries(&chain, evidence, now));
            }
        }
    }
    entries
}

fn profiles<'a>(
    settings: &'a Settings,
    wanted: Option<&'a ProfileId>,
) -> impl Iterator<Item = &'a ProfileSettings> {
    let is_default = |profile: &&ProfileSettings| profile.id.as_str() == DEFAULT_PROFILE;
    let first = settings.profiles.values().filter(is_default);
    let rest = settings
        .profiles
        .values()
        .filter(move |profile| !is_default(profile));
    first
        .chain(rest)
        .filter(move |profile| wanted.is_none_or(|wanted| profile.id == *wanted))
}

/// What is said below the table: who was asked and did not tell, and what is wrong with the registry's file.
pub(super) fn remarks(evidence: &Evidence, told: &Answers) -> Vec<String> {
    let asked = told.iter().filter_map(|(id, told)| match told {
        Told::Failed(why) => Some(format!("{id} was asked and did not tell: {why}")),
        Told::Late => Some(format!(
            "{id} was asked and has not told yet; look again in a moment"
        )),
        Told::Windows(_) | Told::Unsupported(_) => None,
    });
    let fault = evidence.fault.iter().map(ToString::to_string);
    asked.chain(fault).collect()
}

/// The document of `--json`.
pub(super) fn document(
    settings: &Settings,
    entries: &[EntryState],
    evidence: &Evidence,
    told: &Answers,
    now: Timestamp,
) -> Value {
    let subscriptions: Vec<Value> = subscriptions(entries)
        .map(|entry| subscription(settings, entries, entry, told, now))
        .collect();
    json!({
        "now": now,
        "subscriptions": subscriptions,
        "fault": evidence.fault.as_ref().map(ToString::to_string),
    })
}

fn subscription(
    settings: &Settings,
    entries: &[EntryState],
    entry: &EntryState,
    told: &Answers,
    now: Timestamp,
) -> Value {
    let id = &entry.route.subscription;
    let of_it = || {
        entries
            .iter()
            .filter(|other| other.route.subscription == *id)
    };
    let models: Vec<Value> = of_it()
        .map(|entry| {
            let room = room(entry, now);
            json!({ "model": entry.route.model, "verdict": room.word(), "until": until(&room), "window": window(&room) })
        })
        .collect();
    // The subscription's own word is that of its first route, unless another one has room.
    let rooms: Vec<Room> = of_it().map(|entry| room(entry, now)).collect();
    let open = |room: &&Room| {
        !matches!(
            room,
            Room::Spent { .. } | Room::PassedOver | Room::LockedOut
        )
    };
    let verdict = rooms.iter().find(open).or(rooms.first());
    json!({
        "name": id,
        "slug": settings.subscriptions.get(id).map(|subscription| &subscription.slug),
        "billing": entry.billing,
        "verdict": verdict.map(Room::word),
        "eligible": of_it().any(|entry| entry.verdict == Verdict::Eligible),
        "until": verdict.and_then(until),
        "models": models,
        "shares_with": entry.shares,
        "windows": entry.readings.iter().map(|reading| window_of(reading, now)).collect::<Vec<_>>(),
        "probe": told.get(id).map(probe),
    })
}

fn until(room: &Room) -> Option<Timestamp> {
    match room {
        Room::Spent { until, .. } => Some(*until),
        _ => None,
    }
}

fn window(room: &Room) -> Option<&str> {
    match room {
        Room::Spent { window, .. } => Some(window),
        _ => None,
    }
}

fn window_of(reading: &Reading, now: Timestamp) -> Value {
    let age = reading
        .observed_at
        .map(|at| now.as_second() - at.as_second());
    json!({
        "id": reading.window,
        "kind": WindowKind::of(&reading.window, reading.duration_mins),
        "scope": reading.scope.as_ref().map(scope::text),
        "used_pct": reading.used_pct,
        "status": reading.status,
        "resets_at": reading.resets_at,
        "duration_mins": reading.duration_mins,
        "observed_at": reading.observed_at,
        "age_s": age,
        "freshness": freshness(&reading.view(), now.as_millisecond()).word(),
        "source": reading.source,
    })
}

fn probe(told: &Told) -> Value {
    match told {
        Told::Windows(count) => json!({ "end": "answered", "windows": count }),
        Told::Unsupported(why) => json!({ "end": "unsupported", "why": why }),
        Told::Failed(why) => json!({ "end": "failed", "why": why }),
        Told::Late => json!({ "end": "late" }),
    }
}
