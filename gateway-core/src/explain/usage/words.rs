//! How an answer names windows and writes percentages.

use serde_json::{Value, json};

use crate::usage::{Reading, WindowScope, WindowStatus};

/// The window's id, with what it limits where the id does not tell.
pub(super) fn label(reading: &Reading) -> String {
    let window = &reading.window;
    match &reading.scope {
        Some(WindowScope::Model(part) | WindowScope::Bucket(part))
            if window != part
                && !window.starts_with("seven_day_")
                && !window.to_lowercase().contains(&part.to_lowercase()) =>
        {
            format!("{window}:{part}")
        }
        _ => window.clone(),
    }
}

pub(super) fn words(reading: &Reading) -> String {
    let used = reading
        .used_pct
        .map_or(String::new(), |used| format!(" at {}%", number(used)));
    let status = if reading.status == WindowStatus::Rejected {
        " is refused"
    } else {
        " is spent"
    };
    format!("{}{status}{used}", label(reading))
}

/// Whole percentages without a fraction.
pub(super) fn number(percent: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if percent.fract() == 0.0 && percent < 1e15 {
        json!(percent as i64)
    } else {
        json!(percent)
    }
}
