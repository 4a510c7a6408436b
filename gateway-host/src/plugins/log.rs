//! What plugins may ask of the gateway: a log line under their id, counters and gauges. Bounded in length and rate, so
//! that a chatty plugin cannot fill the disk; never blocks for long and never calls back into a plugin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi_stable::erased_types::TD_Opaque;
use abi_stable::std_types::{RArc, RStr};
use parking_lot::Mutex;
use plugin_api::services::{HostBox, HostServices, HostServices_TO, Level, MetricKind};

const LINE_BYTES: usize = 8 * 1024;
const LINES_PER_SECOND: u32 = 200;
/// Metrics one plugin may define.
const MAX_METRICS: usize = 256;

/// The numbers plugins report, by plugin and name. Instances of one plugin share them.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<BTreeMap<(String, String), f64>>);

impl Metrics {
    /// The values so far: plugin, metric, value.
    pub fn values(&self) -> Vec<(String, String, f64)> {
        let values = self.0.lock();
        values
            .iter()
            .map(|((plugin, name), value)| (plugin.clone(), name.clone(), *value))
            .collect()
    }

    fn change(&self, plugin: &str, name: &str, change: impl FnOnce(f64) -> f64) {
        let mut values = self.0.lock();
        let value = values
            .entry((plugin.to_owned(), name.to_owned()))
            .or_default();
        *value = change(*value);
    }
}

/// The host services of one plugin instance.
pub(crate) fn services(plugin: &str, metrics: Arc<Metrics>) -> HostBox {
    let bridge = Bridge {
        plugin: plugin.to_owned(),
        metrics,
        names: Mutex::default(),
        rate: Mutex::new(Rate::new(Instant::now())),
    };
    HostServices_TO::from_ptr(RArc::new(Shared(Arc::new(bridge))), TD_Opaque)
}

struct Bridge {
    plugin: String,
    metrics: Arc<Metrics>,
    /// Metric names by id, from 1.
    names: Mutex<Vec<String>>,
    rate: Mutex<Rate>,
}

#[derive(Clone)]
struct Shared(Arc<Bridge>);

impl HostServices for Shared {
    fn log(&self, level: Level, line: RStr<'_>) {
        let (allowed, swallowed) = self.0.rate.lock().take(Instant::now());
        if swallowed > 0 {
            tracing::warn!(target: "plugin", plugin = %self.0.plugin, "PLUGIN_MISBEHAVING: {swallowed} log lines over {LINES_PER_SECOND} a second were dropped");
        }
        if allowed {
            emit(&self.0.plugin, level, &cut(line.as_str()));
        }
    }

    fn metric(&self, _kind: MetricKind, name: RStr<'_>) -> u32 {
        let mut names = self.0.names.lock();
        let known = names.iter().position(|known| known == name.as_str());
        let index = match known {
            Some(index) => index,
            None if names.len() >= MAX_METRICS => return 0,
            None => {
                names.push(cut(name.as_str()));
                names.len() - 1
            }
        };
        u32::try_from(index + 1).unwrap_or(0)
    }

    fn counter_add(&self, metric: u32, by: u64) {
        self.change(metric, |value| value + by as f64);
    }

    fn gauge_set(&self, metric: u32, to: f64) {
        self.change(metric, |_| to);
    }

    fn extension(&self, _name: RStr<'_>) -> u32 {
        0
    }
}

impl Shared {
    fn change(&self, metric: u32, change: impl FnOnce(f64) -> f64) {
        let index = (metric as usize).checked_sub(1);
        let name = index.and_then(|index| self.0.names.lock().get(index).cloned());
        if let Some(name) = name {
            self.0.metrics.change(&self.0.plugin, &name, change);
        }
    }
}

fn emit(plugin: &str, level: Level, line: &str) {
    match level {
        Level::Error => tracing::error!(target: "plugin", plugin, "{line}"),
        Level::Warn => tracing::warn!(target: "plugin", plugin, "{line}"),
        Level::Info => tracing::info!(target: "plugin", plugin, "{line}"),
        Level::Debug => tracing::debug!(target: "plugin", plugin, "{line}"),
        _ => tracing::trace!(target: "plugin", plugin, "{line}"),
    }
}

/// At most 8 KiB, one line, without control characters.
fn cut(line: &str) -> String {
    let end = line.floor_char_boundary(LINE_BYTES);
    let (kept, rest) = line.split_at(end);
    let mut text: String = kept
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if !rest.is_empty() {
        text.push('…');
    }
    text
}

/// Lines of the running second.
struct Rate {
    since: Instant,
    lines: u32,
    swallowed: u64,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            lines: 0,
            swallowed: 0,
        }
    }

    /// Whether one more line may pass, and how many did not in the second that just ended.
    fn take(&mut self, now: Instant) -> (bool, u64) {
        let mut told = 0;
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            told = self.swallowed;
            *self = Self::new(now);
        }
        self.lines += 1;
        let allowed = self.lines <= LINES_PER_SECOND;
        self.swallowed += u64::from(!allowed);
        (allowed, told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_lines_pass_in_a_second_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let passed = (0..1000).filter(|_| rate.take(start).0).count();
        assert_eq!(passed, 200);
        assert_eq!(rate.take(start + Duration::from_secs(1)), (true, 800));
        assert_eq!(rate.take(start + Duration::from_secs(1)), (true, 0));
    }

    #[test]
    fn a_line_is_one_line_of_at_most_8_kib() {
        assert_eq!(cut("a\nb\u{1b}[31m"), "a b [31m");
        let long = "é".repeat(LINE_BYTES);
        assert_eq!(cut(&long).chars().count(), LINE_BYTES / 2 + 1);
    }

    #[test]
    fn metrics_are_kept_by_plugin_and_name() {
        let metrics = Arc::new(Metrics::default());
        let host = services("p", metrics.clone());
        let counter = host.metric(MetricKind::Counter, "hits".into());
        assert_eq!(host.metric(MetricKind::Counter, "hits".into()), counter);
        host.counter_add(counter, 2);
        host.counter_add(counter, 3);
        host.counter_add(99, 1);
        assert_eq!(metrics.values(), [("p".into(), "hits".into(), 5.0)]);
    }
}
