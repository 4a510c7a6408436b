//! Every sentence the gateway says about a turn's route: the gate's status line, the walk's own lines, the closing line.
//! Words only; when to say them is decided elsewhere. The wording is the product's contract, character by character.

use std::fmt::Write;

use jiff::Timestamp;

use crate::duration::time_until;
use crate::failure::{Failure, FailureKind};
use crate::route::Route;

/// The status line of a walk after a quota failure. `failed` is the subscription that failed, `skipped` how many
/// subscriptions are known to be spent.
///
/// For a failure that is not about quota this is the plain [`walk_line`].
pub fn gate_line(reason: FailureKind, failed: &str, skipped: usize) -> String {
    let mut line = String::with_capacity(128);
    line.push_str("⚠️ ");
    push_head(reason, failed, &mut line);
    line.push_str(" — ");
    push_skipping(skipped, " and ", &mut line);
    let onto = match reason {
        FailureKind::UpstreamRateLimit | FailureKind::ContextOverflow => "model",
        _ => "provider",
    };
    line.push_str("switching to fallback ");
    line.push_str(onto);
    line.push_str("...");
    line
}

/// The line of a walk that nothing is skipped in, for any reason; said once per turn.
pub fn walk_line(reason: FailureKind, failed: &str) -> String {
    gate_line(reason, failed, 0)
}

/// The status line where the head of the chain is known to be spent before any request; `skipped` counts the head too.
pub fn known_spent_line(skipped: usize, subscription: &str, model: &str) -> String {
    let mut line = String::with_capacity(128);
    line.push_str("⚠️ Quota known to be spent — ");
    push_skipping(skipped, " and ", &mut line);
    let _ = write!(line, "using {subscription}/{model}...");
    line
}

/// The head of a cut turn's closing message: what failed on which route. `None` route = nothing had started.
pub fn failed(failure: &Failure, route: Option<&Route>) -> String {
    let mut text = String::from("❌ ");
    let subscription = route.map_or("", |route| route.subscription.as_str());
    push_head(failure.kind, subscription, &mut text);
    if let Some(route) = route {
        let _ = write!(text, " on {route}");
    }
    match failure.detail.trim().trim_end_matches('.') {
        "" => text.push('.'),
        detail => {
            let _ = write!(text, ": {detail}.");
        }
    }
    text
}

/// What is added to a turn's status line once it is answered.
pub fn answered_by(route: &Route) -> String {
    format!(" Answered by {route}.")
}

/// Said among a turn's activity when its session was full and it went on in a successor.
pub fn session_rotated(generation: u32) -> String {
    format!(
        "♻️ The session of this conversation was full; it goes on in a new one (generation {generation}) that was told a recap."
    )
}

/// Which chain is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// The registry knew it of everything that was left: nothing of it was asked.
    PerRegistry,
    /// Some were asked and refused.
    Tried,
}

/// The closing line of a turn that nothing was left for; `soonest` is the earliest known reset, rendered as of now.
pub fn closing_line(spent: Spent, soonest: Option<Timestamp>, now: Timestamp) -> String {
    let what = match spent {
        Spent::PerRegistry => {
            "Every fallback subscription is quota-exhausted per the usage registry"
        }
        Spent::Tried => "Every subscription in the chain is out of quota",
    };
    match soonest {
        Some(at) if at <= now => format!("{what}; the soonest resets now."),
        _ => format!(
            "{what}; the soonest resets in {}.",
            time_until(soonest, now)
        ),
    }
}

/// The status line of a turn whose first choice cools after a throttle.
pub fn cooling_line(cooling: &str, onto: &Route) -> String {
    format!("⚠️ {cooling} was throttled a moment ago — using {onto}...")
}

/// The status line of a turn whose first choice is left out because its login is refused; said once per conversation.
pub fn locked_out_line(locked: &str, onto: &Route) -> String {
    format!("⚠️ The login of {locked} is refused — using {onto}...")
}

/// Said once, when a login is refused: what that means and how it ends.
pub fn login_refused(subscription: &str) -> String {
    format!(
        "🔒 The login of {subscription} was refused, so it is left out from now on. Log in again, then run `baton doctor`."
    )
}

/// Why a turn ended without asking a subscription whose login is refused.
pub fn locked_out(subscriptions: &[&str]) -> String {
    let (logins, are) = match subscriptions {
        [_] => ("login", "is"),
        _ => ("logins", "are"),
    };
    format!(
        "🔒 The {logins} of {} {are} refused. Log in again, then run `baton doctor`.",
        subscriptions.join(", ")
    )
}

/// The closing line of a turn that reached nobody.
pub fn network_down() -> &'static str {
    "🔌 No route could be reached: your network seems to be down."
}

/// What a turn shows while it waits for a throttled route; `again_at` is rendered as of now.
pub fn waiting_line(subscription: &str, again_at: Timestamp, now: Timestamp) -> String {
    let seconds = again_at
        .duration_since(now)
        .as_millis()
        .max(0)
        .saturating_add(999)
        / 1000;
    format!("⏳ {subscription} is busy; asking again in {seconds} s")
}

/// The same line once the wait is over.
pub fn waited_line(subscription: &str) -> String {
    format!("⏳ {subscription} was busy; asking again")
}

fn push_head(reason: FailureKind, failed: &str, line: &mut String) {
    match reason {
        FailureKind::UpstreamRateLimit => {
            let failed = failed.trim();
            let name = if failed.is_empty() {
                "provider"
            } else {
                failed
            };
            line.push_str("Upstream ");
            line.push_str(name);
            line.push_str(" rate-limited");
        }
        FailureKind::RateLimit => line.push_str("Rate limited"),
        FailureKind::Billing => line.push_str("Billing or credits exhausted"),
        FailureKind::Overloaded => line.push_str("Provider overloaded"),
        FailureKind::Timeout => line.push_str("Request timed out"),
        FailureKind::Transport => line.push_str("Provider unreachable"),
        FailureKind::Auth => line.push_str("Authentication failed"),
        FailureKind::ContextOverflow => line.push_str("Conversation too long for this model"),
        FailureKind::ContentFilter => line.push_str("Stopped by the provider's content filter"),
        FailureKind::BadRequest => line.push_str("Request refused by the provider"),
        FailureKind::Crashed => line.push_str("Provider program did not run to its end"),
    }
}

fn push_skipping(skipped: usize, joint: &str, line: &mut String) {
    if skipped > 0 {
        let plural = if skipped == 1 { "" } else { "s" };
        let _ = write!(
            line,
            "skipping {skipped} exhausted sub{plural} (quota registry){joint}"
        );
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn the_gate_says_how_many_it_skips() {
        let line = |reason, skipped| gate_line(reason, "relay", skipped);
        assert_snapshot!(line(FailureKind::RateLimit, 17), @"⚠️ Rate limited — skipping 17 exhausted subs (quota registry) and switching to fallback provider...");
        assert_snapshot!(line(FailureKind::RateLimit, 1), @"⚠️ Rate limited — skipping 1 exhausted sub (quota registry) and switching to fallback provider...");
        assert_snapshot!(line(FailureKind::RateLimit, 0), @"⚠️ Rate limited — switching to fallback provider...");
        assert_snapshot!(line(FailureKind::Billing, 2), @"⚠️ Billing or credits exhausted — skipping 2 exhausted subs (quota registry) and switching to fallback provider...");
        assert_snapshot!(line(FailureKind::Billing, 0), @"⚠️ Billing or credits exhausted — switching to fallback provider...");
        assert_snapshot!(line(FailureKind::UpstreamRateLimit, 1), @"⚠️ Upstream relay rate-limited — skipping 1 exhausted sub (quota registry) and switching to fallback model...");
        assert_snapshot!(line(FailureKind::UpstreamRateLimit, 0), @"⚠️ Upstream relay rate-limited — switching to fallback model...");
        assert_snapshot!(gate_line(FailureKind::UpstreamRateLimit, "", 0), @"⚠️ Upstream provider rate-limited — switching to fallback model...");
    }

    #[test]
    fn a_head_known_to_be_spent_names_the_route_in_use() {
        assert_snapshot!(known_spent_line(3, "gpt-plus", "gpt-6.1-sol"), @"⚠️ Quota known to be spent — skipping 3 exhausted subs (quota registry) and using gpt-plus/gpt-6.1-sol...");
        assert_snapshot!(known_spent_line(1, "b", "m"), @"⚠️ Quota known to be spent — skipping 1 exhausted sub (quota registry) and using b/m...");
    }

    #[test]
    fn every_other_reason_has_its_own_line() {
        let kinds = [
            FailureKind::Transport,
            FailureKind::Overloaded,
            FailureKind::Timeout,
            FailureKind::Auth,
            FailureKind::Crashed,
            FailureKind::BadRequest,
            FailureKind::ContentFilter,
            FailureKind::ContextOverflow,
        ];
        let lines: Vec<_> = kinds.into_iter().map(|kind| walk_line(kind, "s")).collect();
        assert_snapshot!(lines.join("\n"), @r"
        ⚠️ Provider unreachable — switching to fallback provider...
        ⚠️ Provider overloaded — switching to fallback provider...
        ⚠️ Request timed out — switching to fallback provider...
        ⚠️ Authentication failed — switching to fallback provider...
        ⚠️ Provider program did not run to its end — switching to fallback provider...
        ⚠️ Request refused by the provider — switching to fallback provider...
        ⚠️ Stopped by the provider's content filter — switching to fallback provider...
        ⚠️ Conversation too long for this model — switching to fallback model...
        ");
    }

    #[test]
    fn a44_the_closing_line_names_the_soonest_reset() {
        let now = Timestamp::from_second(1_789_981_200).unwrap();
        let in_six_hours = Timestamp::from_second(1_789_981_200 + 21_600).ok();
        assert_snapshot!(closing_line(Spent::PerRegistry, in_six_hours, now), @"Every fallback subscription is quota-exhausted per the usage registry; the soonest resets in 6h.");
        assert_snapshot!(closing_line(Spent::Tried, in_six_hours, now), @"Every subscription in the chain is out of quota; the soonest resets in 6h.");
        assert_snapshot!(closing_line(Spent::Tried, Some(now), now), @"Every subscription in the chain is out of quota; the soonest resets now.");
        assert_snapshot!(closing_line(Spent::PerRegistry, None, now), @"Every fallback subscription is quota-exhausted per the usage registry; the soonest resets in an unknown time.");
    }

    #[test]
    fn cooling_and_refused_logins_are_said_in_one_line_each() {
        let route = Route::new("b", "m");
        let now = Timestamp::from_second(1_789_981_200).unwrap();
        let at = Timestamp::from_millisecond(1_789_981_207_300).unwrap();
        assert_snapshot!(cooling_line("a", &route), @"⚠️ a was throttled a moment ago — using b/m...");
        assert_snapshot!(locked_out_line("a", &route), @"⚠️ The login of a is refused — using b/m...");
        assert_snapshot!(login_refused("a"), @"🔒 The login of a was refused, so it is left out from now on. Log in again, then run `baton doctor`.");
        assert_snapshot!(locked_out(&["a"]), @"🔒 The login of a is refused. Log in again, then run `baton doctor`.");
        assert_snapshot!(locked_out(&["a", "b"]), @"🔒 The logins of a, b are refused. Log in again, then run `baton doctor`.");
        assert_snapshot!(network_down(), @"🔌 No route could be reached: your network seems to be down.");
        assert_snapshot!(waiting_line("a", at, now), @"⏳ a is busy; asking again in 8 s");
        assert_snapshot!(waited_line("a"), @"⏳ a was busy; asking again");
    }

    #[test]
    fn the_answering_route_ends_the_line() {
        assert_snapshot!(answered_by(&Route::new("gpt-plus", "gpt-6.1-sol")), @" Answered by gpt-plus/gpt-6.1-sol.");
    }
}
