use std::fs::File;
use std::io::Write;
use std::path::Path;

use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::plan::{EntryVerdict, GateSettings, judge};
use gateway_core::usage::refusal::reading_of_failure;

use super::super::publish;
use super::*;

const NOW_S: i64 = 1_789_981_200;

/// The readings of several processes that share a store.
#[derive(Clone, Default)]
struct Shared(Arc<Lock<(i64, Vec<Reading>, bool)>>, Arc<Lock<Vec<Login>>>);

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
    async fn since(&self, revision: i64) -> Result<Vec<(i64, Reading)>, StoreError> {
        self.healthy()?;
        let held = self.0.lock();
        let changed = held.1.iter().filter(|_| held.0 > revision);
        Ok(changed.map(|reading| (held.0, reading.clone())).collect())
    }

    async fn logins(&self) -> Result<Vec<Login>, StoreError> {
        self.healthy()?;
        Ok(self.1.lock().clone())
    }

    async fn put_logins(&self, logins: &[Login]) -> Result<(), StoreError> {
        self.healthy()?;
        *self.1.lock() = logins.to_vec();
        self.0.lock().0 += 1;
        Ok(())
    }

    async fn put(&self, readings: &[Reading], _now: Timestamp) -> Result<(), StoreError> {
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
        Registry::over(self.root(), snapshot, Arc::new(self.shared.clone()))
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
        Arc::new(place.shared.clone()),
    );
    registry
        .learn(vec![refusal("a", "m", None, FailureScope::Account)], now())
        .await;
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), text);
}

fn event(slug: &str, window: &str, used: f64) -> Reading {
    Reading {
        subscription: slug.into(),
        window: window.to_owned(),
        scope: None,
        used_pct: Some(used),
        status: WindowStatus::Allowed,
        resets_at: Some(at(7_200)),
        duration_mins: None,
        observed_at: Some(now()),
        source: ReadingSource::Event,
    }
}

fn login(slug: &str, account: &str) -> Login {
    Login {
        id: slug.into(),
        upstream: Some("anthropic".into()),
        account_id: Some(account.into()),
        fingerprint: None,
        email: None,
        plan: None,
        metered: false,
    }
}

#[tokio::test]
async fn what_is_heard_is_one_batch_and_a_refusal_takes_it_along() {
    let place = Place::new();
    let registry = place.registry();
    for used in 0..500 {
        registry.hear(vec![event("a", "five_hour", f64::from(used % 100))], now());
    }
    let mut refused = event("b", "five_hour", 100.0);
    refused.status = WindowStatus::Rejected;
    registry.hear(vec![refused], now());
    registry.settled().await;
    let known = place.registry().current(now()).await;
    assert_eq!(known.readings.len(), 2);
    assert!(is_spent(&known, "b", "m", now()));
    assert!(
        place.shared.0.lock().0 <= 2,
        "a handful of transactions for 501 readings: {}",
        place.shared.0.lock().0
    );
    registry.settled().await; // nothing waits: it returns at once
}

#[tokio::test]
async fn a_registry_that_goes_away_still_writes_what_it_heard() {
    let place = Place::new();
    place
        .registry()
        .hear(vec![event("a", "five_hour", 1.0)], now());
    let reader = place.registry();
    let seen = async {
        while reader.current(now()).await.readings.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), seen)
        .await
        .expect("it is written");
}

#[tokio::test]
async fn a_refusal_the_store_did_not_take_counts_here_and_is_offered_again() {
    let place = Place::new();
    let theirs = place.dir.path().join("theirs.json");
    // Its own publications are not read back here: what it knows, it knows by itself.
    let registry = Registry::over(
        place.root(),
        Snapshot::at(&theirs),
        Arc::new(place.shared.clone()),
    );
    registry.current(now()).await;
    place.shared.fail(true);
    registry
        .learn(vec![refusal("a", "m", None, FailureScope::Account)], now())
        .await;
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
    place.shared.fail(false);
    registry
        .learn(vec![event("b", "five_hour", 1.0)], now())
        .await;
    assert_eq!(place.shared.0.lock().1.len(), 2, "both are stored now");
    assert!(is_spent(&*registry.current(now()).await, "a", "m", now()));
}

#[tokio::test]
async fn every_login_of_a_spent_allowance_is_spent_and_an_answer_on_one_clears_all() {
    let place = Place::new();
    let registry = place.registry();
    registry
        .introduce(&[login("a", "one"), login("B", "one"), login("c", "other")])
        .await;
    let failure = Failure::new(FailureKind::RateLimit, FailureScope::Account, "x")
        .retry_at(Some(at(7_200)))
        .window(Some("five_hour".to_owned()));
    registry.refused(&"a".into(), "m", &failure, now()).await;
    let other = place.registry();
    let known = other.current(at(1)).await;
    let spent = |known: &Evidence| ["a", "b", "c"].map(|slug| is_spent(known, slug, "m", at(1)));
    assert_eq!(spent(&known), [true, true, false]);
    assert_eq!(known.group(&"a".into()), known.group(&"B".into()));
    assert_eq!(known.group(&"c".into()), None);
    other.answered(&"b".into(), "m", at(1)).await;
    assert_eq!(
        spent(&*registry.current(at(2)).await),
        [false, false, false]
    );
}

#[tokio::test]
async fn a_probe_that_shows_room_clears_a_refusal_that_named_no_window() {
    let place = Place::new();
    let registry = place.registry();
    let failure =
        Failure::new(FailureKind::RateLimit, FailureScope::Account, "x").retry_at(Some(at(7_200)));
    registry.refused(&"a".into(), "m", &failure, now()).await;
    assert!(is_spent(&*registry.current(at(1)).await, "a", "m", at(1)));
    let mut fresh = event("a", "five_hour", 3.0);
    fresh.observed_at = Some(at(60));
    registry
        .learn_probed(&"a".into(), vec![fresh], at(60))
        .await;
    assert!(!is_spent(
        &*registry.current(at(60)).await,
        "a",
        "m",
        at(60)
    ));
}

/// Somebody rewrites the file in place, byte by byte as it were, while it is read: nothing breaks, and what was known once
/// is never forgotten for an empty registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_being_rewritten_while_read_is_never_an_empty_registry() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::new();
    let account = |n: usize, used: usize| {
        format!(
            r#"{{"provider_slug":"s{n}","observed_at":{NOW_S},"windows":[{{"key":"five_hour","pct":{used},"resets_at":{}}}]}}"#,
            NOW_S + 7_200
        )
    };
    let text = move |used: usize| {
        let accounts: Vec<_> = (0..50).map(|n| account(n, used % 90)).collect();
        format!(
            r#"{{"schema":6,"providers":[{{"accounts":[{}]}}]}}"#,
            accounts.join(",")
        )
    };
    place.write(&text(0));
    let registry = place.registry();
    assert_eq!(registry.current(now()).await.readings.len(), 50);
    let (path, done) = (
        publish::place(&place.root()),
        Arc::new(AtomicBool::new(false)),
    );
    let writer = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            let mut used = 0;
            while !done.load(Ordering::Relaxed) {
                used += 1;
                let mut file = File::create(&path).unwrap(); // truncates: a reader finds it empty
                for piece in text(used).as_bytes().chunks(97) {
                    file.write_all(piece).unwrap();
                }
            }
            used
        }
    });
    let mut looks = 0;
    let started = std::time::Instant::now();
    while started.elapsed() < std::time::Duration::from_secs(2) {
        let known = registry.current(now()).await;
        assert_eq!(
            known.readings.len(),
            50,
            "after {looks} looks: {:?}",
            known.fault
        );
        looks += 1;
    }
    done.store(true, Ordering::Relaxed);
    let written = writer.join().unwrap();
    assert!(
        looks > 10 && written > 10,
        "{looks} looks, {written} writings"
    );
    let settled = registry.current(now()).await;
    assert_eq!(settled.fault, None, "once it rests it is read whole");
    assert_eq!(settled.readings[0].used_pct, Some((written % 90) as f64));
}
