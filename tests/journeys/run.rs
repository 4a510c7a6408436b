//! The program `baton run` itself: exit codes, what it says, signals, `kill -9`.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use gateway_fakes::FakeDiscord;
use gateway_fakes::discord::TOKEN;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::gateway::Rig;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

/// The longest a test waits for one thing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `baton run`.
struct Run {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

impl Run {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test owns the gateway it starts"
    )]
    fn start(rig: &Rig, args: &[&str]) -> Self {
        let mut command = rig.command_of("run");
        command.args(args).env("DISCORD_TOKEN", TOKEN);
        let mut child = tokio::process::Command::from(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("baton starts; is it built?");
        let errors = child.stderr.take().expect("piped");
        Self {
            child,
            lines: BufReader::new(errors).lines(),
            said: Vec::new(),
        }
    }

    /// Waits for a line that holds this.
    async fn says(&mut self, words: &str) -> String {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("`{words}` was not said: {:#?}", self.said));
            let Some(line) = line.expect("stderr can be read") else {
                panic!("`{words}` was not said: {:#?}", self.said);
            };
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .id()
            .and_then(|pid| Pid::from_raw(pid.cast_signed()));
        kill_process(pid.expect("it runs"), signal).expect("it is ours");
    }

    /// Waits until it has ended; what it said on stderr, and on stdout.
    async fn ended(mut self) -> (ExitStatus, String, String) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status.expect("it ends").expect("it is our child");
        while let Ok(Some(line)) = self.lines.next_line().await {
            self.said.push(line);
        }
        let mut out = String::new();
        if let Some(stdout) = &mut self.child.stdout {
            stdout.read_to_string(&mut out).await.expect("it is text");
        }
        (status, self.said.join("\n"), out)
    }
}

fn script() -> Value {
    json!([
        {"when": "slowly", "steps": [{"text": "Slow "}, {"pause_ms": 700}, {"text": "END-slow"}, {"end": "answered"}]},
        {"when": "hello", "steps": [{"text": "END-hello"}, {"end": "answered"}]},
        {"when": "go on", "steps": [{"text": "END-on"}, {"end": "answered"}]},
    ])
}

fn section(fake: &FakeDiscord, keys: &str) -> String {
    format!(
        "[profiles.default.discord]\ntoken_env = \"DISCORD_TOKEN\"\napi_base = \"{}\"\n{keys}",
        fake.base()
    )
}

#[tokio::test]
async fn it_answers_and_a_running_turn_outlives_sigterm() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let rig = Rig::new(&script());
    rig.configure(&section(&fake, &format!("users = [\"{anna}\"]\n")));
    let mut run = Run::start(&rig, &[]);
    run.says("discord (default): ready").await;
    let dm = fake.dm(anna);
    fake.say(dm, anna, "hello");
    fake.wait_for_text(dm, |text| text == "END-hello").await;
    fake.say(dm, anna, "slowly");
    fake.wait_for("the turn runs", |_| {
        let told = rig
            .evidence()
            .iter()
            .any(|line| line["text"].to_string().contains("slowly"));
        told.then_some(())
    })
    .await;
    run.signal(Signal::TERM);
    run.says("stopping: running turns get 20 s").await;
    let (status, said, out) = run.ended().await;
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.ends_with("stopped"), "{said}");
    assert_eq!(out, "", "stdout is for answers");
    let shown = fake.from_bot(dm);
    assert!(shown.iter().any(|message| message.text == "Slow END-slow"));
    assert!(!said.contains(TOKEN));
    fake.assert_clean();
}

#[tokio::test]
async fn killed_under_a_turn_it_says_so_at_the_next_start_and_goes_on() {
    let fake = FakeDiscord::start().await;
    let anna = fake.person("anna");
    let script = json!([
        {"when": "go on", "steps": [{"text": "END-on"}, {"end": "answered"}]},
        {"when": "for ever", "steps": [{"text": "Begun. "}, {"pause_ms": 60_000}, {"end": "answered"}]},
    ]);
    let rig = Rig::new(&script);
    rig.configure(&section(&fake, &format!("users = [\"{anna}\"]\n")));
    let mut run = Run::start(&rig, &[]);
    run.says("ready").await;
    let dm = fake.dm(anna);
    fake.say(dm, anna, "for ever");
    fake.wait_for_text(dm, |text| text.contains("Begun")).await;
    fake.say(dm, anna, "this one waits");
    fake.wait_for_text(dm, |text| text.starts_with("Queued"))
        .await;
    let second = Run::start(&rig, &[]);
    let (status, said, _) = second.ended().await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("another `baton run` of this root serves this bot"),
        "{said}"
    );
    run.signal(Signal::KILL);
    run.ended().await;

    let mut run = Run::start(&rig, &[]);
    run.says("ready").await;
    fake.wait_for_text(dm, |text| text.contains("Handoff saved"))
        .await;
    fake.say(dm, anna, "go on");
    fake.wait_for_text(dm, |text| text == "END-on").await;
    let asked = fake
        .slash(dm, anna, "resume-handoff", &[])
        .expect("it is registered");
    let answer = fake.wait_for_answer(&asked).await;
    assert_eq!(answer.text, "No saved handoff for this chat.");
    run.signal(Signal::INT);
    run.says("stopping").await;
    let (status, said, _) = run.ended().await;
    assert_eq!(status.code(), Some(0), "{said}");
    let carried = rig.evidence().into_iter().filter(|line| {
        let text = line["text"].to_string();
        text.contains("go on") && text.contains("for ever") && text.contains("this one waits")
    });
    assert_eq!(carried.count(), 1, "both are carried, once");
}

#[tokio::test]
async fn what_is_missing_is_said_with_its_exit_code() {
    let fake = FakeDiscord::builder().token("an.other.token").start().await;
    let rig = Rig::new(&script());
    let bare = Run::start(&rig, &[]).ended().await;
    assert_eq!(bare.0.code(), Some(2));
    assert!(
        bare.1.contains("there is nothing to serve")
            && bare.1.contains("[profiles.default.discord]"),
        "{}",
        bare.1
    );

    let refused = section(&fake, "users = [\"1\"]\n");
    let unset = refused.replace("DISCORD_TOKEN", "NOT_SET");
    let twice = format!(
        "{refused}channels = [\"7\"]\n[profiles.work]\nchain = [\"one/m\"]\n[profiles.work.discord]\ntoken_env = \"DISCORD_TOKEN\"\nusers = [\"1\"]\nchannels = [\"7\"]\n"
    );
    let rows: [(&str, &[&str], i32, &str); 5] = [
        (
            &refused,
            &["--profile", "wrok"],
            2,
            "there is no profile \"wrok\"",
        ),
        (&refused, &["--drain", "soon"], 2, "is not a duration"),
        (
            &unset,
            &[],
            1,
            "discord (default): error: the environment variable NOT_SET is not set",
        ),
        (
            &twice,
            &[],
            2,
            "use the same bot token and both list the channel 7",
        ),
        (&refused, &[], 1, "discord (default): error: "), // Discord refuses the token
    ];
    for (sections, args, code, words) in rows {
        rig.configure(sections);
        let (status, said, out) = Run::start(&rig, args).ended().await;
        assert_eq!(status.code(), Some(code), "{words}: {said}");
        assert!(said.contains(words), "{words} not in {said}");
        assert_eq!(out, "", "{said}");
    }
}

#[tokio::test]
async fn for_programs_it_tells_one_event_a_line() {
    let fake = FakeDiscord::start().await;
    let rig = Rig::new(&script());
    rig.configure(&section(&fake, "users = [\"1\"]\noperators = [\"1\"]\n"));
    let run = Run::start(&rig, &["--json"]);
    fake.wait_until_ready(1).await;
    run.signal(Signal::TERM);
    let (status, said, out) = run.ended().await;
    assert_eq!(status.code(), Some(0), "{said}");
    let events: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|line| line["event"].as_str().expect("named").to_owned())
        .collect();
    assert_eq!(events.last().map(String::as_str), Some("stopped"), "{out}");
}
