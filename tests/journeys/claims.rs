//! Two gateway processes reach for the same handoff at the same moment, a thousand times: exactly one gets it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use gateway_core::handoff::HandoffState;
use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::ids::{ConversationId, HandoffId, InboundId, TurnId};
use gateway_core::journal::{TurnRow, TurnStatus};
use gateway_core::message::{Origin, ReplyTarget};
use gateway_host::store::sqlite::SqliteStore;
use gateway_host::store::{Carried, Lane, Store, TurnClose};
use jiff::Timestamp;

const TIMES: usize = 1_000;
/// Names the store to the second process: this executable, started again.
const STORE: &str = "BATON_TEST_CLAIM_STORE";

fn row(turn: &str, conversation: &ConversationId, carries: Vec<HandoffId>) -> TurnRow {
    TurnRow {
        turn: TurnId::new(turn),
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
        conversation: conversation.clone(),
        inbound: InboundId::new(turn),
        origin: Origin::Human,
        target: ReplyTarget {
            platform: "recording".into(),
            address: "chat".into(),
        },
        request: "do it".into(),
        started_at: Timestamp::UNIX_EPOCH,
        owner: uuid::Uuid::nil().to_string(),
        carries,
    }
}

fn lane() -> Lane {
    Lane {
        profile: "default".into(),
        session: "agent:main:recording:chat".into(),
    }
}

async fn seal(store: &SqliteStore, conversation: &ConversationId, number: usize) {
    let cut = row(&format!("cut-{number}"), conversation, Vec::new());
    assert!(store.open_turn(&cut, &[]).await.expect("writable"));
    let handoff = assemble(&Cut {
        id: &HandoffId::new(format!("handoff-{number}")),
        turn: &cut,
        entries: &[],
        carried: &[],
        reason: "rate limit",
        next_reset: None,
        now: Timestamp::UNIX_EPOCH,
    });
    let close = TurnClose {
        turn: cut.turn,
        status: TurnStatus::Cut,
        at: Timestamp::UNIX_EPOCH,
        seal: handoff.map(|handoff| (handoff, HandoffState::Armed)),
        carried: Carried::Released,
        exchanges: Vec::new(),
        answered_by: None,
        session: None,
    };
    assert!(store.close_turn(&close).await.expect("writable"));
}

/// The second process: claims what it is told to and says whether it got it.
#[tokio::test]
async fn child_claims_what_it_is_told_to() {
    let Ok(path) = std::env::var(STORE) else {
        return;
    };
    let store = SqliteStore::open(Path::new(&path))
        .await
        .expect("the store opens");
    let conversation = store
        .session(&lane(), Timestamp::UNIX_EPOCH)
        .await
        .expect("readable")
        .conversation;
    println!("\nready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let id = HandoffId::new(line.as_str());
        let turn = row(
            &format!("{line}-{}", std::process::id()),
            &conversation,
            vec![id.clone()],
        );
        let won = store.open_turn(&turn, &[(id, 1)]).await.expect("writable");
        println!("\n{}", if won { "won" } else { "lost" });
    }
}

/// A claimant and what it says.
struct Claimant {
    child: Child,
    input: ChildStdin,
    words: BufReader<ChildStdout>,
}

impl Claimant {
    #[expect(clippy::disallowed_methods, reason = "the test owns its two claimants")]
    fn start(store: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its own file"));
        command
            .args([
                "--exact",
                "claims::child_claims_what_it_is_told_to",
                "--nocapture",
            ])
            .env(STORE, store);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take().expect("piped");
        let words = BufReader::new(child.stdout.take().expect("piped"));
        let mut claimant = Self {
            child,
            input,
            words,
        };
        claimant.hear(&["ready"]);
        claimant
    }

    fn ask(&mut self, id: &str) {
        self.input
            .write_all(format!("{id}\n").as_bytes())
            .expect("it listens");
    }

    /// The next line that is one of these; the test harness in there prints lines of its own.
    fn hear(&mut self, words: &[&str]) -> String {
        let mut line = String::new();
        while self.words.read_line(&mut line).expect("readable") > 0 {
            if words.contains(&line.trim()) {
                return line.trim().to_owned();
            }
            line.clear();
        }
        panic!("the claimant ended");
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[tokio::test]
async fn two_processes_claiming_one_handoff_a_thousand_times_never_both_get_it() {
    let home = tempfile::tempdir().expect("a temporary home");
    let path = home.path().join("baton.db");
    let store = SqliteStore::open(&path).await.expect("a new store");
    let conversation = store
        .session(&lane(), Timestamp::UNIX_EPOCH)
        .await
        .expect("writable")
        .conversation;
    for number in 0..TIMES {
        seal(&store, &conversation, number).await;
    }
    let (mut one, mut other) = (Claimant::start(&path), Claimant::start(&path));
    let mut wins = [0, 0];
    for number in 0..TIMES {
        let id = format!("handoff-{number}");
        // Whoever is asked first has the edge: it changes sides.
        let (first, second) = if number % 2 == 0 {
            (&mut one, &mut other)
        } else {
            (&mut other, &mut one)
        };
        first.ask(&id);
        second.ask(&id);
        let said = [one.hear(&["won", "lost"]), other.hear(&["won", "lost"])];
        let won = said.iter().filter(|word| *word == "won").count();
        assert_eq!(won, 1, "{id}: {said:?}");
        wins[usize::from(said[1] == "won")] += 1;
    }
    one.end();
    other.end();
    println!("wins: {wins:?}");
    assert!(
        wins.iter().all(|wins| *wins > 0),
        "both were in the race: {wins:?}"
    );
    let claimed = store.handoffs_of(&lane()).await.expect("readable");
    assert_eq!(
        claimed
            .iter()
            .filter(|stored| stored.state == HandoffState::Claimed)
            .count(),
        TIMES
    );
    assert_eq!(store.open_turns().await.expect("readable").len(), TIMES);
}
