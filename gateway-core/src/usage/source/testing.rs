//! Readings in a form that tables can show.

use jiff::Timestamp;

use super::Origin;
use crate::ids::SubscriptionId;
use crate::usage::{Reading, ReadingSource, WindowStatus, scope};

/// When all payloads of the tables were received: 2026-11-30T12:00:00Z.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_796_040_000).unwrap()
}

pub(crate) fn origin() -> Origin<'static> {
    static SUBSCRIPTION: std::sync::OnceLock<SubscriptionId> = std::sync::OnceLock::new();
    let subscription = SUBSCRIPTION.get_or_init(|| SubscriptionId::new("s"));
    Origin::new(subscription, now(), ReadingSource::Probe)
}

/// `window scope used status reset length`, a dash for what is not known.
pub(crate) fn lines(readings: &[Reading]) -> Vec<String> {
    readings.iter().map(line).collect()
}

fn line(reading: &Reading) -> String {
    let scope = reading.scope.as_ref().map_or("-".into(), scope::text);
    let used = reading
        .used_pct
        .map_or("-".into(), |used| format!("{used}%"));
    let status = match reading.status {
        WindowStatus::Unknown => "-",
        WindowStatus::Allowed => "allowed",
        WindowStatus::Warning => "warning",
        WindowStatus::Rejected => "rejected",
    };
    let reset = reading.resets_at.map_or("-".into(), |at| at.to_string());
    let mins = reading
        .duration_mins
        .map_or("-".into(), |mins| format!("{mins}m"));
    format!("{} {scope} {used} {status} {reset} {mins}", reading.window)
}
