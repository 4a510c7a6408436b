use std::fs::File;
use std::io::Write;
use std::path::Path;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::plan::{EntryVerdict, GateSettings, judge};
use gateway_core::usage::refusal::reading_of_failure;
use parking_lot::Mutex as Lock;

use super::*;

const NOW_S: i64 = 1_789_981_200;

/// The readings of several processes that share a store.
#[derive(Clone, Default)]
struct Shared(Arc<Lock<(i64, Vec<Reading>, bool)>>);

impl Shared {
    fn fail(&self, failing: bool) {
        self.0.lock().2 = failing;
    }

    fn healthy(&self) -> Result<(), StoreError> {
        match self.0.lock().2 {
            true => Err(StoreError::Read("the disk is gone".into())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Ledger for Shared {
    async fn readings(&self) -> Result<Vec<Reading>, StoreError> {
        self.healthy()?;
        Ok(self.0.lock().1.clone())
    }

    async fn put(&self, readings: &[Reading]) -> Result<(), StoreError> {
        self.healthy()?;
        let mut held = self.0.lock();
        let all = held
            .1
            .drain(..)
            .chain(readings.iter().cloned())
            .collect::<Vec<_>>();
        held.1 = merge::newest(all, at(86_400));
        held.0 += 1;
        Ok(())
    }

    async fn revision(&self) -> Result<i64, StoreError> {
        self.healthy()?;
        Ok(self.0.lock().0)
    }
}

fn at(offset_s: i64) -> Timestamp {
    Timestamp::from_second(NOW_S + offset_s).unwrap()
}

fn now() -> Timestamp {
    at(0)
}

struct Place {
    dir: tempfile::TempDir,
    shared: Shared,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            shared: Shared::default(),
        }
    }

    fn root(&self) -> RootPath {
        RootPath(self.dir.path().to_owned())
    }

    /// One process of the root.
    fn registry(&self) -> Registry {
        let snapshot = Snapshot::at(publish::place(&self.root()));
        Registry::over(self.root(), snapshot, Box::new(self.shared.clone()))
    }

    fn write(&self, text: &str) {
        let path = publish::place(&self.root());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text);
    }
}

fn write(path: &Path, text: &str) {
    File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn refusal(slug: &str, model: &str, window: Option<&str>, scope: FailureScope) -> Reading {
    let failure = Failure::new(FailureKind::RateLimit, scope, "x")
        .retry_at(Some(at(7_200)))
        .window(window.map(str::to_owned));
    reading_of_failure(&slug.into(), model, &failure, now()).unwrap()
}

fn is_spent(evidence: &Evidence, slug: &str, model: &str, now: Timestamp) -> bool {
    let slug = SubscriptionId::new(slug);
    let windows = evidence.of(&slug).map(Reading::view);
    judge(
        model,
        windows,
        GateSettings::default(),
        now.as_millisecond(),
    ) != EntryVerdict::Eligible
}

#[tokio::test]
async fn what_one_process_learns_another_knows() {
    let place = Place::new();
    let (one, other) = (place.registry(), place.registry());
    assert_eq!(*other.current(now()).await, Evidence::default());
    one.learn(
        vec![refusal("A", "m", Some("five_hour"), FailureScope::Account)],
        now(),
    )
    .await;
    let known = other.current(at(1)).await;
    assert!(is_spent(&known, "a", "m", at(1)));
    // And a program that has only the file sees it too.
    let path = publish::place(&place.root());
    let portal = gateway_core::usage::portal::parse(&std::fs::read(path).unwrap());
    assert_eq!(portal.readings, known.readings);
}

#[tokio::test]
async fn the_revision_moves_only_with_the_content() {
    let place = Place::new();
    let registry = place.registry();
    registry
        .learn(vec![refusal("a", "m", None, FailureScope::Account)], now())
        .await;
    let first = registry.current(now()).await;
    assert!(
        Arc::ptr_eq(&first, &registry.current(now()).await),
        "nothing changed: the same view"
    );
    // The file is written anew with the same content: read, merged, and found to be the same.
    let path = publish::place(&place.root());
    let text = std::fs::read_to_string(&path).unwrap();
    write(&path, &format!("{text} "));
    assert_eq!(registry.current(now()).await.revision, first.revision);
    registry
        .learn(vec![refusal("b", "m", None, FailureScope::Account)], now())
        .await;
    assert!(registry.current(now()).await.revision > first.revision);
}

#[tokio::test]
async fn an_answered_turn_clears_the_marks_that_would_block_its_route() {
    let place = Place::new();
    let registry = place.registry();
    registry
        .learn(
            vec![
                refusal("a", "opus", Some("five_hour"), FailureScope::Account),
                refusal("a", "opus", None, FailureScope::AccountModel),
                refusal("a", "sonnet", None, FailureScope::AccountModel),
                refusal("b", "opus", None, FailureScope::Account),
            ],
            now(),
        )
        .await;
    registry.answered(&"A".into(), "opus", now()).await;
    let known = registry.current(at(1)).await;
    assert!(!is_spent(&known, "a", "opus", at(1)));
    assert!(
        is_spent(&known, "a", "sonnet", at(1)),
        "another model's mark stays"
    );
    assert!(
        is_spent(&known, "b", "opus", at(1)),
        "another subscription's mark stays"
    );
}

#[tokio::test]
async fn a_stamp_ahead_of_the_clock_is_when_it_was_heard() {
    let place = Place::new();
    let registry = place.registry();
    let mut reading = refusal("a", "m", None, FailureScope::Account);
    reading.observed_at = Some(at(1_000_000));
    registry.learn(vec![reading], now()).await;
    assert_eq!(
        registry.current(now()).await.readings[0].observed_at,
        Some(now())
    );
}

#[tokio::test]
async fn a_published_stamp_ahead_of_the_clock_counts_once_its_time_has_come() {
    let place = Place::new();
    let window = |slug: &str, stamp: i64, status: &str| {
        format!(
            r#"{{"provider_slug":"{slug}","observed_at":{stamp},"windows":[{{"key":"five_hour","status":"{status}","resets_at":{}}}]}}"#,
            NOW_S + 7_200
        )
    };
    place.write(&format!(
        r#"{{"providers":[{{"accounts":[{},{}]}}]}}"#,
        window("a", NOW_S + 300, "allowed"),
        window("a", NOW_S - 5, "rejected")
    ));
    let registry = place.registry();
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
    assert!(!is_spent(
        &*registry.current(at(300)).await,
        "a",
        "m",
        at(300)
    ));
}

#[tokio::test]
async fn a_store_that_fails_leaves_the_snapshot_and_what_was_known() {
    let place = Place::new();
    let registry = place.registry();
    registry
        .learn(vec![refusal("a", "m", None, FailureScope::Account)], now())
        .await;
    place.shared.fail(true);
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
    registry
        .learn(vec![refusal("b", "m", None, FailureScope::Account)], now())
        .await;
    assert!(
        is_spent(&*registry.current(now()).await, "b", "m", now()),
        "known from the file"
    );
}

#[tokio::test]
async fn a_damaged_snapshot_is_named_and_costs_nothing_else() {
    let place = Place::new();
    place.write("{half");
    let registry = place.registry();
    let evidence = registry.current(now()).await;
    assert!(evidence.readings.is_empty());
    assert!(
        evidence
            .fault
            .as_ref()
            .unwrap()
            .to_string()
            .contains("damaged")
    );
}

#[tokio::test]
async fn somebody_elses_snapshot_is_read_and_never_written() {
    let place = Place::new();
    let theirs = place.dir.path().join("theirs.json");
    let text = r#"{"providers":[]}"#;
    write(&theirs, text);
    let registry = Registry::over(
        place.root(),
        Snapshot::at(&theirs),
        Box::new(place.shared.clone()),
    );
    registry
        .learn(vec![refusal("a", "m", None, FailureScope::Account)], now())
        .await;
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), text);
}
