//! Readings back into a registry document that others write too: accounts of others stay, members nobody here knows stay,
//! and a window is touched only by newer evidence.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{items, slug, window_id, window_reading};
use crate::ids::SubscriptionId;
use crate::usage::merge::{self, same_window};
use crate::usage::{Reading, ReadingSource, WindowScope, WindowStatus, scope};

/// The schema number this writer knows.
const SCHEMA: u32 = 6;
/// The provider group that holds accounts nobody else published.
const OWN_GROUP: &str = "baton";

/// Puts readings into the document; returns whether anything changed. Anything but an object is replaced by a fresh one.
pub fn put(document: &mut Value, readings: &[Reading], now: Timestamp) -> bool {
    if !document.is_object() {
        *document = json!({ "schema": SCHEMA, "providers": [] });
    }
    let mut places = places(document);
    let mut changed = false;
    for reading in readings
        .iter()
        .filter(|reading| reading.observed_at.is_some())
    {
        changed |= put_one(document, &mut places, &in_milliseconds(reading), now);
    }
    changed
}

/// Instants as the other writers of the file have them, whole milliseconds: readers in older Pythons take nine digits for
/// no instant at all.
fn in_milliseconds(reading: &Reading) -> Reading {
    let cut = |at: Option<Timestamp>| {
        at.map(|at| Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at))
    };
    Reading {
        observed_at: cut(reading.observed_at),
        resets_at: cut(reading.resets_at),
        ..reading.clone()
    }
}

/// Where each account stands: its provider group and its position there, by folded slug.
type Places = HashMap<String, (usize, usize)>;

fn put_one(document: &mut Value, places: &mut Places, reading: &Reading, now: Timestamp) -> bool {
    let Some(account) = account_of(document, places, &reading.subscription) else {
        return false;
    };
    let windows = array(account, "windows");
    let stamp_of_account = account.get("observed_at").cloned();
    let Some(windows) = windows.and_then(|name| account.get_mut(name)?.as_array_mut()) else {
        return false;
    };
    let bare = json!({ "observed_at": stamp_of_account });
    let mut place = None;
    for (at, window) in windows.iter().enumerate() {
        if let Some(old) = window_reading(reading.subscription.clone(), &bare, window)
            && same_window(&old, reading)
        {
            if old == *reading || merge::compare(&old, reading, now).is_gt() {
                return false;
            }
            place = Some(at);
        }
    }
    match place.and_then(|at| windows.get_mut(at)?.as_object_mut()) {
        Some(window) => fill(window, reading),
        None => {
            let mut window = Map::new();
            fill(&mut window, reading);
            windows.push(Value::Object(window));
        }
    }
    restamp(account, now);
    true
}

/// The account to write to: the one published already, else a new one in our own group.
fn account_of<'a>(
    document: &'a mut Value,
    places: &mut Places,
    wanted: &SubscriptionId,
) -> Option<&'a mut Map<String, Value>> {
    let place = match places.get(wanted.key()) {
        Some(place) => *place,
        None => {
            let place = add_account(document, wanted)?;
            places.insert(wanted.key().to_owned(), place);
            place
        }
    };
    document
        .get_mut("providers")?
        .get_mut(place.0)?
        .get_mut("accounts")?
        .get_mut(place.1)?
        .as_object_mut()
}

/// The first account of each slug, found in one pass: a thousand subscriptions must not cost a million looks.
fn places(document: &Value) -> Places {
    let mut places = Places::new();
    for (group, provider) in items(document, "providers").enumerate() {
        for (at, account) in items(provider, "accounts").enumerate() {
            if let Some(slug) = slug(account) {
                places.entry(slug.key().to_owned()).or_insert((group, at));
            }
        }
    }
    places
}

fn add_account(document: &mut Value, wanted: &SubscriptionId) -> Option<(usize, usize)> {
    let document = document.as_object_mut()?;
    array(document, "providers")?;
    let providers = document.get_mut("providers")?.as_array_mut()?;
    let own = |provider: &Value| provider.get("id").and_then(Value::as_str) == Some(OWN_GROUP);
    let group = match providers.iter().position(own) {
        Some(group) => group,
        None => {
            providers.push(json!({ "id": OWN_GROUP, "accounts": [] }));
            providers.len() - 1
        }
    };
    let provider = providers.get_mut(group)?.as_object_mut()?;
    array(provider, "accounts")?;
    let accounts = provider.get_mut("accounts")?.as_array_mut()?;
    let name = wanted.as_str();
    accounts.push(json!({ "key": name, "label": name, "provider_slug": name, "windows": [] }));
    Some((group, accounts.len() - 1))
}

/// Makes sure that a member is a list; `null` and absence become an empty one, anything else is somebody else's business.
fn array<'n>(object: &mut Map<String, Value>, name: &'n str) -> Option<&'n str> {
    let member = object.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = json!([]);
    }
    member.is_array().then_some(name)
}

/// Writes what the reading says; members of the window that nobody here knows stay.
fn fill(window: &mut Map<String, Value>, reading: &Reading) {
    let mut set = |name: &str, value: Value| {
        window.insert(name.to_owned(), value);
    };
    set("key", json!(reading.window));
    set("pct", json!(reading.used_pct));
    set("status", status(reading.status));
    set("resets_at", json!(reading.resets_at));
    set("observed_at", json!(reading.observed_at));
    set("source", json!(source(reading.source)));
    if let Some(mins) = reading.duration_mins {
        set("duration_mins", json!(mins));
    }
    if let Some(stated) = &reading.scope {
        set("scope", json!(scope::text(stated)));
    }
    // Readers of the plain schema know only `scoped`: whatever is not the whole account must not look like it.
    if !matches!(reading.scope, None | Some(WindowScope::Account)) {
        set("scoped", json!(true));
    }
    if let Some(WindowScope::Model(family)) = &reading.scope {
        set("model", json!(family));
    }
}

/// An account whose windows all carry their own stamp gets the oldest of those that still run: a reader that knows only
/// the account's stamp then trusts no window more than it deserves.
fn restamp(account: &mut Map<String, Value>, now: Timestamp) {
    let nobody = SubscriptionId::new("");
    let windows = account
        .get("windows")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut oldest: Option<Timestamp> = None;
    for window in windows {
        if window.get("observed_at").is_none() || window_id(window).is_none() {
            return;
        }
        let Some(reading) = window_reading(nobody.clone(), &Value::Null, window) else {
            return;
        };
        let Some(stamp) = reading.observed_at else {
            return;
        };
        if reading.resets_at.is_none_or(|at| at > now) {
            oldest = Some(oldest.map_or(stamp, |at| at.min(stamp)));
        }
    }
    if let Some(oldest) = oldest {
        account.insert("observed_at".to_owned(), json!(oldest));
    }
}

fn status(status: WindowStatus) -> Value {
    match status {
        WindowStatus::Unknown => Value::Null,
        WindowStatus::Allowed => json!("allowed"),
        WindowStatus::Warning => json!("allowed_warning"),
        WindowStatus::Rejected => json!("rejected"),
    }
}

fn source(source: ReadingSource) -> &'static str {
    match source {
        ReadingSource::Failure => "failure",
        ReadingSource::Event => "event",
        ReadingSource::Header => "header",
        ReadingSource::Probe => "probe",
        ReadingSource::Hub => "hub",
        ReadingSource::Rollout => "rollout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::portal::parse;

    fn at(offset_s: i64) -> Option<Timestamp> {
        Timestamp::from_second(1_789_981_200 + offset_s).ok()
    }

    fn now() -> Timestamp {
        at(0).unwrap()
    }

    fn reading(slug: &str, window: &str, observed_s: i64) -> Reading {
        Reading {
            subscription: slug.into(),
            window: window.to_owned(),
            scope: None,
            used_pct: Some(101.0),
            status: WindowStatus::Rejected,
            resets_at: at(3_600),
            duration_mins: Some(300),
            observed_at: at(observed_s),
            source: ReadingSource::Failure,
        }
    }

    fn back(document: &Value) -> Vec<Reading> {
        parse(document.to_string().as_bytes()).readings
    }

    #[test]
    fn readings_survive_writing_and_reading() {
        let mut model = reading("A", "refusal", -3);
        model.scope = Some(WindowScope::Model("opus".into()));
        let wanted = vec![
            reading("A", "five_hour", -5),
            model,
            reading("b", "seven_day", -1),
        ];
        let mut document = Value::Null;
        assert!(put(&mut document, &wanted, now()));
        assert_eq!(back(&document), wanted);
        assert_eq!(document["schema"], 6);
        assert!(
            !put(&mut document, &wanted, now()),
            "the same again changes nothing"
        );
    }

    #[test]
    fn what_others_wrote_stays() {
        let mut document = json!({
            "schema": 6, "generator": "portal",
            "providers": [
                7,
                {"id": "claude", "accounts": [
                    null,
                    {"key": "vps-1", "provider_slug": " A ", "observed_at": 1_789_981_000, "note": "mine", "windows": [
                        {"key": "five_hour", "pct": 3, "status": "allowed", "unit": "tokens"},
                        {"key": "seven_day", "pct": 9, "status": "allowed"}]},
                    {"key": "vps-2", "label": "no slug"}]}],
        });
        assert!(put(&mut document, &[reading("a", "five_hour", -5)], now()));
        let account = &document["providers"][1]["accounts"][1];
        assert_eq!(document["generator"], "portal");
        assert_eq!(document["providers"][1]["accounts"][2]["key"], "vps-2");
        assert_eq!(account["note"], "mine");
        assert_eq!(account["windows"][0]["unit"], "tokens");
        assert_eq!(account["windows"][0]["status"], "rejected");
        assert_eq!(
            account["windows"][1],
            json!({"key": "seven_day", "pct": 9, "status": "allowed"})
        );
        assert_eq!(
            account["observed_at"], 1_789_981_000,
            "the other window is not refreshed"
        );
    }

    #[test]
    fn instants_are_written_in_whole_milliseconds() {
        let mut fine = reading("a", "five_hour", 0);
        fine.observed_at = Timestamp::new(1_789_981_199, 504_054_763).ok();
        let mut document = Value::Null;
        assert!(put(&mut document, &[fine.clone()], now()));
        let account = &document["providers"][0]["accounts"][0];
        let stamp = "2026-09-21T08:59:59.504Z";
        assert_eq!(account["windows"][0]["observed_at"], stamp);
        assert_eq!(account["observed_at"], stamp);
        assert!(
            !put(&mut document, &[fine], now()),
            "the same again changes nothing"
        );
    }

    #[test]
    fn older_evidence_changes_nothing() {
        let mut document = Value::Null;
        put(&mut document, &[reading("a", "five_hour", -5)], now());
        let before = document.clone();
        assert!(!put(
            &mut document,
            &[reading("a", "five_hour", -50)],
            now()
        ));
        assert_eq!(document, before);
    }

    #[test]
    fn the_account_carries_the_oldest_stamp_of_its_running_windows() {
        let mut over = reading("a", "primary", -9_000);
        over.resets_at = at(-10);
        let mut document = Value::Null;
        put(
            &mut document,
            &[
                over,
                reading("a", "five_hour", -50),
                reading("a", "seven_day", -5),
            ],
            now(),
        );
        assert_eq!(
            document["providers"][0]["accounts"][0]["observed_at"],
            json!(at(-50))
        );
    }

    #[test]
    fn strange_members_are_not_overwritten() {
        let mut document = json!({"providers": {"not": "a list"}});
        assert!(!put(&mut document, &[reading("a", "five_hour", -5)], now()));
        assert_eq!(document, json!({"providers": {"not": "a list"}}));
    }
}
