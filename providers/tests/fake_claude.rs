//! The provider against small shell scripts that behave as the real program does in rare moments: silent, deaf, gone.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
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
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use providers::claude::{Claude, ClaudeSettings};
use providers::{AttemptHandle, Health, ProbeError, Provider};
use tokio::sync::oneshot;

/// What the program prints first, with a place for `apiKeySource`.
const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"11111111-2222-4333-8444-555555555555","apiKeySource":"none","claude_code_version":"2.1.332"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;

struct Fake {
    folder: tempfile::TempDir,
    claude: Claude,
}

impl Fake {
    /// A program that runs this shell text; `$LOG` is a file it may write to.
    fn new(body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("claude");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create(true)
            .write(true)
            .mode(0o755)
            .open(&program)
            .unwrap();
        writeln!(file, "#!/bin/sh\n{body}").unwrap();
        drop(file);
        let log = folder.path().join("log");
        let claude = Claude::new(ClaudeSettings {
            binary: Some(program),
            home: Some(folder.path().join("login")),
            env: BTreeMap::from([("LOG".to_owned(), log.to_str().unwrap().to_owned())]),
            subscription: "fake".into(),
            hidden: Vec::new(),
            now: Arc::new(|| Timestamp::UNIX_EPOCH),
        });
        Self { folder, claude }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn start(&self, limits: AttemptLimits) -> (AttemptHandle, oneshot::Sender<()>) {
        let (mut request, word) = request("sonnet", "the prompt", self.folder.path().to_owned());
        request.limits = limits;
        let handle = self.claude.start(request);
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

#[tokio::test]
async fn a_silent_program_is_a_timeout_and_its_helpers_are_gone() {
    let fake = Fake::new("sleep 600 & echo $! > $LOG; trap '' INT; wait; sleep 600");
    let silence = Duration::from_millis(500);
    let failure = fake.fails(AttemptLimits { silence, ..PATIENT }).await;
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(process_is_gone(fake.log().trim()), "{}", fake.log());
}

#[tokio::test]
async fn the_deadline_holds_against_a_program_that_keeps_talking() {
    let chatty = r#"while :; do echo '{"type":"system","subtype":"api_retry"}'; sleep 0.05; done"#;
    let deadline = Duration::from_millis(500);
    let failure = Fake::new(chatty)
        .fails(AttemptLimits {
            deadline,
            ..PATIENT
        })
        .await;
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn an_exit_without_a_result_is_a_crash_with_the_last_words() {
    let failure = Fake::new("echo it broke >&2; exit 9").fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert!(
        failure.detail.contains("it broke") && failure.detail.contains('9'),
        "{}",
        failure.detail
    );
}

#[tokio::test]
async fn a_missing_program_is_a_crash_with_a_hint_and_not_healthy() {
    let mut fake = Fake::new("");
    fake.claude = Claude::new(ClaudeSettings {
        binary: Some(PathBuf::from("/nonexistent/claude")),
        home: None,
        env: BTreeMap::new(),
        subscription: "fake".into(),
        hidden: Vec::new(),
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
    });
    let failure = fake.fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert!(failure.detail.contains("install"), "{}", failure.detail);
    assert!(matches!(fake.claude.health().await, Health::Broken { .. }));
}

#[tokio::test]
async fn an_old_version_is_not_healthy() {
    let fake = Fake::new("echo '2.1.197 (Claude Code)'");
    let Health::Broken { problem, hint } = fake.claude.health().await else {
        panic!("2.1.197 lacks the switches");
    };
    assert!(
        problem.contains("2.1.197") && hint.contains("update"),
        "{problem}; {hint}"
    );
}

#[tokio::test]
async fn the_prompt_waits_for_the_word_and_is_not_sent_without_it() {
    let fake = Fake::new("echo started > $LOG; cat >> $LOG");
    let (handle, word) = fake.start(PATIENT);
    wait_until("the program starts before the word", || {
        fake.log().contains("started")
    })
    .await;
    drop(word);
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert_eq!(fake.log(), "started\n");
}

#[tokio::test]
async fn a_dropped_handle_ends_the_program() {
    let fake = Fake::new(&format!(
        "echo $$ > $LOG; read x; echo '{INIT}'; while :; do sleep 600; done"
    ));
    let (mut handle, word) = fake.start(PATIENT);
    word.send(()).unwrap();
    assert!(matches!(
        handle.events.recv().await,
        Some(Event::Session { .. })
    ));
    let program = fake.log().trim().to_owned();
    assert!(!process_is_gone(&program));
    drop(handle);
    wait_until("the program ends", || process_is_gone(&program)).await;
}

#[tokio::test]
async fn a_stop_reaches_a_deaf_program_even_if_nobody_takes_its_events() {
    let flood = r#"i=0; while [ $i -lt 2000 ]; do echo '{"type":"system","subtype":"api_retry"}'; i=$((i+1)); done"#;
    let fake = Fake::new(&format!(
        "trap '' INT TERM; echo $$ > $LOG; read x; {flood}; while :; do sleep 600; done"
    ));
    let (handle, word) = fake.start(PATIENT);
    word.send(()).unwrap();
    wait_until("the program starts", || !fake.log().is_empty()).await;
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert!(process_is_gone(fake.log().trim()));
}

#[tokio::test]
async fn a_session_id_in_use_is_resumed_at_once() {
    let body = format!(
        "case \"$*\" in *--resume=*) read x; echo '{INIT}'; echo '{RESULT}'; echo \"$*\" > $LOG;; \
         *) echo 'Error: Session ID x is already in use.' >&2; exit 1;; esac"
    );
    let fake = Fake::new(&body);
    let AttemptEnd::Answered(answer) = fake.run(PATIENT).await else {
        panic!("the second start answers");
    };
    assert_eq!(answer.text, "done");
    assert!(fake.log().contains("--resume="));
}

#[tokio::test]
async fn a_key_nobody_named_is_not_billed() {
    let init = INIT.replace("\"none\"", "\"ANTHROPIC_API_KEY\"");
    let fake = Fake::new(&format!("read x; echo '{init}'; read x; echo '{RESULT}'"));
    let failure = fake.fails(PATIENT).await;
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(
        failure.detail.contains("ANTHROPIC_API_KEY"),
        "{}",
        failure.detail
    );
}

#[tokio::test]
async fn an_over_long_line_does_not_end_the_turn() {
    let flood = "head -c 17000000 /dev/zero | tr '\\0' 'x'; echo";
    let fake = Fake::new(&format!("read x; echo '{INIT}'; {flood}; echo '{RESULT}'"));
    assert!(matches!(fake.run(PATIENT).await, AttemptEnd::Answered(_)));
}

/// Answers the usage query with this `response`, after lines that are about something else.
fn usage(response: &str) -> Fake {
    Fake::new(&format!(
        r#"read -r line; echo "$line $CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC" > "$LOG"
echo '{{"type":"system","subtype":"ui_invalidate"}}'; echo 'no json'
echo '{{"type":"control_response","response":{{"subtype":"success","request_id":"other","response":{{}}}}}}'
echo '{{"type":"control_response","response":{response}}}'
cat > /dev/null"#
    ))
}

#[tokio::test]
async fn the_usage_query_is_one_control_request_and_no_turn() {
    let fake = usage(
        r#"{"subtype":"success","request_id":"usage","response":{"subscription_type":"max","rate_limits_available":true,"rate_limits":{"five_hour":{"utilization":37.0,"resets_at":"2026-12-10T04:59:59+00:00"},"seven_day":{"utilization":100.0,"resets_at":"2026-12-12T04:59:59+00:00"},"seven_day_opus":null}}}"#,
    );
    let probed = fake.claude.probe(Duration::from_secs(20)).await.unwrap();
    let read: Vec<_> = probed
        .readings
        .iter()
        .map(|reading| (reading.window.as_str(), reading.used_pct))
        .collect();
    assert_eq!(
        read,
        [("five_hour", Some(37.0)), ("seven_day", Some(100.0))]
    );
    assert_eq!(probed.login.plan.as_deref(), Some("max"));
    let heard = fake.log();
    assert!(
        heard.contains("get_usage") && !heard.contains("\"user\""),
        "{heard}"
    );
    assert!(
        heard.trim_end().ends_with('}'),
        "its own traffic is not silenced: {heard}"
    );
}

#[tokio::test]
async fn a_probe_that_brings_nothing_says_why() {
    let limit = Duration::from_secs(20);
    let null = usage(
        r#"{"subtype":"success","request_id":"usage","response":{"rate_limits_available":true,"rate_limits":null}}"#,
    );
    assert_eq!(null.claude.probe(limit).await.unwrap().readings, []);
    let by_key = usage(
        r#"{"subtype":"success","request_id":"usage","response":{"rate_limits_available":false,"rate_limits":null}}"#,
    );
    let old = usage(r#"{"subtype":"error","request_id":"usage","error":"unsupported_request"}"#);
    for fake in [by_key, old] {
        let refused = fake.claude.probe(limit).await;
        assert!(
            matches!(refused, Err(ProbeError::Unsupported(_))),
            "{refused:?}"
        );
    }
    let gone = Fake::new("echo 'no such flag' >&2; exit 1")
        .claude
        .probe(limit)
        .await;
    assert!(
        matches!(&gone, Err(ProbeError::Failed(why)) if why.contains("no such flag")),
        "{gone:?}"
    );
    let silent = Fake::new("sleep 60")
        .claude
        .probe(Duration::from_millis(300))
        .await;
    assert!(
        matches!(&silent, Err(ProbeError::Failed(why)) if why.contains("did not answer")),
        "{silent:?}"
    );
}
