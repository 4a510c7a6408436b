//! `account/rateLimits/updated` to readings, and what they say of a usage limit. Codex 0.171 tells the reset of a limit as
//! a value only here, from the response's headers; the body's `resets_at` ends up in the words of the message.

use std::collections::BTreeMap;

use gateway_core::failure::plausible;
use gateway_core::ids::SubscriptionId;
use gateway_core::usage::source::Origin;
use gateway_core::usage::source::codex::RateLimits;
use gateway_core::usage::{Reading, ReadingSource, WindowScope, WindowStatus};
use jiff::Timestamp;
use serde_json::Value;

/// What one turn has heard of its limits.
#[derive(Debug, Default)]
pub(super) struct Limits {
    known: RateLimits,
    newest: BTreeMap<String, Reading>,
    /// `rateLimitReachedType`; `None` = not stated.
    reached: Option<String>,
}

/// The spent windows of a refusal, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spent {
    /// The one that opens last.
    pub(super) window: String,
    /// All spent windows must be open again: the latest reset. `None` = one of them states none.
    pub(super) retry_at: Option<Timestamp>,
    /// Only models metered on that bucket are refused.
    pub(super) bucket: bool,
}

impl Limits {
    /// Takes an update; returns the readings of the windows it mentions.
    pub(super) fn take(
        &mut self,
        params: &Value,
        subscription: &SubscriptionId,
        now: Timestamp,
    ) -> Vec<Reading> {
        let snapshot = params.get("rateLimits").unwrap_or(params);
        let reached = snapshot.get("rateLimitReachedType").and_then(Value::as_str);
        if let Some(reached) = reached {
            self.reached = Some(reached.to_owned());
        }
        let origin = Origin::new(subscription, now, ReadingSource::Event);
        let readings = self.known.read(params, &origin);
        for reading in &readings {
            self.newest.insert(reading.window.clone(), reading.clone());
        }
        readings
    }

    /// What is spent; `None` = nothing is known to be. A reset that is past or absurdly far is none.
    pub(super) fn spent(&self, now: Timestamp) -> Option<Spent> {
        let reset = |reading: &Reading| reading.resets_at.and_then(|at| plausible(at, now));
        let spent = |reading: &&Reading| {
            reading.status == WindowStatus::Rejected
                || reading.used_pct.is_some_and(|used| used >= 100.0)
        };
        let spent: Vec<&Reading> = self
            .newest
            .values()
            .filter(|reading| reading.scope != Some(WindowScope::Spend))
            .filter(spent)
            .collect();
        // Updates name no thread: a bucket may be another turn's, the account's windows are everybody's.
        let of_account = |reading: &&&Reading| {
            !matches!(
                reading.scope,
                Some(WindowScope::Bucket(_) | WindowScope::Model(_))
            )
        };
        let shared: Vec<&Reading> = spent.iter().filter(of_account).copied().collect();
        let spent = if shared.is_empty() { spent } else { shared };
        let last = spent
            .iter()
            .max_by_key(|reading| reset(reading).map_or(i64::MAX, Timestamp::as_second))?;
        Some(Spent {
            window: last.window.clone(),
            retry_at: reset(last), // an unknown reset sorts last, so `None` as soon as one is unknown
            bucket: matches!(
                last.scope,
                Some(WindowScope::Bucket(_) | WindowScope::Model(_))
            ),
        })
    }

    /// Whether money or an owner's decision is missing, not time.
    pub(super) fn wants_money(&self) -> bool {
        self.reached
            .as_deref()
            .is_some_and(|kind| kind.ends_with("credits_depleted"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_796_000_000).unwrap()
    }

    fn heard(updates: &[Value]) -> Limits {
        let mut limits = Limits::default();
        for update in updates {
            limits.take(update, &"sub".into(), now());
        }
        limits
    }

    fn update(primary: Value, secondary: Value) -> Value {
        json!({"rateLimits": {"limitId": "codex", "primary": primary, "secondary": secondary}})
    }

    #[test]
    fn the_reset_is_the_latest_of_the_spent_windows() {
        let five =
            json!({"usedPercent": 100, "windowDurationMins": 300, "resetsAt": 1_796_000_930});
        let week =
            json!({"usedPercent": 100, "windowDurationMins": 10080, "resetsAt": 1_796_256_530});
        let room =
            json!({"usedPercent": 40, "windowDurationMins": 10080, "resetsAt": 1_796_256_530});
        let unknown = json!({"usedPercent": 100, "windowDurationMins": 10080, "resetsAt": null});
        let reset = |second: Value| {
            let spent = heard(&[update(five.clone(), second)]).spent(now())?;
            Some(spent.retry_at.map(Timestamp::as_second))
        };
        assert_eq!(reset(room.clone()), Some(Some(1_796_000_930)));
        assert_eq!(reset(week), Some(Some(1_796_256_530)));
        assert_eq!(reset(unknown), Some(None));
        for nonsense in [1_700_960_930_i64, 1_795_999_999, 3_999_999_999] {
            let never =
                json!({"usedPercent": 100, "windowDurationMins": 10080, "resetsAt": nonsense});
            assert_eq!(reset(never), Some(None), "{nonsense} is no reset");
        }
        assert_eq!(heard(&[update(room.clone(), room)]).spent(now()), None);
        assert_eq!(
            heard(&[update(Value::Null, Value::Null)]).spent(now()),
            None
        );
    }

    #[test]
    fn a_bucket_of_another_turn_does_not_move_the_accounts_reset() {
        let window =
            |reset: i64| json!({"usedPercent": 100, "windowDurationMins": 300, "resetsAt": reset});
        let other = json!({"rateLimits": {"limitId": "codex_bengalfox", "limitName": "GPT-5.3-Codex-Spark", "primary": window(1_796_009_000), "secondary": null}});
        let own = update(window(1_796_000_930), Value::Null);
        let spent = heard(&[other.clone(), own]).spent(now()).unwrap();
        assert_eq!(
            (spent.retry_at.map(Timestamp::as_second), spent.bucket),
            (Some(1_796_000_930), false)
        );
        let spent = heard(&[other]).spent(now()).unwrap();
        assert!(spent.bucket, "the only spent one");
    }

    #[test]
    fn an_update_completes_what_was_known() {
        let first = update(
            json!({"usedPercent": 88, "windowDurationMins": 300, "resetsAt": 1_796_000_930}),
            Value::Null,
        );
        let second = update(json!({"usedPercent": 100}), Value::Null);
        let spent = heard(&[first, second]).spent(now()).unwrap();
        assert_eq!(
            spent.retry_at.map(Timestamp::as_second),
            Some(1_796_000_930)
        );
        assert!(!spent.bucket);
    }

    #[test]
    fn depleted_credits_are_money() {
        let limits = heard(&[
            json!({"rateLimits": {"rateLimitReachedType": "workspace_owner_credits_depleted"}}),
        ]);
        assert!(limits.wants_money());
        assert!(
            !heard(&[json!({"rateLimits": {"rateLimitReachedType": "rate_limit_reached"}})])
                .wants_money()
        );
    }
}
