//! Money, a spent window, or a burst: the rows of quota.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::FailureKind::{Billing, Overloaded, RateLimit};
use super::FailureScope::{self, Account, AccountModel, Burst, Request, UpstreamShared};
use super::action::Action;
use super::members::Verdict;
use super::resets::Source;
use super::rows::{Facts, Row, row};
use super::signs::Sign;
use super::vendors::Vendor;

/// A stated wait above this is a quota, not a burst, if nothing else tells.
const LONGEST_BURST: SignedDuration = SignedDuration::from_mins(5);
/// The budgets of `x-ratelimit-*` are minute budgets that refill at their own pace.
const LONGEST_BUDGET: SignedDuration = SignedDuration::from_mins(10);
/// A minute budget without a stated wait is full again after a minute.
const MINUTE: Duration = Duration::from_secs(60);
/// Other requests of ours have to end first.
const CONCURRENCY_PAUSE: Duration = Duration::from_secs(5);
pub(super) fn money_or_quota(facts: &Facts<'_>) -> Option<Row> {
    let said = facts.said;
    // "Now draws from your extra usage, not your plan limits."
    if said.has(Sign::ExtraUsage) && said.has(Sign::NotYourLimit) {
        return Some(row(Billing, Account).act(Action::FailoverNow));
    }
    if said.has(Sign::NotYourLimit) {
        return Some(row(Overloaded, UpstreamShared));
    }
    if said.has(Sign::FairUse) {
        return Some(row(RateLimit, Account).act(Action::DisableUntilOperator));
    }
    let limited = facts.status == Some(429)
        || said.any(&[
            Sign::QuotaOrMoney,
            Sign::UsageLimit,
            Sign::Throttle,
            Sign::SharedExhausted,
        ]);
    if said.has(Sign::LimitZero) && limited {
        return Some(row(RateLimit, AccountModel).clockless());
    }
    if facts.context.long_context && said.has(Sign::Money) && said.has(Sign::ExtraUsage) {
        return Some(row(Billing, Request).act(Action::ShrinkRequest));
    }
    let stated = facts.reset.at.is_some() && facts.reset.source != Some(Source::Hint);
    if said.any(&[Sign::Money, Sign::SpendCap]) {
        let window_ends = stated
            && !said.has(Sign::SpendCap)
            && said.any(&[Sign::UsageLimit, Sign::QuotaOrMoney, Sign::Day])
            && !facts.names.has(Sign::Money);
        return Some(match window_ends {
            true => row(RateLimit, Account),
            false if stated => row(Billing, Account),
            false if said.any(&[Sign::UsageLimit, Sign::Month]) => {
                row(Billing, Account).act(Action::FailoverNow)
            }
            false => row(Billing, Account),
        });
    }
    if !said.has(Sign::QuotaOrMoney) {
        return None;
    }
    match facts.vendor {
        Vendor::Google => None,
        Vendor::Qwen => Some(throttle(facts)),
        _ if stated => Some(row(RateLimit, Account)),
        _ if facts.names.has(Sign::UsageLimit) && !facts.names.has(Sign::QuotaOrMoney) => {
            Some(row(RateLimit, Account))
        }
        _ => Some(row(Billing, Account)),
    }
}

/// A window by its name: minute, day, the plan's own.
pub(super) fn named_window(facts: &Facts<'_>) -> Option<Row> {
    let said = facts.said;
    let refused = facts.status.is_none_or(|status| status >= 400);
    let unified = facts
        .evidence
        .headers
        .get("anthropic-ratelimit-unified-status")
        == Some("rejected");
    let event = facts.evidence.event == Some(Verdict::Rejected);
    if refused && (unified || event) {
        return Some(row(RateLimit, plan_scope(facts)));
    }
    // "Exceeded retry limit, last status: 503": the limit is the program's own.
    if said.has(Sign::RetriesSpent) && facts.status.is_some_and(|status| status != 429) {
        return None;
    }
    let limit = said.any(&[Sign::Throttle, Sign::UsageLimit, Sign::QuotaOrMoney])
        || facts.status == Some(429);
    let plan_named = facts.names.has(Sign::UsageLimit) && !facts.names.has(Sign::Throttle);
    if said.has(Sign::Day) && limit {
        return Some(Row {
            until: next_utc_midnight(facts),
            ..row(RateLimit, day_scope(facts))
        });
    }
    if said.has(Sign::Minute) && limit && !plan_named {
        return Some(minute(facts));
    }
    let short = facts.wait.is_some_and(|wait| wait <= LONGEST_BURST);
    let google =
        facts.vendor == Vendor::Google && said.any(&[Sign::QuotaOrMoney, Sign::UsageLimit]);
    let burst =
        (said.has(Sign::Throttle) || google) && short && !plan_named || said.has(Sign::Concurrency);
    let named = said.has(Sign::UsageLimit)
        || said.has(Sign::QuotaOrMoney)
        || said.has(Sign::Month) && limit;
    // Google's own name for speed, whatever quota its sentence speaks of.
    let speed = facts.names.has(Sign::Throttle) && !facts.names.has(Sign::UsageLimit);
    if google && (burst || speed) {
        return Some(throttle(facts));
    }
    (named && !burst && !overload_named(facts)).then(|| row(RateLimit, plan_scope(facts)))
}

fn overload_named(facts: &Facts<'_>) -> bool {
    facts.names.has(Sign::Overload) && !facts.names.any(&[Sign::Throttle, Sign::UsageLimit])
}

/// A limit that names one model takes only that model down.
fn plan_scope(facts: &Facts<'_>) -> FailureScope {
    let window = facts.evidence.window.as_deref().unwrap_or_default();
    let of_model = ["opus", "sonnet", "haiku", "fable"];
    let text = facts.evidence.message.to_lowercase();
    let by_name = of_model
        .iter()
        .any(|model| window.contains(model) || text.contains(&format!("{model} limit")));
    if by_name || facts.evidence.model.is_some() {
        AccountModel
    } else {
        Account
    }
}

/// "Per day" is the name of a model's budget, "daily" that of a plan's window.
fn day_scope(facts: &Facts<'_>) -> FailureScope {
    let names = facts.evidence.names.join(" ");
    let text = format!("{names} {}", facts.evidence.message).to_lowercase();
    let budget = ["per day", "perday", "tpd", "rpd"]
        .iter()
        .any(|word| text.contains(word));
    if budget {
        AccountModel
    } else {
        plan_scope(facts)
    }
}

/// OpenRouter's free allowance is a day of UTC by its own documentation.
fn next_utc_midnight(facts: &Facts<'_>) -> Option<Timestamp> {
    let names_it = facts.evidence.message.contains("free-models-per-day");
    let today = TimeZone::UTC.to_datetime(facts.context.now).date();
    let tomorrow = names_it.then(|| today.tomorrow().ok()).flatten()?;
    TimeZone::UTC
        .to_timestamp(tomorrow.to_datetime(jiff::civil::Time::midnight()))
        .ok()
}

fn minute(facts: &Facts<'_>) -> Row {
    let guess = (!facts.said.has(Sign::Concurrency))
        .then_some(MINUTE)
        .or(Some(CONCURRENCY_PAUSE));
    Row {
        guess,
        ..row(RateLimit, Burst)
    }
}

/// A refusal for speed, or one nobody explains.
pub(super) fn throttle(facts: &Facts<'_>) -> Row {
    let longest = match facts.reset.source {
        Some(Source::Budget) => LONGEST_BUDGET,
        _ => LONGEST_BURST,
    };
    if facts.wait.is_some_and(|wait| wait > longest) {
        return row(RateLimit, plan_scope(facts));
    }
    let burst = row(RateLimit, Burst);
    if facts.wait.is_some() {
        return burst;
    }
    if facts.all.has(Sign::RetriesSpent) {
        return burst.act(Action::FailoverNow);
    }
    if facts.said.has(Sign::Concurrency) {
        return Row {
            guess: Some(CONCURRENCY_PAUSE),
            ..burst
        };
    }
    // Nothing but the number: unknown. Move on for this turn, keep the account.
    // A header of speed that says nothing usable still says that it was speed.
    let unreadable = facts.evidence.headers.iter().any(|(name, _)| {
        ["retry-after", "x-ratelimit-", "x-rate-limit-"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    });
    let named = facts.said.any(&[
        Sign::Throttle,
        Sign::RampUp,
        Sign::UsageLimit,
        Sign::QuotaOrMoney,
        Sign::SharedExhausted,
    ]);
    if named || unreadable || facts.reset.just_passed {
        burst
    } else {
        burst.act(Action::FailoverNow)
    }
}
