//! The facts sheet: a chain joined with the readings of its subscriptions, as the records plugins read. Built once per
//! change of either and lent to every call; nothing in it depends on the time.

use std::collections::HashMap;

use gateway_core::route::{Billing, Chain, ChainEntry};
use gateway_core::usage::Reading;
use plugin_api::records::{RouteRecord, WindowRecord};

/// A chain joined with readings.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FactSheet {
    pub(crate) routes: Vec<RouteRecord>,
    /// Grouped by subscription; a route names its range.
    pub(crate) windows: Vec<WindowRecord>,
}

impl FactSheet {
    /// Joins by slug. `usable[i]` says whether the walk would take entry `i` at all; a missing one counts as usable.
    /// `readings` hold the newest reading per window and scope of each subscription.
    pub fn build(chain: &Chain, usable: &[bool], readings: &[Reading]) -> Self {
        let mut sheet = Self::default();
        let mut by_slug: HashMap<&str, Vec<&Reading>> = HashMap::new();
        for reading in readings {
            by_slug
                .entry(reading.subscription.key())
                .or_default()
                .push(reading);
        }
        let mut placed: HashMap<&str, (u32, u32)> = HashMap::new();
        for (position, entry) in chain.entries.iter().enumerate() {
            let range = *placed.entry(entry.slug.key()).or_insert_with(|| {
                let found = by_slug.get(entry.slug.key()).map_or(&[][..], Vec::as_slice);
                sheet.place(found)
            });
            let usable = usable.get(position).copied().unwrap_or(true);
            sheet.routes.push(route_record(entry, usable, range));
        }
        sheet
    }

    /// How many positions the chain has.
    pub fn positions(&self) -> usize {
        self.routes.len()
    }

    fn place(&mut self, readings: &[&Reading]) -> (u32, u32) {
        let first = self.windows.len();
        self.windows
            .extend(readings.iter().map(|reading| WindowRecord::from(*reading)));
        (narrow(first), narrow(readings.len()))
    }
}

fn route_record(entry: &ChainEntry, usable: bool, windows: (u32, u32)) -> RouteRecord {
    let counts_as = entry
        .group
        .as_deref()
        .unwrap_or(entry.route.subscription.key());
    RouteRecord {
        subscription: entry.route.subscription.as_str().into(),
        model: entry.route.model.as_str().into(),
        slug: entry.slug.key().into(),
        counts_as: counts_as.into(),
        metered: entry.billing == Billing::Metered,
        usable,
        first_window: windows.0,
        window_count: windows.1,
    }
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use gateway_core::ids::SubscriptionId;
    use gateway_core::route::Route;
    use gateway_core::usage::{ReadingSource, WindowStatus};

    use super::*;

    fn entry(subscription: &str, slug: &str) -> ChainEntry {
        ChainEntry {
            route: Route::new(subscription, "opus"),
            slug: SubscriptionId::new(slug),
            billing: Billing::Plan,
            group: None,
        }
    }

    fn reading(slug: &str, window: &str) -> Reading {
        Reading {
            subscription: SubscriptionId::new(slug),
            window: window.into(),
            scope: None,
            used_pct: None,
            status: WindowStatus::Allowed,
            resets_at: None,
            duration_mins: None,
            observed_at: None,
            source: ReadingSource::Probe,
        }
    }

    #[test]
    fn readings_join_by_slug_whatever_the_case_and_stand_once() {
        let chain = Chain {
            entries: vec![
                entry("A", "Claude-1"),
                entry("B", "b"),
                entry("C", "claude-1"),
            ],
        };
        let readings = [
            reading("b", "primary"),
            reading("CLAUDE-1", "five_hour"),
            reading("claude-1 ", "seven_day"),
            reading("nobody", "five_hour"),
        ];
        let sheet = FactSheet::build(&chain, &[true, false], &readings);
        let of = |position: usize| {
            let route = &sheet.routes[position];
            let first = route.first_window as usize;
            sheet.windows[first..first + route.window_count as usize]
                .iter()
                .map(|window| window.id.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), ["five_hour", "seven_day"]);
        assert_eq!(of(1), ["primary"]);
        assert_eq!(of(2), of(0));
        assert_eq!(sheet.windows.len(), 3, "shared windows are stored once");
        let usable: Vec<bool> = sheet.routes.iter().map(|route| route.usable).collect();
        assert_eq!(usable, [true, false, true]);
    }
}
