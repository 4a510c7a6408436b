//! The sign that somebody is working: typing on Discord, an assistant's status on Slack. Pure.
//!
//! Discord shows typing for 10 s or until the bot posts (its documentation, trigger typing indicator), so it is renewed a
//! little sooner. A place whose turn never ends stops by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::wire::Place;

/// The longest a sign is renewed without anything being heard of the turn.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30 * 60);

/// Where the sign is shown.
#[derive(Debug)]
pub struct Activity {
    every: Duration,
    places: BTreeMap<Place, Shown>,
}

#[derive(Debug)]
struct Shown {
    next: Instant,
    until: Instant,
}

impl Activity {
    /// Renews the sign after `every`.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            places: BTreeMap::new(),
        }
    }

    /// Shows the sign from now on; where it stands already, goes on.
    pub fn start(&mut self, place: Place, now: Instant) {
        let until = now + GIVE_UP_AFTER;
        let shown = self
            .places
            .entry(place)
            .or_insert(Shown { next: now, until });
        shown.until = until;
    }

    /// Renews it no more.
    pub fn stop(&mut self, place: &Place) {
        self.places.remove(place);
    }

    /// When the next sign is due.
    pub fn due(&self) -> Option<Instant> {
        self.places.values().map(|shown| shown.next).min()
    }

    /// The places whose sign is due.
    pub fn take(&mut self, now: Instant) -> Vec<Place> {
        self.places.retain(|_, shown| shown.until > now);
        let mut due = Vec::new();
        for (place, shown) in &mut self.places {
            if shown.next <= now {
                shown.next = now + self.every;
                due.push(place.clone());
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_renewed_until_it_stops_or_is_forgotten() {
        let every = Duration::from_secs(8);
        let (mut activity, start) = (Activity::new(every), Instant::now());
        let place = Place {
            channel: "c".to_owned(),
            thread: None,
        };
        activity.start(place.clone(), start);
        assert_eq!(activity.take(start), vec![place.clone()]);
        activity.start(place.clone(), start);
        assert!(activity.take(start).is_empty(), "shown already");
        assert_eq!(activity.due(), Some(start + every));
        assert_eq!(activity.take(start + every).len(), 1);
        activity.stop(&place);
        assert_eq!(
            (activity.due(), activity.take(start + every * 2)),
            (None, Vec::new())
        );
        activity.start(place, start);
        assert!(activity.take(start + GIVE_UP_AFTER).is_empty() && activity.due().is_none());
    }
}
