//! Payloads of programs nobody here knows: windows are found by what their members mean, not by where they stand.
//!
//! An object is a window if it states a share (used or left, as percentage, fraction or counts), or a refusal. Its name is
//! its own (`key`, `id`, `name`, …) or that of the member it stands under; members with a common prefix (`weekly_percent`,
//! `weekly_reset_at`) are one window. What a name says about length and scope is in [`naming`], what a member says is in
//! [`share`] and [`moment`].
//!
//! Depth, windows and members looked at are bounded: what a payload of fifty megabytes says beyond that is no quota.

mod moment;
mod naming;
pub(super) mod screen;
mod share;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) use moment::stamp;
pub(crate) use share::Unit;

use super::{MAX_WINDOWS, Origin, fields, span};
use crate::usage::{Reading, WindowScope, WindowStatus};

/// Deeper values are not looked at.
const MAX_DEPTH: usize = 12;
/// More members in all are not looked at; a payload of twenty subscriptions has a tenth of that.
pub(super) const MAX_LOOKED: usize = 20_000;
/// An object with more members is a collection and no window.
const MAX_MEMBERS: usize = 128;

/// Reads whatever is there. `unit` tells what a share means that does not say so itself.
pub fn readings(payload: &Value, unit: Unit, origin: &Origin<'_>) -> Vec<Reading> {
    Walk::over(payload, unit, origin).found
}

/// What the payload itself calls its windows, each with the share it states there.
pub fn names(payload: &Value, unit: Unit, origin: &Origin<'_>) -> Vec<(String, f64)> {
    Walk::over(payload, unit, origin).names
}

/// The unit of the shares that do not state one, told by all of them together.
pub fn unit(payload: &Value) -> Unit {
    share::unit(payload)
}

/// Where in the payload the walk is, and what the way there said.
#[derive(Clone)]
struct Place<'a> {
    origin: Origin<'a>,
    name: String,
    /// The models this part is about; `None` = all.
    model: Option<String>,
    /// Money, which gates nothing.
    spend: bool,
    /// A reset stated further up, which holds for windows that state none.
    resets_at: Option<Timestamp>,
    depth: usize,
}

impl<'a> Place<'a> {
    fn root(origin: &Origin<'a>) -> Self {
        Self {
            origin: *origin,
            name: String::new(),
            model: None,
            spend: false,
            resets_at: None,
            depth: 0,
        }
    }

    fn under(&self, name: &str) -> Self {
        let keyed_by_model = naming::holds_models(&self.name);
        Self {
            name: name.to_owned(),
            model: if keyed_by_model {
                Some(name.to_owned())
            } else {
                self.model.clone()
            },
            spend: self.spend || naming::is_spend(name),
            resets_at: self.resets_at,
            depth: self.depth + 1,
            origin: self.origin,
        }
    }

    fn stamped(mut self, object: &Map<String, Value>) -> Self {
        self.origin.observed_at = stamp(object).or(self.origin.observed_at);
        self
    }
}

struct Walk {
    unit: Unit,
    found: Vec<Reading>,
    names: Vec<(String, f64)>,
    /// How many members may still be looked at.
    left: usize,
}

impl Walk {
    fn over(payload: &Value, unit: Unit, origin: &Origin<'_>) -> Self {
        let mut walk = Self {
            unit,
            found: Vec::new(),
            names: Vec::new(),
            left: MAX_LOOKED,
        };
        walk.look(payload, &Place::root(origin));
        walk
    }

    fn look(&mut self, value: &Value, place: &Place<'_>) {
        if place.depth > MAX_DEPTH || self.found.len() >= MAX_WINDOWS || self.left == 0 {
            return;
        }
        match value {
            Value::Object(object) => self.object(object, &place.clone().stamped(object)),
            Value::Array(items) => {
                // Of a long history the ends: one of them is the newest.
                let half = MAX_WINDOWS / 2;
                let tail = items.len().saturating_sub(half).max(half);
                for item in items.iter().take(half).chain(items.iter().skip(tail)) {
                    let named = naming::own_name(item);
                    let name = named.unwrap_or(&place.name);
                    let mut under = place.under(name);
                    under.spend = place.spend || naming::is_spend(name);
                    self.look(item, &under);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, object: &Map<String, Value>, place: &Place<'_>) {
        if object.len() > MAX_MEMBERS {
            return self.members(object, place);
        }
        self.left = self.left.saturating_sub(object.len());
        let is_window = self.window(object, place);
        let mut place = place.clone();
        if !is_window {
            // The reset of a window is its own; any other holds for what is inside.
            place.resets_at = moment::reset(object, &place.origin).or(place.resets_at);
        }
        for (prefix, group) in naming::groups(object) {
            self.window(&group, &place.under(prefix));
        }
        self.members(object, &place);
    }

    fn members(&mut self, object: &Map<String, Value>, place: &Place<'_>) {
        for (name, value) in object {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            if !naming::is_beside_the_point(name) && (value.is_object() || value.is_array()) {
                self.look(value, &place.under(name));
            }
        }
    }

    /// Whether the object is a window, or would be if its slot were in use.
    fn window(&mut self, object: &Map<String, Value>, place: &Place<'_>) -> bool {
        if share::is_unlimited(object) || is_placeholder(object) {
            return true;
        }
        let named = naming::own_name_of(object).unwrap_or(&place.name);
        let used = share::used(object, self.unit)
            .or_else(|| naming::length(named).and_then(|_| share::bare(object)));
        let status = share::status(object);
        let own_reset = moment::reset(object, &place.origin);
        let silent = used.is_none() && status != WindowStatus::Rejected;
        if silent && !(share::is_stated(object) && own_reset.is_some()) {
            return false;
        }
        let reading = reading(object, place, used, status, own_reset.or(place.resets_at));
        if let Some(used) = used {
            let name = naming::own_name_of(object).unwrap_or(&place.name);
            let short = naming::short(name);
            // As written too, for whoever looks for the payload's own word.
            let written = Some(name).filter(|name| **name != short && !name.is_empty());
            let written = written.filter(|_| !short.is_empty()).map(str::to_owned);
            for name in std::iter::once(short).chain(written) {
                if !name.is_empty() && self.names.len() < MAX_WINDOWS {
                    self.names.push((name, used));
                }
            }
        }
        let again = |known: &Reading| {
            known.window == reading.window
                && known.scope == reading.scope
                && known.observed_at == reading.observed_at
        };
        if !self.found.iter().any(again) {
            self.found.push(reading);
        }
        true
    }
}

/// A slot of no length and nothing used.
fn is_placeholder(object: &Map<String, Value>) -> bool {
    moment::length(object) == Some(0.0) && share::used(object, Unit::Points).unwrap_or(0.0) == 0.0
}

fn reading(
    object: &Map<String, Value>,
    place: &Place<'_>,
    used: Option<f64>,
    status: WindowStatus,
    resets_at: Option<Timestamp>,
) -> Reading {
    let name = naming::own_name_of(object).unwrap_or(&place.name);
    let mins = moment::length(object)
        .and_then(fields::minutes)
        .or_else(|| naming::length(name));
    let model = naming::model(object)
        .map(str::to_owned)
        .or_else(|| naming::model_in(name, object))
        .or_else(|| place.model.clone());
    let scope = match (place.spend || naming::is_spend(name), model) {
        (true, _) => WindowScope::Spend,
        (false, Some(model)) => WindowScope::Model(model),
        (false, None) => naming::bucket(name).map_or(WindowScope::Account, |bucket| {
            WindowScope::Bucket(bucket.to_owned())
        }),
    };
    let by_length = mins.and_then(span::id);
    let id = match &scope {
        WindowScope::Account => by_length.map_or_else(|| naming::id(name), str::to_owned),
        _ => naming::id(name),
    };
    Reading {
        scope: Some(scope),
        used_pct: used,
        status,
        resets_at,
        duration_mins: mins,
        ..place.origin.reading(id)
    }
}

#[cfg(test)]
mod tests;
