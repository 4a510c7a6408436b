//! The provider against a shell script that speaks as `codex app-server` does in rare moments: silent, deaf, gone, or
//! with other permissions than it was asked for.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a surprise is a failed test"
)]

mod attempt;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attempt::{PATIENT, Turn, request};
use gateway_core::event::Event;
use gateway_core::failure::{AttemptLimits, Failure, FailureKind};
use gateway_core::route::Billing;
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use providers::codex::{Codex, CodexSettings};
use providers::{AttemptHandle, Health, Provider};
use tokio::sync::oneshot;

/// The thread all turns run in.
const THREAD: &str = "01a229c8-6e11-7ce1-bdbe-9ec36e320295";
/// An answered turn.
const ANSWER: &str = r#"
say '{"id":'$id',"result":{"turn":{"id":"t1"}}}'
say '{"method":"turn/started","params":{"threadId":"'$thread'","turn":{"id":"t1"}}}'
say '{"method":"item/agentMessage/delta","params":{"threadId":"'$thread'","turnId":"t1","itemId":"m","delta":"done"}}'
say '{"method":"turn/completed","params":{"threadId":"'$thread'","turn":{"id":"t1","status":"completed","error":null}}}'
"#;
/// A turn that has begun.
const BEGUN: &str = r#"
say '{"id":'$id',"result":{"turn":{"id":"t1"}}}'
say '{"method":"turn/started","params":{"threadId":"'$thread'","turn":{"id":"t1"}}}'
say '{"method":"item/agentMessage/delta","params":{"threadId":"'$thread'","turnId":"t1","itemId":"m","delta":"half"}}'
"#;

/// What the script does at each point; every line it reads goes to `$LOG`, and its process id first.
struct Script<'a> {
    version: &'a str,
    /// Shell text that sets `$profile` once more, after it was read from the request.
    profile: &'a str,
    turn: &'a str,
    interrupt: &'a str,
}

impl Default for Script<'_> {
    fn default() -> Self {
        Self {
            version: "0.171.0",
            profile: "",
            turn: ANSWER,
            interrupt: "",
        }
    }
}

struct Fake {
    folder: tempfile::TempDir,
    codex: Codex,
}

impl Fake {
    fn new(script: &Script<'_>) -> Self {
        let Script {
            version,
            profile,
            turn,
            interrupt,
        } = script;
        let text = format!(
            r#"#!/bin/sh
echo "pid $$" >> $LOG
thread={THREAD}
say() {{ printf '%s\n' "$1"; }}
while read -r line; do
  printf '%s\n' "$line" >> $LOG
  id=$(printf '%s' "$line" | sed -n 's/^{{"method":"[^"]*","id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"method":"initialize"'*) say '{{"id":'$id',"result":{{"userAgent":"baton/{version} (fake)"}}}}' ;;
  *'"method":"config/read"'*) say '{{"id":'$id',"result":{{"config":{{}}}}}}' ;;
  *'"method":"account/read"'*) say '{{"id":'$id',"result":{{"account":{{"type":"chatgpt"}},"requiresOpenaiAuth":true}}}}' ;;
  *'"method":"thread/start"'* | *'"method":"thread/resume"'*)
    profile=$(printf '%s' "$line" | sed -n 's/.*"default_permissions":"\([^"]*\)".*/\1/p')
    cwd=$(printf '%s' "$line" | sed -n 's/.*"cwd":"\([^"]*\)".*/\1/p')
    {profile}
    say '{{"id":'$id',"result":{{"thread":{{"id":"'$thread'"}},"approvalPolicy":"never","cwd":"'$cwd'","activePermissionProfile":{{"id":"'$profile'"}}}}}}' ;;
  *'"method":"turn/start"'*) :
    {turn} ;;
  *'"method":"turn/interrupt"'*) :
    {interrupt} ;;
  *'"method":"thread/unsubscribe"'*)
    say '{{"id":'$id',"result":{{}}}}'
    say '{{"method":"thread/closed","params":{{"threadId":"'$thread'"}}}}' ;;
  esac
done
"#
        );
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("codex");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create(true)
            .write(true)
            .mode(0o755)
            .open(&program)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        drop(file);
        let codex = codex(&folder, program);
        Self { folder, codex }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Process ids of the servers that were started, in order.
    fn servers(&self) -> Vec<String> {
        let log = self.log();
        log.lines()
            .filter_map(|line| line.strip_prefix("pid "))
            .map(str::to_owned)
            .collect()
    }

    fn start(&self, limits: AttemptLimits) -> (AttemptHandle, oneshot::Sender<()>) {
        let (mut request, word) = request("gpt", "the prompt", self.folder.path().to_owned());
        request.title.clear(); // a title is one request more than the script answers
        request.limits = limits;
        let handle = self.codex.start(request);
        (handle, word)
    }

    async fn run(&self, limits: AttemptLimits) -> AttemptEnd {
        let (handle, word) = self.start(limits);
        word.send(()).unwrap();
        Turn::of(handle).await.end
    }

    async fn fails(&self, limits: AttemptLimits) -> Failure {
        match self.run(limits).await {
            AttemptEnd::Failed(failure) => failure,
            other => panic!("expected a failure, got {other:?}"),
        }
    }
}

fn codex(folder: &tempfile::TempDir, program: PathBuf) -> Codex {
    let log = folder.path().join("log");
    Codex::new(CodexSettings {
        binary: Some(program),
        home: Some(folder.path().join("login")),
        env: BTreeMap::from([("LOG".to_owned(), log.to_str().unwrap().to_owned())]),
        subscription: "fake".into(),
        billing: Billing::Plan,
        hidden: Vec::new(),
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
    })
}

const HASTY: Duration = Duration::from_millis(1_500);

fn process_is_gone(pid: &str) -> bool {
    match std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")) {
        Ok(stat) => stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with(['Z', 'X']),
        Err(_) => true,
    }
}

async fn wait_until(what: &str, done: impl Fn() -> bool) {
    let waiting = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(waited.is_ok(), "{what}");
}

fn answered(end: AttemptEnd) -> String {
    match end {
        AttemptEnd::Answered(answer) => answer.text,
        other => panic!("expected an answer, got {other:?}"),
    }
}

#[tokio::test]
async fn one_server_answers_many_turns_and_ends_with_its_provider() {
    let fake = Fake::new(&Script::default());
    for _ in 0..3 {
        assert_eq!(answered(fake.run(PATIENT).await), "done");
    }
    let servers = fake.servers();
    assert_eq!(servers.len(), 1);
    let Fake { folder, codex } = fake;
    drop(codex);
    wait_until("the server ends", || process_is_gone(&servers[0])).await;
    drop(folder);
}

#[tokio::test]
async fn a_silent_and_deaf_server_is_a_timeout_and_is_killed() {
    let fake = Fake::new(&Script {
        turn: BEGUN,
        ..Script::default()
    });
    let failure = fake
        .fails(AttemptLimits {
            silence: HASTY,
            ..PATIENT
        })
        .await;
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(fake.log().contains("turn/interrupt"), "it was asked first");
    assert!(process_is_gone(&fake.servers()[0]));
}

#[tokio::test]
async fn the_deadline_holds_against_a_server_that_keeps_talking() {
    let chatty = format!(
        "{BEGUN} (while :; do say '{{\"method\":\"thread/status/changed\",\"params\":{{\"threadId\":\"'$thread'\"}}}}'; sleep 0.05; done) &"
    );
    let fake = Fake::new(&Script {
        turn: &chatty,
        ..Script::default()
    });
    let limits = AttemptLimits {
        deadline: HASTY,
        silence: HASTY,
    };
    assert_eq!(fake.fails(limits).await.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn what_is_said_of_limits_to_everybody_does_not_break_a_silence() {
    let chatty = format!(
        "{BEGUN} (while :; do say '{{\"method\":\"account/rateLimits/updated\",\"params\":{{\"rateLimits\":{{}}}}}}'; sleep 0.05; done) &"
    );
    let fake = Fake::new(&Script {
        turn: &chatty,
        ..Script::default()
    });
    let failure = fake
        .fails(AttemptLimits {
            silence: HASTY,
            ..PATIENT
        })
        .await;
    assert!(failure.detail.contains("silent"), "{}", failure.detail);
}

#[tokio::test]
async fn a_server_that_dies_takes_its_turn_along_and_the_next_turn_has_a_new_one() {
    let fake = Fake::new(&Script {
        turn: &format!(
            "if [ -e $LOG.once ]; then {ANSWER} else touch $LOG.once; {BEGUN} echo it broke >&2; exit 9; fi"
        ),
        ..Script::default()
    });
    let failure = fake.fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert!(
        failure.detail.contains("it broke") && failure.detail.contains('9'),
        "{}",
        failure.detail
    );
    assert_eq!(answered(fake.run(PATIENT).await), "done");
    assert_eq!(fake.servers().len(), 2);
}

#[tokio::test]
async fn a_stop_keeps_the_server_if_it_obeys() {
    let obeys = r#"
say '{"method":"turn/completed","params":{"threadId":"'$thread'","turn":{"id":"t1","status":"interrupted"}}}'
say '{"id":'$id',"result":{}}'"#;
    let fake = Fake::new(&Script {
        turn: BEGUN,
        interrupt: obeys,
        ..Script::default()
    });
    let (mut handle, word) = fake.start(PATIENT);
    word.send(()).unwrap();
    while !matches!(handle.events.recv().await, Some(Event::Text { .. })) {}
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(!process_is_gone(&fake.servers()[0]));
}

#[tokio::test]
async fn a_stop_reaches_a_deaf_server_even_if_nobody_takes_its_events() {
    let flood = format!(
        "{BEGUN} i=0; while [ $i -lt 600 ]; do say '{{\"method\":\"item/agentMessage/delta\",\"params\":{{\"threadId\":\"'$thread'\",\"turnId\":\"t1\",\"itemId\":\"m\",\"delta\":\"x\"}}}}'; i=$((i+1)); done"
    );
    let fake = Fake::new(&Script {
        turn: &flood,
        ..Script::default()
    });
    let (handle, word) = fake.start(PATIENT);
    word.send(()).unwrap();
    wait_until("the turn starts", || fake.log().contains("turn/start")).await;
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(process_is_gone(&fake.servers()[0]));
}

#[tokio::test]
async fn a_dropped_handle_ends_the_turn() {
    let fake = Fake::new(&Script {
        turn: BEGUN,
        ..Script::default()
    });
    let (mut handle, word) = fake.start(PATIENT);
    word.send(()).unwrap();
    while !matches!(handle.events.recv().await, Some(Event::Text { .. })) {}
    drop(handle);
    wait_until("it is asked to stop", || {
        fake.log().contains("turn/interrupt")
    })
    .await;
}

#[tokio::test]
async fn the_prompt_waits_for_the_word_and_is_not_sent_without_it() {
    let fake = Fake::new(&Script::default());
    let (handle, word) = fake.start(PATIENT);
    wait_until("the thread is opened before the word", || {
        fake.log().contains("thread/start")
    })
    .await;
    drop(word);
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(!fake.log().contains("turn/start"), "{}", fake.log());
}

#[tokio::test]
async fn other_permissions_than_asked_for_are_refused_before_anything_is_sent() {
    let fake = Fake::new(&Script {
        profile: "profile=:danger-full-access",
        ..Script::default()
    });
    let failure = fake.fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::BadRequest);
    assert!(failure.detail.contains("permissions"), "{}", failure.detail);
    assert!(!fake.log().contains("turn/start"), "{}", fake.log());
}

#[tokio::test]
async fn whatever_it_asks_is_declined_and_an_over_long_line_is_skipped() {
    let asks = format!(
        "say '{{\"id\":\"q\",\"method\":\"item/commandExecution/requestApproval\",\"params\":{{\"threadId\":\"'$thread'\"}}}}'
head -c 17000000 /dev/zero | tr '\\0' 'x'; echo
{ANSWER}"
    );
    let fake = Fake::new(&Script {
        turn: &asks,
        ..Script::default()
    });
    assert_eq!(answered(fake.run(PATIENT).await), "done");
    let declined = r#"{"id":"q","result":{"decision":"decline"}}"#;
    wait_until("the question is declined", || fake.log().contains(declined)).await;
}

#[tokio::test]
async fn a_missing_program_is_a_crash_with_a_hint_and_not_healthy() {
    let mut fake = Fake::new(&Script::default());
    fake.codex = codex(&fake.folder, PathBuf::from("/nonexistent/codex"));
    let failure = fake.fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert!(failure.detail.contains("install"), "{}", failure.detail);
    assert!(matches!(fake.codex.health().await, Health::Broken { .. }));
}

#[tokio::test]
async fn an_old_version_is_not_healthy() {
    let fake = Fake::new(&Script {
        version: "0.130.0",
        ..Script::default()
    });
    let Health::Broken { problem, .. } = fake.codex.health().await else {
        panic!("0.130.0 has other permissions");
    };
    assert!(problem.contains("0.130.0"), "{problem}");
    let new = Fake::new(&Script::default());
    let version = Some("0.171.0".to_owned());
    assert_eq!(new.codex.health().await, Health::Ready { version });
}
