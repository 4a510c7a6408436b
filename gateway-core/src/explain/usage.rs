//! Topic `usage`: a usage payload of any source in, the gate's word on the subscription out.
//!
//! The line holds the payload as `snapshot`, `event` or `headers` (any other member that holds one will do), `now`, and
//! optionally `model`, `observed_at`, and the subscription's name where the payload is about several. A snapshot without a
//! stamp counts as read now, but a wait it states ("resets in 30 minutes") has nothing to count from; an event and the
//! headers of an answer arrive as they happen.
//!
//! The verdict is the gate's: the same settings, and [`blocked_until_ms`] for every window. What is not proven to be spent is
//! `eligible` where something readable and current says so, and `fail_open` where nothing does; both are tried.

mod words;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use self::words::{label, number, words};
use super::scenario::{self, text};
use crate::ids::SubscriptionId;
use crate::plan::{GateSettings, WindowView};
use crate::usage::blocking::{MAX_AHEAD_MS, MAX_RESET_MS, blocked_until_ms, refuses};
use crate::usage::refusal::UNNAMED_WINDOW;
use crate::usage::scope::{self, Reach};
use crate::usage::source::{Headers, Origin, detect};
use crate::usage::{Reading, ReadingSource, WindowScope, WindowStatus, merge, portal};

/// Members of the line that describe the question and hold no payload.
const ASIDE: [&str; 10] = [
    "id",
    "now",
    "provider",
    "model",
    "host_zone",
    "observed_at",
    "subscription",
    "account",
    "note",
    "title",
];

/// No line has more payloads; further members are not looked at.
const MAX_PAYLOADS: usize = 16;

/// Parts of the names of members that hold what the question is about; others hold what was known before.
const ASKED: [&str; 6] = ["snapshot", "event", "headers", "usage", "body", "response"];

/// Answers one line.
pub(super) fn verdict(line: &Value) -> Result<Value, String> {
    if !line.get("id").is_some_and(Value::is_string) {
        return Err("`id` is missing or not a string".to_owned());
    }
    let now = scenario::now(line)?;
    let said = said(line, now)?;
    let newest = merge::newest(said.readings, now);
    let mut answer = Case::of(&newest, text(line, "model"), now).judge(&said.names);
    if let Some(object) = answer.as_object_mut() {
        object.insert("id".to_owned(), line.get("id").cloned().unwrap_or_default());
    }
    Ok(answer)
}

/// What the line says: readings, and the names its windows have there.
#[derive(Default)]
struct Said {
    readings: Vec<Reading>,
    names: Vec<(String, f64)>,
}

fn said(line: &Value, now: Timestamp) -> Result<Said, String> {
    let members = line.as_object().into_iter().flatten();
    let payloads = members
        .filter(|(name, _)| !ASIDE.contains(&name.as_str()))
        .take(MAX_PAYLOADS);
    let (mut any, mut asked, mut beside) = (false, Said::default(), Said::default());
    for (name, payload) in payloads {
        any = true;
        let known = ASKED.iter().any(|word| name.contains(word));
        read(
            name,
            payload,
            line,
            now,
            if known { &mut asked } else { &mut beside },
        );
    }
    if !any {
        return Err("no payload: give `snapshot`, `event` or `headers`".to_owned());
    }
    if asked.readings.is_empty() {
        return Ok(beside);
    }
    // A mark kept from earlier counts only if it is the newer evidence.
    let newest = asked
        .readings
        .iter()
        .map(|reading| reading.observed_at)
        .max();
    let newer = |reading: &Reading| Some(reading.observed_at) > newest;
    asked
        .readings
        .extend(beside.readings.into_iter().filter(newer));
    Ok(asked)
}

/// Reads one member of the line. A reading that carries no time was made now.
fn read(name: &str, payload: &Value, line: &Value, now: Timestamp, into: &mut Said) {
    let id = SubscriptionId::new(subscription(line).unwrap_or("this"));
    let arrives = name.contains("event") || name.contains("headers");
    let origin = Origin {
        subscription: &id,
        observed_at: stamp(line, payload, now).or(arrives.then_some(now)),
        source: match name {
            "event" => ReadingSource::Event,
            _ if arrives => ReadingSource::Header,
            _ => ReadingSource::Probe,
        },
    };
    let mut readings = if name.contains("headers") {
        detect::headers(&Headers::of_json(payload), text(line, "model"), &origin)
    } else {
        registry(payload, line, now).unwrap_or_else(|| detect::readings(payload, &origin))
    };
    if let (true, Some(shown)) = (readings.is_empty(), payload.as_str()) {
        let zone = text(line, "host_zone").and_then(|name| TimeZone::get(name).ok());
        let at = origin.observed_at.unwrap_or(now);
        readings = detect::screen(shown, at, zone.as_ref(), &origin);
    }
    let is_stale = payload.get("stale").and_then(Value::as_bool) == Some(true);
    let needs_stamp = is_registry(payload);
    for reading in &mut readings {
        // What calls itself stale has no time we could trust, nor has a row of a registry that lost its own.
        let assumed = Some(now).filter(|_| !needs_stamp);
        reading.observed_at = reading.observed_at.or(assumed).filter(|_| !is_stale);
    }
    into.names.extend(detect::names(payload, &origin));
    into.readings.extend(readings);
}

/// Whether the payload is from a registry, whose rows are copies of any age: they count from the time they state or not at all.
fn is_registry(payload: &Value) -> bool {
    let row = |name: &str| payload.get(name).is_some_and(Value::is_string);
    payload
        .pointer("/providers/0/accounts")
        .is_some_and(Value::is_array)
        || (payload.get("windows").is_some() && (row("account") || row("provider_slug")))
}

/// When the payload was true: its own stamp, the line's, or its stated age.
fn stamp(line: &Value, payload: &Value, now: Timestamp) -> Option<Timestamp> {
    const AGES: [(&str, f64); 6] = [
        ("age_s", 1.0),
        ("age_seconds", 1.0),
        ("ageSeconds", 1.0),
        ("age_ms", 0.001),
        ("age_minutes", 60.0),
        ("age_hours", 3_600.0),
    ];
    let age = |value: &Value| {
        let (name, each) = AGES.iter().find(|(name, _)| value.get(name).is_some())?;
        let age = SignedDuration::try_from_secs_f64(value.get(name)?.as_f64()? * each).ok()?;
        now.checked_sub(age).ok()
    };
    let of = |value: &Value| {
        value
            .as_object()
            .and_then(detect::stamp)
            .or_else(|| age(value))
    };
    of(payload).or_else(|| of(line))
}

/// A whole registry file: the account the line names, or the only one.
fn registry(payload: &Value, line: &Value, now: Timestamp) -> Option<Vec<Reading>> {
    payload.get("providers")?.as_array()?;
    let mut by_account: BTreeMap<String, Vec<Reading>> = BTreeMap::new();
    for reading in portal::readings(payload) {
        by_account
            .entry(reading.subscription.key().to_owned())
            .or_default()
            .push(reading);
    }
    let wanted = subscription(line).map(|name| SubscriptionId::new(name).key().to_owned());
    if let Some(wanted) = wanted.filter(|name| by_account.contains_key(name)) {
        return by_account.remove(&wanted);
    }
    // Several and none named: the pool is as good as its best member.
    by_account.into_values().min_by_key(|readings| {
        Case::of(readings, text(line, "model"), now)
            .blocked()
            .map(|(until, _)| until)
    })
}

fn subscription(line: &Value) -> Option<&str> {
    ["subscription", "account", "provider"]
        .iter()
        .find_map(|name| text(line, name))
}

/// The newest readings of one subscription, looked at by the gate.
struct Case<'r> {
    readings: &'r [Reading],
    /// `None` = no model is asked for: a window of any model counts as one that limits some.
    model: Option<&'r str>,
    settings: GateSettings,
    now: Timestamp,
}

/// What a window can hold up.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Holds<'r> {
    Account,
    Part(&'r str),
}

impl<'r> Case<'r> {
    fn of(readings: &'r [Reading], model: Option<&'r str>, now: Timestamp) -> Self {
        Self {
            readings,
            model,
            settings: GateSettings::default(),
            now,
        }
    }

    fn judge(&self, names: &[(String, f64)]) -> Value {
        let (verdict, retry_at, reason) = match self.blocked() {
            Some((until_ms, Holds::Account)) => {
                ("skip", Some(until_ms), self.blocking_words(until_ms))
            }
            Some((until_ms, Holds::Part(_))) => {
                ("skip_model", Some(until_ms), self.blocking_words(until_ms))
            }
            None => match self.doubt() {
                Some(doubt) => ("fail_open", None, doubt),
                None => ("eligible", None, self.room()),
            },
        };
        json!({
            "id": null,
            "verdict": verdict,
            "retry_at": retry_at.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
            "used_percent": self.used_percent(names),
            "reason": reason,
        })
    }

    /// Until when, and what. Windows of one part are all to be open again, so their latest reset counts; of several parts
    /// the one that opens first. Where every part is held up and there is no window of the account, the account is, unless the
    /// parts are known to be parts of one: then silence about the account is no refusal.
    fn blocked(&self) -> Option<(i64, Holds<'r>)> {
        let mut parts: BTreeMap<Holds<'r>, Option<i64>> = BTreeMap::new();
        for reading in self.readings {
            if let Some(holds) = self.holds(reading) {
                let until =
                    blocked_until_ms(&reading.view(), self.settings, self.now.as_millisecond());
                let latest = parts.entry(holds).or_default();
                *latest = (*latest).max(until);
            }
        }
        if let Some(account) = parts.remove(&Holds::Account) {
            if let Some(until) = account {
                return Some((until, Holds::Account));
            }
        } else if !parts.is_empty()
            && parts.values().all(Option::is_some)
            && !self.relevant().any(is_part)
        {
            let soonest = parts.into_values().flatten().min()?;
            return Some((soonest, Holds::Account));
        }
        parts
            .into_iter()
            .filter_map(|(part, until)| Some((until?, part)))
            .min_by_key(|(until, _)| *until)
    }

    fn holds(&self, reading: &'r Reading) -> Option<Holds<'r>> {
        match scope::reach(&reading.window, scope::view(reading.scope.as_ref())) {
            Reach::Account => Some(Holds::Account),
            Reach::Model(family) => {
                let asked = self.model.is_none_or(|model| scope::fits(family, model));
                asked.then_some(Holds::Part(family))
            }
            Reach::Bucket(bucket) => scope::serves_turns(bucket).then_some(Holds::Part(bucket)),
            Reach::Spend | Reach::Unknown => None,
        }
    }

    /// Why nothing here proves that there is room; `None` = something does.
    fn doubt(&self) -> Option<String> {
        if self.readings.is_empty() {
            return Some("nothing in the payload was understood as a quota window".to_owned());
        }
        let doubts: Vec<Option<String>> = self
            .relevant()
            .map(|reading| self.doubt_of(reading))
            .collect();
        let known = doubts.iter().any(Option::is_none);
        let refused = self
            .relevant()
            .any(|reading| self.is_unproven_refusal(reading));
        if known && !refused {
            return None;
        }
        let first = doubts.into_iter().flatten().next();
        Some(first.unwrap_or_else(|| "no window here is about turns".to_owned()))
    }

    fn relevant(&self) -> impl Iterator<Item = &'r Reading> + '_ {
        self.readings
            .iter()
            .filter(|reading| self.holds(reading).is_some())
    }

    /// Refused, but until when nobody says, or nobody would believe.
    fn is_unproven_refusal(&self, reading: &Reading) -> bool {
        let left = |at: Timestamp| at.as_millisecond() - self.now.as_millisecond();
        let view = reading.view();
        let believable = reading.resets_at.is_some_and(|at| left(at) <= MAX_RESET_MS);
        refuses(view.status, view.used_pct) && (!believable || self.is_untimely(&view))
    }

    fn doubt_of(&self, reading: &Reading) -> Option<String> {
        let view = reading.view();
        let name = &reading.window;
        if self.is_untimely(&view) {
            return Some(format!("{name}: the reading is {}", self.age_words(&view)));
        }
        if self.is_unproven_refusal(reading) {
            return Some(format!(
                "{name}: refused, but no believable reset is stated"
            ));
        }
        if reading.resets_at.is_some_and(|at| at <= self.now) {
            return Some(format!("{name} has reset since the reading"));
        }
        let silent = view.used_pct.is_none() && view.status == WindowStatus::Unknown;
        silent.then(|| format!("{name}: how much is used is unknown"))
    }

    fn is_untimely(&self, view: &WindowView<'_>) -> bool {
        let age = view
            .observed_at_ms
            .map(|at| self.now.as_millisecond().saturating_sub(at));
        age.is_none_or(|age| age > self.settings.max_age_ms || age < -MAX_AHEAD_MS)
    }

    fn age_words(&self, view: &WindowView<'_>) -> String {
        let age = view
            .observed_at_ms
            .map_or(0, |at| self.now.as_millisecond().saturating_sub(at));
        if age < 0 {
            "stamped ahead of the clock".to_owned()
        } else {
            format!("{} min old", age / 60_000)
        }
    }

    fn blocking_words(&self, until_ms: i64) -> String {
        let now_ms = self.now.as_millisecond();
        let blocks = |reading: &&Reading| {
            blocked_until_ms(&reading.view(), self.settings, now_ms) == Some(until_ms)
        };
        let window = self.relevant().find(blocks);
        window.map_or_else(|| "spent".to_owned(), words)
    }

    fn room(&self) -> String {
        let spent = |reading: &&Reading| {
            let ahead = reading.resets_at.is_some_and(|at| at > self.now);
            ahead && refuses(reading.status, reading.used_pct)
        };
        let near = self.relevant().find(spent);
        near.map_or_else(
            || "no window is spent".to_owned(),
            |reading| {
                format!(
                    "{}: the reset is too near to be worth a skip",
                    reading.window
                )
            },
        )
    }

    /// What is used by window, as far as it is known and not voided by a reset since.
    ///
    /// A window that the payload calls differently from the registry stands there under both names.
    fn used_percent(&self, names: &[(String, f64)]) -> Value {
        let mut used = Map::new();
        for reading in self.readings {
            let over = reading.resets_at.is_some_and(|at| at <= self.now);
            let Some(percent) = reading.used_pct.filter(|_| !over) else {
                continue;
            };
            used.entry(label(reading))
                .or_insert_with(|| number(percent));
            if let Some(kind) = reading.window.strip_prefix("copilot_") {
                used.entry(kind).or_insert_with(|| number(percent));
            }
            let same = |share: f64| (share - percent).abs() < 0.01;
            for (name, _) in names.iter().filter(|(_, share)| same(*share)) {
                used.entry(name.clone()).or_insert_with(|| number(percent));
            }
        }
        Value::Object(used)
    }
}

/// Whether a window is by its nature one of a part of an account that has windows of its own: a model's week of Claude, a
/// bucket of Codex, a model a hub holds a mark against. Other sources know nothing but models.
fn is_part(reading: &Reading) -> bool {
    let of_codex =
        matches!(&reading.scope, Some(WindowScope::Bucket(bucket)) if bucket.starts_with("codex"));
    of_codex || reading.window.starts_with("seven_day_") || reading.window == UNNAMED_WINDOW
}

#[cfg(test)]
mod tests;
