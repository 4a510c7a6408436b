//! What is known of every subscription now: the published snapshot and our own readings, merged to the newest per window
//! of each quota group. Shared by all profiles of a root; other processes of the root are heard through the store and the
//! snapshot.
//!
//! Asking is cheap while nothing changes (one `stat`, one question to the store); a change costs one merge, and of the
//! store only what changed is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::failure::Failure;
use gateway_core::ids::SubscriptionId;
use gateway_core::route::Chain;
use gateway_core::usage::identity::{Login, QuotaGroups};
use gateway_core::usage::refusal::{self, reading_of_failure};
use gateway_core::usage::scope::{self, Reach};
use gateway_core::usage::{Reading, ReadingSource, WindowStatus, merge};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, watch};

use super::ingest::{Inbox, Writer};
use super::snapshot::{Snapshot, SnapshotFault};
use crate::config::{RootPath, Settings};
use crate::store::{Store, StoreError};

/// The newest readings of a moment.
#[derive(Debug, Default, PartialEq)]
pub struct Evidence {
    /// One per (subscription, window, scope). Subscriptions of one quota group share theirs: each has all of them, under
    /// its own name.
    pub readings: Vec<Reading>,
    /// Which subscriptions draw on one allowance.
    pub groups: QuotaGroups,
    /// Changes only when the readings or the groups do; for caches built over them. 0 = nothing was ever known.
    pub revision: u64,
    /// Why the snapshot is not used as it is.
    pub fault: Option<SnapshotFault>,
}

impl Evidence {
    /// The readings of one subscription.
    pub fn of<'a>(&'a self, slug: &'a SubscriptionId) -> impl Iterator<Item = &'a Reading> {
        self.readings
            .iter()
            .filter(move |reading| reading.subscription == *slug)
    }

    /// The name that stands for a subscription's quota group; `None` = it shares with nobody known.
    pub fn group(&self, slug: &SubscriptionId) -> Option<&str> {
        self.groups.shared_head(slug)
    }

    /// Gives each entry the quota group of its login, where it shares one.
    pub fn group_entries(&self, chain: &mut Chain) {
        for entry in &mut chain.entries {
            entry.group = self.group(&entry.slug).map(str::to_owned);
        }
    }
}

/// The part of the store that holds readings; all that the registry needs of it.
#[async_trait]
pub(super) trait Ledger: Send + Sync {
    /// What changed after a revision, with the revision that changed it; -1 = everything.
    async fn since(&self, revision: i64) -> Result<Vec<(i64, Reading)>, StoreError>;
    async fn put(&self, readings: &[Reading], now: Timestamp) -> Result<(), StoreError>;
    async fn revision(&self) -> Result<i64, StoreError>;
    async fn logins(&self) -> Result<Vec<Login>, StoreError>;
    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError>;
}

#[async_trait]
impl Ledger for Arc<dyn Store> {
    async fn since(&self, revision: i64) -> Result<Vec<(i64, Reading)>, StoreError> {
        self.readings_since(revision).await
    }

    async fn put(&self, readings: &[Reading], now: Timestamp) -> Result<(), StoreError> {
        self.put_readings(readings, now).await
    }

    async fn revision(&self) -> Result<i64, StoreError> {
        self.readings_revision().await
    }

    async fn logins(&self) -> Result<Vec<Login>, StoreError> {
        Store::logins(&**self).await
    }

    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError> {
        Store::put_logins(&**self, logins).await
    }
}

/// The registry of a root.
pub struct Registry {
    ledger: Arc<dyn Ledger>,
    root: RootPath,
    inbox: Arc<Inbox>,
    /// Taken by the writer when the first reading comes in.
    idle_writer: Lock<Option<watch::Sender<u64>>>,
    /// Held over a refresh, so that a change is merged once however many turns ask.
    view: Mutex<View>,
}

/// Subscription, window and scope, in the order the store has them.
type Key = (String, String, String);

struct View {
    snapshot: Snapshot,
    own: BTreeMap<Key, Reading>,
    own_revision: Option<i64>,
    groups: QuotaGroups,
    /// Refusals the store did not take, as last merged.
    unstored: Vec<Reading>,
    /// A source has changed since the last merge. Kept here, as a caller may go away between the two.
    unmerged: bool,
    /// From then on a reading stamped ahead of the clock is sane, and the merge may come out differently.
    merge_again_at: Option<Timestamp>,
    evidence: Arc<Evidence>,
}

impl Registry {
    /// The registry of the settings' root over its store. Nothing is read yet.
    pub fn new(settings: &Settings, store: Arc<dyn Store>) -> Self {
        let snapshot = Snapshot::at(&settings.usage_snapshot);
        Self::over(settings.root.clone(), snapshot, Arc::new(store))
    }

    /// From its parts: where we publish, what we read, what we keep.
    pub(super) fn over(root: RootPath, snapshot: Snapshot, ledger: Arc<dyn Ledger>) -> Self {
        let view = View {
            snapshot,
            own: BTreeMap::new(),
            own_revision: None,
            groups: QuotaGroups::default(),
            unstored: Vec::new(),
            unmerged: true,
            merge_again_at: None,
            evidence: Arc::default(),
        };
        let (inbox, writer) = Inbox::new();
        Self {
            ledger,
            root,
            inbox,
            idle_writer: Lock::new(Some(writer)),
            view: Mutex::new(view),
        }
    }

    /// What is known now. Never fails: a source that cannot be read is left out, or stays as it was last read.
    pub async fn current(&self, now: Timestamp) -> Arc<Evidence> {
        let mut view = self.view.lock().await;
        refresh_snapshot(&mut view).await;
        self.refresh_own(&mut view).await;
        let unstored = self.inbox.unstored();
        if unstored != view.unstored {
            view.unstored = unstored;
            view.unmerged = true;
        }
        if view.unmerged || view.merge_again_at.is_some_and(|at| at <= now) {
            view.merge(now);
        }
        Arc::clone(&view.evidence)
    }

    /// Takes in readings heard while a turn runs, without waiting: they are stored within a tenth of a second, and
    /// published within half of one; a refusal among them goes at once. [`settled`](Self::settled) waits for them.
    pub fn hear(&self, readings: Vec<Reading>, now: Timestamp) {
        self.put(readings, false, now);
    }

    /// Waits until everything heard so far is stored: before a decision is taken on it.
    pub async fn settled(&self) {
        if let Some(put) = self.inbox.hurry() {
            self.inbox.written(put).await;
        }
    }

    /// Takes in readings and waits until they are stored and published for others.
    pub async fn learn(&self, readings: Vec<Reading>, now: Timestamp) {
        if let Some(put) = self.put(readings, true, now) {
            self.inbox.written(put).await;
        }
    }

    /// Takes in what a probe of a subscription brought. It also clears refusals that named no window, where it shows room.
    pub async fn learn_probed(
        &self,
        slug: &SubscriptionId,
        mut readings: Vec<Reading>,
        now: Timestamp,
    ) {
        let evidence = self.current(now).await;
        let known: Vec<Reading> = evidence.of(slug).cloned().collect();
        readings.extend(refusal::disproved(&known, &readings, now));
        let now = no_earlier(&readings, now);
        self.learn(readings, now).await;
    }

    /// A turn on this route was refused: the window it was refused for is marked until its reset, for every process.
    pub async fn refused(
        &self,
        slug: &SubscriptionId,
        model: &str,
        failure: &Failure,
        now: Timestamp,
    ) {
        let Some(mark) = reading_of_failure(slug, model, failure, now) else {
            return;
        };
        let evidence = self.current(now).await;
        let mark = refusal::named(mark, evidence.of(slug), now);
        self.learn(vec![mark], now).await;
    }

    /// A turn on this route was answered: refusals of ours that would block it are proven wrong and cleared.
    pub async fn answered(&self, slug: &SubscriptionId, model: &str, now: Timestamp) {
        let evidence = self.current(now).await;
        let cleared: Vec<Reading> = evidence
            .of(slug)
            .filter(|reading| is_mark_against(reading, model))
            .map(|mark| refusal::cleared(mark, now))
            .collect();
        let now = no_earlier(&cleared, now);
        self.learn(cleared, now).await;
    }

    /// Who these logins are; which of them share an allowance follows.
    pub async fn introduce(&self, logins: &[Login]) {
        if let Err(why) = self.ledger.put_logins(logins).await {
            tracing::warn!(%why, "who the logins are was not stored; logins of one allowance count as several");
        }
    }

    /// Who the logins are, as stored.
    pub async fn logins(&self) -> Vec<Login> {
        self.ledger.logins().await.unwrap_or_else(|why| {
            tracing::warn!(%why, "who the logins are cannot be read");
            Vec::new()
        })
    }

    /// `None` = there was nothing to take in.
    fn put(&self, readings: Vec<Reading>, urgent: bool, now: Timestamp) -> Option<u64> {
        let sane: Vec<Reading> = readings
            .into_iter()
            .filter(|reading| !reading.subscription.key().is_empty())
            .filter_map(|reading| merge::heard(reading, now))
            .collect();
        if sane.is_empty() {
            return None;
        }
        if let Some(done) = self.idle_writer.lock().take() {
            let writer = Writer {
                inbox: Arc::clone(&self.inbox),
                done,
                ledger: Arc::clone(&self.ledger),
                root: self.root.clone(),
            };
            tokio::spawn(writer.run());
        }
        Some(self.inbox.put(sane, urgent, now))
    }

    async fn refresh_own(&self, view: &mut View) {
        if let Err(why) = self.take_changes(view).await {
            tracing::warn!(%why, "the stored usage readings cannot be read; going on with those known");
        }
    }

    /// The revision is asked first: a change between the questions is then seen the next time, instead of never.
    async fn take_changes(&self, view: &mut View) -> Result<(), StoreError> {
        let revision = self.ledger.revision().await?;
        if view.own_revision == Some(revision) {
            return Ok(());
        }
        let changed = self.ledger.since(view.own_revision.unwrap_or(-1)).await?;
        let groups = QuotaGroups::of(&self.ledger.logins().await?);
        view.unmerged |= !changed.is_empty() || groups != view.groups;
        for (_, reading) in changed {
            view.own.insert(key(&reading), reading);
        }
        view.groups = groups;
        view.own_revision = Some(revision);
        Ok(())
    }
}

impl Drop for Registry {
    /// What waits is still written.
    fn drop(&mut self) {
        self.inbox.close();
    }
}

/// What clears a mark is stamped a millisecond after it, which may be a moment from now.
fn no_earlier(readings: &[Reading], now: Timestamp) -> Timestamp {
    let a_moment = |at: &Timestamp| at.duration_since(now) <= SignedDuration::from_millis(1);
    let stamps = readings.iter().filter_map(|reading| reading.observed_at);
    stamps.filter(a_moment).max().map_or(now, |at| at.max(now))
}

fn key(reading: &Reading) -> Key {
    (
        reading.subscription.key().to_owned(),
        reading.window.clone(),
        reading.scope.as_ref().map(scope::text).unwrap_or_default(),
    )
}

impl View {
    fn merge(&mut self, now: Timestamp) {
        self.unmerged = false;
        let published = self.snapshot.readings();
        let all = published
            .iter()
            .chain(self.own.values())
            .chain(&self.unstored);
        self.merge_again_at = all
            .clone()
            .filter_map(|reading| reading.observed_at)
            .filter(|at| merge::is_ahead(*at, now))
            .min()
            .and_then(|at| at.checked_sub(SignedDuration::from_mins(1)).ok());
        let readings = shared(
            merge::newest_per(all.cloned(), now, |reading| {
                self.groups.head(&reading.subscription).to_owned()
            }),
            &self.groups,
        );
        let fault = self.snapshot.fault().cloned();
        let changed = readings != self.evidence.readings || self.groups != self.evidence.groups;
        if changed || fault != self.evidence.fault {
            let revision = self.evidence.revision + u64::from(changed);
            self.evidence = Arc::new(Evidence {
                readings,
                groups: self.groups.clone(),
                revision,
                fault,
            });
        }
    }
}

/// Gives every member of a quota group the readings of the group.
fn shared(newest: Vec<Reading>, groups: &QuotaGroups) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(newest.len());
    for reading in newest {
        for other in groups.others(&reading.subscription) {
            readings.push(Reading {
                subscription: SubscriptionId::new(other),
                ..reading.clone()
            });
        }
        readings.push(reading);
    }
    readings
}

/// Reads the snapshot if it has changed, off the runtime's threads.
async fn refresh_snapshot(view: &mut View) {
    if !view.snapshot.is_outdated() {
        return;
    }
    // Read on a copy: whatever happens on the way, the view keeps what it had.
    let mut snapshot = view.snapshot.clone();
    let read = tokio::task::spawn_blocking(move || {
        snapshot.refresh();
        snapshot
    });
    let Ok(snapshot) = read.await else {
        return;
    };
    if let Some(why) = snapshot
        .fault()
        .filter(|why| Some(*why) != view.snapshot.fault())
    {
        tracing::warn!(%why, "the usage snapshot is not used as it is");
    }
    view.snapshot = snapshot;
    view.unmerged = true;
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

#[cfg(test)]
mod tests;
