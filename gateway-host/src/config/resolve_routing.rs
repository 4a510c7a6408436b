//! `[profiles.P.routing]`: the settings of the routing contract under their own names. What is not written has the
//! contract's default; what lies outside its range is refused by name.

use gateway_core::route::Route;
use gateway_core::spend::Usd;
use gateway_core::switch::Settings;
use gateway_core::switch::settings::ChainOrder;

use super::document::KeyPath;
use super::duration;
use super::resolve::Resolver;
use super::written::{self, ChainOrderName};
use crate::routing::RoutingSettings;

impl Resolver<'_> {
    /// `None` = something was refused, and has been said.
    pub(super) fn routing(
        &mut self,
        written: &written::Routing,
        path: &KeyPath,
    ) -> Option<RoutingSettings> {
        let mut settings = Settings::default();
        set(&mut settings.enabled, written.enabled);
        set(&mut settings.auto_resume, written.auto_resume);
        if let Some(order) = written.chain_order {
            settings.order = match order {
                ChainOrderName::Tiered => ChainOrder::Tiered,
                ChainOrderName::Absolute => ChainOrder::Absolute,
            };
        }
        self.numbers(&mut settings, written);
        let spans = self.spans(&mut settings, written, path);
        let money = self.money(&mut settings, &written.paid, &path.join("paid"));
        let in_range = self.in_range(&settings, path);
        let candidates = self.candidates(written.chain.as_deref(), &path.join("chain"));
        let resumes = self.resumes(&settings, path);
        (spans && money && in_range && resumes).then_some(RoutingSettings {
            settings,
            candidates,
        })
    }

    /// Under routing a limited conversation always goes on at the reset; without routing nothing does it yet.
    fn resumes(&mut self, settings: &Settings, path: &KeyPath) -> bool {
        let alone = settings.auto_resume && !settings.enabled;
        if alone {
            let message = "not yet: a limited conversation goes on by itself only under routing";
            let hint = "set enabled = true beside it, or take it out of the file until then";
            self.error(&path.join("auto_resume"), message, hint);
        }
        !alone
    }

    fn numbers(&mut self, settings: &mut Settings, written: &written::Routing) {
        set(
            &mut settings.weekly_nearly_gone_pct,
            written.weekly_nearly_gone,
        );
        let guard = &written.guard;
        set(&mut settings.guard.margin_pct, guard.margin);
        set(&mut settings.guard.safety, guard.safety);
        set(&mut settings.guard.samples, guard.samples.map(usize::from));
        set(
            &mut settings.guard.min_samples,
            guard.min_samples.map(usize::from),
        );
        set(&mut settings.guard.hard_pct, guard.hard);
        set(
            &mut settings.reserve_interactive_pct,
            written.reserve.interactive,
        );
        set(
            &mut settings.reserve_background_pct,
            written.reserve.background,
        );
        set(&mut settings.cap_thread, written.cap.thread);
        set(&mut settings.cap_environment, written.cap.env);
        set(&mut settings.handoff_cap_tokens, written.handoff.cap);
    }

    fn spans(
        &mut self,
        settings: &mut Settings,
        written: &written::Routing,
        path: &KeyPath,
    ) -> bool {
        let rows = [
            ("fresh_max", &written.fresh_max, &mut settings.fresh_max_ms),
            (
                "wait_if_reset_within",
                &written.wait_if_reset_within,
                &mut settings.wait_within_ms,
            ),
            (
                "paid_wait_if_reset_within",
                &written.paid_wait_if_reset_within,
                &mut settings.paid_wait_within_ms,
            ),
            (
                "drain_timeout",
                &written.drain_timeout,
                &mut settings.drain_ms,
            ),
            (
                "interrupt_ack",
                &written.interrupt_ack,
                &mut settings.interrupt_ack_ms,
            ),
            (
                "hold_grace",
                &written.hold_grace,
                &mut settings.hold_grace_ms,
            ),
            (
                "admission.max_wait",
                &written.admission.max_wait,
                &mut settings.admission_max_wait_ms,
            ),
        ];
        let mut fine = true;
        for (key, text, place) in rows {
            match text.as_deref().map(span_ms) {
                None => {}
                Some(Some(ms)) => *place = ms,
                Some(None) => fine &= self.no_span(text.as_deref().unwrap_or_default(), key, path),
            }
        }
        if let Some([least, most]) = &written.reset_jitter {
            match (span_ms(least), span_ms(most)) {
                (Some(a), Some(b)) if a <= b => settings.reset_jitter_ms = (a, b),
                _ => fine &= self.no_span(&format!("{least}, {most}"), "reset_jitter", path),
            }
        }
        fine
    }

    fn no_span(&mut self, text: &str, key: &str, path: &KeyPath) -> bool {
        let hint = "write a number with its unit, for example \"45s\", \"10m\" or \"1h30m\"; \"0m\" is none";
        self.error(
            &below(path, key),
            format!("{text:?} is not a duration"),
            hint,
        );
        false
    }

    fn money(&mut self, settings: &mut Settings, written: &written::Paid, path: &KeyPath) -> bool {
        set(&mut settings.paid.enabled, written.enabled);
        if let Some(accounts) = &written.accounts {
            let accounts = accounts.iter().map(gateway_core::ids::SubscriptionId::new);
            settings.paid.accounts = Some(accounts.collect());
        }
        let caps = [
            ("cap_day", written.cap_day, &mut settings.paid.caps.day),
            (
                "cap_thread",
                written.cap_thread,
                &mut settings.paid.caps.thread,
            ),
        ];
        let mut fine = true;
        for (key, dollars, place) in caps {
            match dollars.map(Usd::from_dollars) {
                None => {}
                Some(Some(amount)) => *place = amount,
                Some(None) => {
                    let hint =
                        "write US dollars, for example 5 or 2.50; 0 means that nothing is spent";
                    self.error(&path.join(key), "this is not an amount of money", hint);
                    fine = false;
                }
            }
        }
        fine
    }

    fn in_range(&mut self, settings: &Settings, path: &KeyPath) -> bool {
        let outside = settings.out_of_range();
        for one in &outside {
            let hint = "leave it out for the default";
            self.error(&below(path, one.key), one.to_string(), hint);
        }
        outside.is_empty()
    }

    /// Where the work may go. What is unknown is left out with a warning: a typo must not stop the gateway.
    fn candidates(&mut self, written: Option<&[String]>, path: &KeyPath) -> Vec<Route> {
        let mut routes: Vec<Route> = Vec::new();
        for (index, entry) in written.unwrap_or_default().iter().enumerate() {
            let at = path.join(&format!("[{}]", index + 1));
            match entry.parse::<Route>() {
                Ok(route) if !self.knows(&route) => {
                    let hint = "add the subscription, or take the entry out";
                    self.warn(
                        &at,
                        format!("{entry:?} names no subscription of yours"),
                        hint,
                    );
                }
                Ok(route) if routes.contains(&route) => {
                    self.warn(&at, format!("{route} stands here twice"), "take one out");
                }
                Ok(route) => routes.push(route),
                Err(_) => {
                    let hint = "write it as subscription/model";
                    self.warn(&at, format!("{entry:?} is not a route"), hint);
                }
            }
        }
        routes
    }
}

fn set<T>(place: &mut T, written: Option<T>) {
    if let Some(value) = written {
        *place = value;
    }
}

fn below(path: &KeyPath, key: &str) -> KeyPath {
    key.split('.')
        .fold(path.clone(), |path, name| path.join(name))
}

/// Milliseconds; unlike other durations of the file, one of these may be zero.
fn span_ms(text: &str) -> Option<i64> {
    let zero = text.trim().trim_end_matches(['s', 'm', 'h']) == "0";
    match duration::parse(text) {
        Some(span) => i64::try_from(span.as_millis()).ok(),
        None => zero.then_some(0),
    }
}
