//! Random lives of handoffs: the store on disk must answer every call as the one in memory does, and no handoff may
//! vanish or be carried by two turns.

use std::fmt::Debug;

use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{HandoffId, TurnId};
use gateway_core::journal::TurnStatus;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::memory::MemoryStore;
use super::super::sqlite::SqliteStore;
use super::super::{Carried, Store, StoreError, TurnClose};
use super::samples::{at, close, entries, exchange, handoff, lane, turn};

/// Few names, so that operations meet.
const NAMES: u8 = 4;

#[derive(Debug, Clone)]
enum Op {
    Open {
        turn: u8,
        claims: Vec<(u8, bool)>,
    },
    Append {
        turn: u8,
    },
    Close {
        turn: u8,
        status: TurnStatus,
        carried: Carried,
        seal: Option<(u8, bool)>,
    },
    Adopt {
        turn: u8,
        to: u8,
    },
    Move {
        handoff: u8,
        stale: bool,
        to: HandoffState,
    },
    NewConversation,
    Sweep {
        day: i64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    use HandoffState::{Acked, Armed, Chained, Claimed, Corrupt, Discarded, Expired, Stopped};
    let name = || 0..NAMES;
    let stale = || prop::bool::weighted(0.1);
    let state = select(vec![
        Armed, Claimed, Acked, Stopped, Discarded, Chained, Expired, Corrupt,
    ]);
    let status = select(vec![
        TurnStatus::Answered,
        TurnStatus::Cut,
        TurnStatus::Stopped,
        TurnStatus::Failed,
        TurnStatus::Open,
    ]);
    let carried = select(vec![Carried::Acked, Carried::Chained, Carried::Released]);
    let claims = prop::collection::vec((name(), stale()), 0..3);
    let seal = prop::option::weighted(0.7, (name(), any::<bool>()));
    prop_oneof![
        4 => (0..12u8, claims).prop_map(|(turn, claims)| Op::Open { turn, claims }),
        1 => (0..12u8).prop_map(|turn| Op::Append { turn }),
        5 => (0..12u8, status, carried, seal).prop_map(|(turn, status, carried, seal)| Op::Close { turn, status, carried, seal }),
        1 => (0..12u8, 0..3u8).prop_map(|(turn, to)| Op::Adopt { turn, to }),
        2 => (name(), stale(), state).prop_map(|(handoff, stale, to)| Op::Move { handoff, stale, to }),
        1 => Just(Op::NewConversation),
        1 => (0..60i64).prop_map(|day| Op::Sweep { day }),
    ]
}

fn handoff_id(n: u8) -> HandoffId {
    HandoffId::new(format!("h{n}"))
}

fn turn_id(n: u8) -> TurnId {
    TurnId::new(format!("t{n:02}"))
}

/// Runs one operation; the answer as text, errors included.
async fn apply(store: &dyn Store, op: &Op) -> String {
    match op {
        Op::Open { turn: n, claims } => {
            let mut seen = Vec::new();
            for (n, stale) in claims {
                seen.push((
                    handoff_id(*n),
                    revision(store, *n).await - i64::from(*stale),
                ));
            }
            said(
                store
                    .open_turn(&turn(&lane("a"), turn_id(*n).as_str()), &seen)
                    .await,
            )
        }
        Op::Append { turn } => said(store.append(&turn_id(*turn), &entries()).await),
        Op::Close {
            turn,
            status,
            carried,
            seal,
        } => said(
            store
                .close_turn(&ending(*turn, *status, *carried, *seal))
                .await,
        ),
        Op::Adopt { turn, to } => {
            let to = format!("owner{to}");
            said(store.adopt_turn(&turn_id(*turn), "owner", &to).await)
        }
        Op::Move { handoff, stale, to } => {
            let revision = revision(store, *handoff).await - i64::from(*stale);
            said(
                store
                    .move_handoff(&handoff_id(*handoff), revision, *to)
                    .await,
            )
        }
        Op::NewConversation => {
            let done = store.new_conversation(&lane("a"), at(1)).await;
            said(done.map(|(_, dropped)| dropped))
        }
        Op::Sweep { day } => said(store.sweep(at(*day)).await),
    }
}

fn ending(turn: u8, status: TurnStatus, carried: Carried, seal: Option<(u8, bool)>) -> TurnClose {
    let mut end = close(turn_id(turn).as_str(), status);
    end.carried = carried;
    end.exchanges = vec![exchange(u32::from(turn))];
    end.seal = seal.map(|(n, armed)| {
        let state = if armed {
            HandoffState::Armed
        } else {
            HandoffState::Stopped
        };
        (
            handoff(&lane("a"), turn_id(turn).as_str(), handoff_id(n).as_str()),
            state,
        )
    });
    end
}

async fn revision(store: &dyn Store, n: u8) -> i64 {
    let found = store.handoff(&handoff_id(n)).await.unwrap();
    found.map_or(0, |stored| stored.revision)
}

fn said<T: Debug>(answer: Result<T, StoreError>) -> String {
    format!("{answer:?}")
}

/// Everything that can be asked.
async fn view(store: &dyn Store) -> (Vec<StoredHandoff>, String) {
    let all = store.handoffs_of(&lane("a")).await.unwrap();
    let conversation = turn(&lane("a"), "t").conversation;
    let mut rest = said(store.handoffs().await) + &said(store.open_turns().await);
    rest += &said(store.history(&conversation, 100).await);
    for n in 0..12 {
        rest += &said(store.journal(&turn_id(n)).await);
    }
    (all, rest)
}

/// What no sequence of operations may break.
async fn check(store: &dyn Store, before: &[StoredHandoff], after: &[StoredHandoff], op: &Op) {
    let open = store.open_turns().await.unwrap();
    for held in after.iter().filter(|h| h.state == HandoffState::Claimed) {
        let by = held.claimed_by.as_ref().expect("a claim names its turn");
        assert!(
            open.iter().any(|turn| turn.turn == *by),
            "claimed by a turn that is not open"
        );
    }
    for old in before {
        match after.iter().find(|new| new.handoff.id == old.handoff.id) {
            Some(new) => assert!(new.revision >= old.revision),
            None => assert!(matches!(op, Op::Sweep { .. }), "{op:?} lost a handoff"),
        }
    }
}

fn pair<A, B>((a, b): &(A, B)) -> (&A, &B) {
    (a, b)
}

async fn run(ops: Vec<Op>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = SqliteStore::open(dir.path().join("baton.db"))
        .await
        .unwrap();
    let memory = MemoryStore::new();
    let mut before = Vec::new();
    for op in &ops {
        assert_eq!(apply(&disk, op).await, apply(&memory, op).await, "{op:?}");
        let (now, rest) = view(&disk).await;
        assert_eq!((&now, &rest), pair(&view(&memory).await), "after {op:?}");
        check(&disk, &before, &now, op).await;
        before = now;
    }
    disk.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn disk_and_memory_live_the_same_lives(ops in prop::collection::vec(op(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(ops));
    }
}
