//! A power cut, without one: the store runs in a child process whose syncs go through a small library (`shim.c`) that
//! keeps what a disk without a working cache would hold after each of them. Every one of those disks is started from,
//! and every promise that the child had been given by then must be on it. A disk that lies about its log is the control:
//! the same look at it finds losses.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gateway_core::handoff::{Handoff, HandoffState, PAYLOAD_VERSION};
use gateway_core::ids::{ConversationId, HandoffId, InboundId, TurnId};
use gateway_core::journal::{JournalEntry, TurnRow, TurnStatus};
use gateway_core::message::{Origin, ReplyTarget};
use gateway_core::route::Route;
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::store::{Carried, Lane, Store, TurnClose};
use jiff::{SignedDuration, Timestamp};
use providers::Exchange;
use serde::{Deserialize, Serialize};

const SHIM: &str = include_str!("power_loss/shim.c");
const LIVE: &str = "BATON_POWER_LIVE";
const DISK: &str = "BATON_POWER_DISK";
const LIE: &str = "BATON_POWER_LIE";
/// Begins a line of the child that says what it has been promised.
const PROMISE: &str = "PROMISE ";
const ROUNDS: u32 = 6;
/// Text of each round, so that SQLite moves its log into the file (after 1,000 pages of 4 KiB) in the middle of the run.
const FILLER: usize = 1200 * 1024;

/// What the store acknowledged. What comes after it may be on the disk too.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Promise {
    Seen(String),
    Open(String),
    Journal(String),
    Sealed { turn: String, handoff: String },
    Claimed { turn: String, handoff: String },
    Acked { turn: String, handoff: String },
    Discarded(String),
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_with_the_power() {
    let run = Run::of(None);
    assert!(run.promises.len() > 50, "{} promises", run.promises.len());
    assert!(
        run.generations().len() > run.promises.len() / 2,
        "the library stood in the way"
    );
    assert!(
        run.moved_its_log(),
        "the log was never moved into the file: no cut fell into that"
    );
    let mut lost = Vec::new();
    for generation in run.generations() {
        lost.extend(run.lost_at(generation).await);
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

// The control: the same promises on a disk that says "synced" of its log and does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_lies_about_the_log_is_found_out() {
    let run = Run::of(Some("-wal"));
    let mut lost = Vec::new();
    for generation in run.generations() {
        lost.extend(run.lost_at(generation).await);
    }
    assert!(!lost.is_empty(), "nothing was lost on a disk that lies");
}

/// The child of the tests above; alone it has no folder and nothing to do.
#[tokio::test]
async fn child_that_keeps_a_store() {
    let (Some(live), Some(disk)) = (std::env::var_os(LIVE), std::env::var_os(DISK)) else {
        return;
    };
    let store = SqliteStore::open(Path::new(&live).join("baton.db"))
        .await
        .expect("a store in a fresh folder");
    let child = Child {
        store,
        disk: disk.into(),
    };
    for round in 0..ROUNDS {
        child.round(round).await;
    }
    // The power goes: nothing is closed in order.
    std::process::exit(0);
}

/// What one child did and what the disk looked like after each sync.
struct Run {
    folder: tempfile::TempDir,
    /// With the number of the generation that stood when it was given.
    promises: Vec<(u32, Promise)>,
}

impl Run {
    fn of(lie: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("it is there");
        let (live, disk) = (root.join("live"), root.join("disk"));
        for made in [&live, &disk] {
            std::fs::create_dir(made).expect("a folder");
        }
        let mut child = Command::new(std::env::current_exe().expect("a test knows its own file"));
        child
            .args([
                "power_loss::child_that_keeps_a_store",
                "--exact",
                "--nocapture",
            ])
            .env("LD_PRELOAD", shim(&root))
            .env(LIVE, live)
            .env(DISK, disk)
            .stderr(Stdio::inherit());
        if let Some(ending) = lie {
            child.env(LIE, ending);
        }
        let done = output(&mut child);
        assert!(done.status.success(), "the child failed");
        let said = String::from_utf8(done.stdout).expect("text");
        let promises = said.lines().filter_map(promise).collect();
        Self { folder, promises }
    }

    fn generations(&self) -> Vec<u32> {
        generations(&self.folder.path().join("disk"))
    }

    /// Whether any disk holds a file that has grown: pages get there only from the log.
    fn moved_its_log(&self) -> bool {
        let size = |number: &u32| {
            std::fs::metadata(self.disk(*number).join("baton.db")).map_or(0, |meta| meta.len())
        };
        self.generations().iter().map(size).max().unwrap_or(0) > 1 << 20
    }

    fn disk(&self, generation: u32) -> PathBuf {
        self.folder
            .path()
            .join("disk")
            .join(format!("{generation:06}"))
            .join("named")
    }

    /// Starts from this disk; says which promises given by then are not on it.
    async fn lost_at(&self, generation: u32) -> Vec<String> {
        let due: Vec<_> = self
            .promises
            .iter()
            .filter(|(at, _)| *at <= generation)
            .map(|(_, promise)| promise)
            .collect();
        let place = tempfile::tempdir().expect("a temporary folder");
        for file in std::fs::read_dir(self.disk(generation)).expect("a disk") {
            let file = file.expect("readable").path();
            let name = file.file_name().expect("a file has a name");
            std::fs::copy(&file, place.path().join(name)).expect("a copy");
        }
        let store = match SqliteStore::open(place.path().join("baton.db")).await {
            Ok(store) => store,
            Err(error) => return vec![format!("disk {generation} cannot be used: {error}")],
        };
        let mut lost = Vec::new();
        for promise in due {
            if let Err(why) = promise.look(&store).await {
                lost.push(format!("disk {generation}: {promise:?}: {why}"));
            }
        }
        store.close().await;
        lost
    }
}

impl Promise {
    async fn look(&self, store: &SqliteStore) -> Result<(), String> {
        let failed = |error: gateway_host::store::StoreError| error.to_string();
        let kept = match self {
            Self::Seen(id) => {
                let again = store
                    .first_sight("test", &InboundId::new(id), Timestamp::UNIX_EPOCH)
                    .await;
                !again.map_err(failed)?
            }
            Self::Open(turn) => {
                let row = store.turn(&TurnId::new(turn)).await.map_err(failed)?;
                row.is_some_and(|row| row.request == format!("request of {turn}"))
            }
            Self::Journal(turn) => {
                store.journal(&TurnId::new(turn)).await.map_err(failed)? == entries(turn)
            }
            Self::Sealed { turn, handoff } => {
                let open = store.open_turns().await.map_err(failed)?;
                state(store, handoff).await?.is_some()
                    && open.iter().all(|row| row.turn.as_str() != turn)
            }
            Self::Claimed { turn, handoff } => {
                let stored = store
                    .handoff(&HandoffId::new(handoff))
                    .await
                    .map_err(failed)?;
                let claimed_by = stored.and_then(|stored| stored.claimed_by);
                claimed_by.is_some_and(|by| by.as_str() == turn)
            }
            Self::Acked { turn, handoff } => {
                let open = store.open_turns().await.map_err(failed)?;
                let (history, _) = store
                    .history(&ConversationId::new("c"), 100)
                    .await
                    .map_err(failed)?;
                state(store, handoff).await? == Some(HandoffState::Acked)
                    && open.iter().all(|row| row.turn.as_str() != turn)
                    && history.contains(&exchange(turn))
            }
            Self::Discarded(handoff) => {
                state(store, handoff).await? == Some(HandoffState::Discarded)
            }
        };
        if kept { Ok(()) } else { Err("lost".to_owned()) }
    }
}

async fn state(store: &SqliteStore, handoff: &str) -> Result<Option<HandoffState>, String> {
    let stored = store.handoff(&HandoffId::new(handoff)).await;
    let stored = stored.map_err(|error| error.to_string())?;
    Ok(stored.map(|stored| stored.state))
}

/// The child: makes the store promise things and says so.
struct Child {
    store: SqliteStore,
    disk: PathBuf,
}

impl Child {
    /// A turn that is cut in the middle, one that carries its remains and is answered, and one whose remains are thrown
    /// away.
    async fn round(&self, round: u32) {
        let (cut, answered, dropped) = (
            format!("cut-{round}"),
            format!("answered-{round}"),
            format!("dropped-{round}"),
        );
        let (kept, unwanted) = (format!("kept-{round}"), format!("unwanted-{round}"));
        let seen = InboundId::new(format!("message-{round}"));
        let first = self.store.first_sight("test", &seen, at(0)).await;
        assert!(first.expect("writable"));
        self.say(Promise::Seen(seen.as_str().to_owned()));

        self.open(&cut, &[]).await;
        let append = self.store.append(&TurnId::new(&cut), &entries(&cut)).await;
        append.expect("writable");
        self.say(Promise::Journal(cut.clone()));
        self.seal(&cut, &kept).await;

        let revision = self.revision(&kept).await;
        self.open(&answered, &[(HandoffId::new(&kept), revision)])
            .await;
        self.say(Promise::Claimed {
            turn: answered.clone(),
            handoff: kept.clone(),
        });
        let close = TurnClose {
            carried: Carried::Acked,
            exchanges: vec![exchange(&answered)],
            ..close(&answered, TurnStatus::Answered)
        };
        assert!(self.store.close_turn(&close).await.expect("writable"));
        self.say(Promise::Acked {
            turn: answered,
            handoff: kept,
        });

        self.open(&dropped, &[]).await;
        let filler = [JournalEntry::Text {
            block: 0,
            text: "x".repeat(FILLER),
        }];
        let append = self.store.append(&TurnId::new(&dropped), &filler).await;
        append.expect("writable");
        self.seal(&dropped, &unwanted).await;
        let revision = self.revision(&unwanted).await;
        let id = HandoffId::new(&unwanted);
        let moved = self
            .store
            .move_handoff(&id, revision, HandoffState::Discarded)
            .await;
        assert!(moved.expect("writable"));
        self.say(Promise::Discarded(unwanted));
    }

    async fn open(&self, turn: &str, claims: &[(HandoffId, i64)]) {
        let lane = lane();
        let row = TurnRow {
            turn: TurnId::new(turn),
            profile: lane.profile,
            session: lane.session,
            conversation: ConversationId::new("c"),
            inbound: InboundId::new(format!("message of {turn}")),
            origin: Origin::Human,
            target: ReplyTarget {
                platform: "test".to_owned(),
                address: "here".to_owned(),
            },
            request: format!("request of {turn}"),
            started_at: at(0),
            owner: "owner".to_owned(),
            carries: claims.iter().map(|(id, _)| id.clone()).collect(),
        };
        let opened = self.store.open_turn(&row, claims).await;
        assert!(opened.expect("writable"));
        self.say(Promise::Open(turn.to_owned()));
    }

    async fn seal(&self, turn: &str, handoff: &str) {
        let close = TurnClose {
            seal: Some((remains(turn, handoff), HandoffState::Armed)),
            ..close(turn, TurnStatus::Cut)
        };
        assert!(self.store.close_turn(&close).await.expect("writable"));
        self.say(Promise::Sealed {
            turn: turn.to_owned(),
            handoff: handoff.to_owned(),
        });
    }

    async fn revision(&self, handoff: &str) -> i64 {
        let stored = self.store.handoff(&HandoffId::new(handoff)).await;
        stored.expect("readable").expect("it was sealed").revision
    }

    /// One line: how many syncs there have been, and the promise.
    fn say(&self, promise: Promise) {
        let at = generations(&self.disk).last().copied().unwrap_or(0);
        let line = serde_json::to_string(&(at, promise)).expect("texts serialise");
        println!("\n{PROMISE}{line}");
    }
}

fn promise(line: &str) -> Option<(u32, Promise)> {
    let text = line.strip_prefix(PROMISE)?;
    Some(serde_json::from_str(text).expect("the child's own line"))
}

fn generations(disk: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(disk).expect("the disk's folder");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let sorted: BTreeMap<u32, ()> = numbers.map(|number| (number, ())).collect();
    sorted.into_keys().collect()
}

/// The library, built with the compiler that built SQLite.
fn shim(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    support::write(&source, SHIM.as_bytes());
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut build = Command::new(compiler);
    build
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-o"])
        .args([&library, &source]);
    let built = output(&mut build);
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "{said}");
    library
}

#[expect(clippy::disallowed_methods, reason = "a test's own helper, waited for")]
fn output(command: &mut Command) -> std::process::Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    child.wait_with_output().expect("it ends")
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("a moment") + SignedDuration::from_hours(24 * day)
}

fn lane() -> Lane {
    Lane {
        profile: "default".into(),
        session: "agent:main:test:here".into(),
    }
}

fn entries(turn: &str) -> Vec<JournalEntry> {
    vec![
        JournalEntry::Text {
            block: 0,
            text: format!("text of {turn}"),
        },
        JournalEntry::ToolCall {
            id: "c1".to_owned(),
            name: "terminal".to_owned(),
            arguments: "{}".to_owned(),
        },
    ]
}

fn exchange(turn: &str) -> Exchange {
    Exchange {
        request: format!("request of {turn}"),
        answer: format!("answer of {turn}"),
    }
}

fn close(turn: &str, status: TurnStatus) -> TurnClose {
    TurnClose {
        turn: TurnId::new(turn),
        status,
        at: at(0),
        seal: None,
        carried: Carried::Released,
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    }
}

fn remains(turn: &str, id: &str) -> Handoff {
    let lane = lane();
    Handoff {
        version: PAYLOAD_VERSION,
        id: HandoffId::new(id),
        turn: TurnId::new(turn),
        profile: lane.profile,
        session: lane.session,
        conversation: ConversationId::new("c"),
        created_at: at(0),
        expires_at: at(1),
        reason: "rate limit".to_owned(),
        route: Some(Route::new("a", "m")),
        request: format!("request of {turn}"),
        request_id: InboundId::new(format!("message of {turn}")),
        progress: "half".to_owned(),
        calls: Vec::new(),
        open_todos: Vec::new(),
        next_reset: None,
        earlier_cuts: 0,
    }
}
