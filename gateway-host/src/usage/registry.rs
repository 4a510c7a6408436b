//! What is known of every subscription now: the published snapshot and our own readings, merged to the newest per window.
//! Shared by all profiles of a root; other processes of the root are heard through the store and the snapshot.
//!
//! Asking is cheap while nothing changes (one `stat`, one question to the store); a change costs one merge.

use std::sync::Arc;

use gateway_core::ids::SubscriptionId;
use gateway_core::usage::merge;
use gateway_core::usage::scope::{self, Reach};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use super::publish;
use super::snapshot::{Snapshot, SnapshotFault};
use crate::config::{RootPath, Settings};
use crate::store::{Store, StoreError};

/// The newest readings of a moment.
#[derive(Debug, Default, PartialEq)]
pub struct Evidence {
    /// One per (subscription, window, scope).
    pub readings: Vec<Reading>,
    /// Changes only when the readings do; for caches built over them. 0 = nothing was ever known.
    pub revision: u64,
    /// Why the snapshot is not used as it is.
    pub fault: Option<SnapshotFault>,
}

impl Evidence {
    /// The readings of one subscription.
    pub fn of<'a>(&'a self, slug: &'a SubscriptionId) -> impl Iterator<Item = &'a Reading> {
        self.readings.iter().filter(move |reading| reading.subscription == *slug)
    }
}

/// The registry of a root.
pub struct Registry {
    root: RootPath,
    store: Arc<dyn Store>,
    /// Held over a refresh, so that a change is merged once however many turns ask.
    view: Mutex<View>,
}

struct View {
    snapshot: Snapshot,
    own: Vec<Reading>,
    own_revision: Option<i64>,
    /// From then on a reading stamped ahead of the clock is sane, and the merge may come out differently.
    merge_again_at: Option<Timestamp>,
    evidence: Arc<Evidence>,
}

impl Registry {
    /// The registry of the settings' root over its store. Nothing is read yet.
    pub fn new(settings: &Settings, store: Arc<dyn Store>) -> Self {
        Self::at(settings.root.clone(), Snapshot::at(&settings.usage_snapshot), store)
    }

    /// The same from its parts: where we publish, what we read, what we keep.
    pub fn at(root: RootPath, snapshot: Snapshot, store: Arc<dyn Store>) -> Self {
        let view = View {
            snapshot,
            own: Vec::new(),
            own_revision: None,
            merge_again_at: None,
            evidence: Arc::default(),
        };
        Self { root, store, view: Mutex::new(view) }
    }

    /// What is known now. Never fails: a source that cannot be read is left out, or stays as it was last read.
    pub async fn current(&self, now: Timestamp) -> Arc<Evidence> {
        let mut view = self.view.lock().await;
        let snapshot_changed = refresh_snapshot(&mut view).await;
        let own_changed = self.refresh_own(&mut view).await;
        if snapshot_changed || own_changed || view.merge_again_at.is_some_and(|at| at <= now) {
            view.merge(now);
        }
        Arc::clone(&view.evidence)
    }

    /// Takes in readings heard in band (events, headers, refusals): stored, then published for others. A stamp that is
    /// missing or ahead of our clock becomes `now`, as that is when it was heard.
    pub async fn learn(&self, mut readings: Vec<Reading>, now: Timestamp) {
        readings.retain(|reading| !reading.subscription.key().is_empty());
        for reading in &mut readings {
            reading.observed_at = Some(reading.observed_at.map_or(now, |at| at.min(now)));
        }
        if !readings.is_empty() {
            self.take_in(readings, now).await;
        }
    }

    /// A turn on this route was answered: refusals of ours that would block it are proven wrong and cleared.
    pub async fn answered(&self, slug: &SubscriptionId, model: &str, now: Timestamp) {
        let evidence = self.current(now).await;
        let cleared: Vec<Reading> = evidence
            .of(slug)
            .filter(|reading| is_mark_against(reading, model))
            .map(|mark| cleared(mark, now))
            .collect();
        if !cleared.is_empty() {
            self.take_in(cleared, now).await;
        }
    }

    async fn take_in(&self, readings: Vec<Reading>, now: Timestamp) {
        if let Err(why) = self.store.put_readings(&readings).await {
            tracing::warn!(%why, "usage readings were not stored");
        }
        let root = self.root.clone();
        let published =
            tokio::task::spawn_blocking(move || publish::publish(&root, &readings, now)).await;
        match published {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => tracing::warn!(%why, "usage readings were not published"),
            Err(why) => tracing::warn!(%why, "publishing usage readings broke off"),
        }
    }

    /// Returns whether our own readings may differ now.
    async fn refresh_own(&self, view: &mut View) -> bool {
        match self.own_readings(view.own_revision).await {
            Ok(None) => false,
            Ok(Some((revision, readings))) => {
                view.own = readings;
                view.own_revision = Some(revision);
                true
            }
            Err(why) => {
                tracing::warn!(%why, "the stored usage readings cannot be read; going on with those known");
                false
            }
        }
    }

    /// `None` = still at the revision we have. The revision is asked first: a change between the two questions is then
    /// seen the next time, instead of never.
    async fn own_readings(&self, have: Option<i64>) -> Result<Option<(i64, Vec<Reading>)>, StoreError> {
        let revision = self.store.readings_revision().await?;
        if have == Some(revision) {
            return Ok(None);
        }
        Ok(Some((revision, self.store.readings().await?)))
    }
}

impl View {
    fn merge(&mut self, now: Timestamp) {
        let published = self.snapshot.readings();
        let all = published.iter().chain(&self.own);
        self.merge_again_at = all
            .clone()
            .filter_map(|reading| reading.observed_at)
            .filter(|at| merge::is_ahead(*at, now))
            .min()
            .and_then(|at| at.checked_sub(SignedDuration::from_mins(1)).ok());
        let readings = merge::newest(all.cloned(), now);
        let fault = self.snapshot.fault().cloned();
        let changed = readings != self.evidence.readings;
        if changed || fault != self.evidence.fault {
            let revision = self.evidence.revision + u64::from(changed);
            self.evidence = Arc::new(Evidence { readings, revision, fault });
        }
    }
}

/// Reads the snapshot if it has changed, off the runtime's threads.
async fn refresh_snapshot(view: &mut View) -> bool {
    if !view.snapshot.is_outdated() {
        return false;
    }
    let mut snapshot = std::mem::replace(&mut view.snapshot, Snapshot::at(""));
    let before = snapshot.fault().cloned();
    let read = tokio::task::spawn_blocking(move || {
        let changed = snapshot.refresh();
        (snapshot, changed)
    });
    let Ok((snapshot, changed)) = read.await else {
        return false;
    };
    if let Some(why) = snapshot.fault().filter(|why| Some(*why) != before.as_ref()) {
        tracing::warn!(%why, "the usage snapshot is not used as it is");
    }
    view.snapshot = snapshot;
    changed
}

/// Whether a reading is a refusal that would keep this model off its subscription.
fn is_mark_against(reading: &Reading, model: &str) -> bool {
    reading.source == ReadingSource::Failure
        && reading.status == WindowStatus::Rejected
        && match scope::reach(&reading.window, scope::view(reading.scope.as_ref())) {
            Reach::Account => true,
            Reach::Model(family) => scope::fits(family, model),
            Reach::Bucket(_) | Reach::Spend | Reach::Unknown => false,
        }
}

/// The reading that replaces a mark: newer than it by all means, and silent about how full the window is.
fn cleared(mark: &Reading, now: Timestamp) -> Reading {
    let after_mark = mark.observed_at.and_then(|at| at.checked_add(SignedDuration::from_millis(1)).ok());
    Reading {
        used_pct: None,
        status: WindowStatus::Allowed,
        resets_at: None,
        observed_at: Some(after_mark.map_or(now, |at| at.max(now))),
        source: ReadingSource::Event,
        ..mark.clone()
    }
}

#[cfg(test)]
mod tests;
