//! Plays `claude` from a script: stream-json in and out, sessions and transcripts as version 2.1.332 keeps them.
//!
//! Not a model and not the real program: it knows one turn per run. What it is told and what it does is written to an
//! evidence file *before* anybody can see it, so that a test can count after any crash. The variables it reads
//! (`FAKE_CLI_*`) are named in the subscription's `env`.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON of our own script: a missing member reads as null"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A helper left over by a failed test ends by itself after this.
const HELPER_LIFE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--version") => say_raw("2.1.332 (Claude Code)"),
        Some("helper") => std::thread::sleep(HELPER_LIFE), // a tool that outlives everybody
        _ => return run(&arguments).unwrap_or(ExitCode::FAILURE),
    }
    ExitCode::SUCCESS
}

fn run(arguments: &[String]) -> io::Result<ExitCode> {
    let value = |name: &str| {
        arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(name).map(str::to_owned))
    };
    let (fresh, resumed) = (value("--session-id="), value("--resume="));
    let Some(session) = resumed.clone().or(fresh) else {
        return Ok(ExitCode::FAILURE);
    };
    let transcript = transcript(&session);
    if resumed.is_none() && transcript.exists() {
        let _ = writeln!(
            io::stderr(),
            "Error: Session ID {session} is already in use."
        );
        return Ok(ExitCode::FAILURE);
    }
    let mut stage = Stage {
        session,
        transcript,
        evidence: Evidence::open()?,
        message: 0,
    };
    stage.evidence.note("start", &stage.session, "")?;
    let Some(prompt) = prompt()? else {
        return Ok(ExitCode::SUCCESS);
    }; // nothing was asked
    if resumed.is_some() && !stage.transcript.exists() {
        stage.no_such_session();
        return Ok(ExitCode::SUCCESS);
    }
    stage.told(&prompt)?;
    let script: Value =
        serde_json::from_str(&std::fs::read_to_string(variable("FAKE_CLI_SCRIPT")?)?)?;
    for step in steps(&script, &prompt) {
        stage.play(step)?;
    }
    io::stdin().lock().lines().for_each(drop); // like the real one: leaves when its input is closed
    Ok(ExitCode::SUCCESS)
}

/// The steps of the first turn whose `when` is part of the prompt.
fn steps<'a>(script: &'a Value, prompt: &str) -> impl Iterator<Item = &'a Value> {
    let turns = script.as_array().into_iter().flatten();
    let mut fitting = turns.filter(move |turn| {
        turn["when"]
            .as_str()
            .is_some_and(|when| prompt.contains(when))
    });
    fitting
        .next()
        .and_then(|turn| turn["steps"].as_array())
        .into_iter()
        .flatten()
}

/// The text blocks of the first user message; `None` = the input ended before one came.
fn prompt() -> io::Result<Option<String>> {
    let mut line = String::new();
    while io::stdin().lock().read_line(&mut line)? > 0 {
        let record: Value = serde_json::from_str(&line)?;
        if record["type"] == "user" {
            let blocks = record["message"]["content"]
                .as_array()
                .into_iter()
                .flatten();
            let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
            return Ok(Some(texts.join("\n")));
        }
        line.clear();
    }
    Ok(None)
}

fn variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")))
}

fn transcript(session: &str) -> PathBuf {
    let folder =
        std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let here = std::env::current_dir().unwrap_or_default();
    let slug: String = here
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    folder
        .join("projects")
        .join(slug)
        .join(format!("{session}.jsonl"))
}

fn append(path: &Path, line: &Value) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// One line on stdout. A reader that has gone is what the death signal is for.
fn say_raw(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What was told and done, for the test: a file that is only appended to, and a bell that tells of each line.
struct Evidence {
    file: File,
    bell: Option<File>,
}

impl Evidence {
    fn open() -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(variable("FAKE_CLI_EVIDENCE")?)?;
        // Opened for both, so that neither opening nor ringing ever waits for a listener.
        let bell = variable("FAKE_CLI_BELL")
            .ok()
            .map(|bell| OpenOptions::new().read(true).write(true).open(bell));
        Ok(Self {
            file,
            bell: bell.transpose()?,
        })
    }

    fn note(&mut self, what: &str, session: &str, text: &str) -> io::Result<()> {
        self.note_of(std::process::id(), what, session, text)
    }

    fn note_of(&mut self, pid: u32, what: &str, session: &str, text: &str) -> io::Result<()> {
        let line = json!({"pid": pid, "what": what, "session": session, "text": text});
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.bell
            .as_mut()
            .map_or(Ok(()), |bell| bell.write_all(b"."))
    }
}

/// One turn being played.
struct Stage {
    session: String,
    transcript: PathBuf,
    evidence: Evidence,
    message: u32,
}

impl Stage {
    /// The prompt is in the transcript before the model is asked, as the real program does it.
    fn told(&mut self, prompt: &str) -> io::Result<()> {
        let record = json!({"type": "user", "message": {"role": "user", "content": prompt}, "sessionId": self.session});
        append(&self.transcript, &record)?;
        self.evidence.note("prompt", &self.session, prompt)?;
        self.say(&json!({
            "type": "system", "subtype": "init", "session_id": self.session, "apiKeySource": "none",
            "claude_code_version": "2.1.332", "tools": ["Bash"], "model": "m",
        }));
        Ok(())
    }

    fn play(&mut self, step: &Value) -> io::Result<()> {
        if let Some(text) = step["text"].as_str() {
            self.text(text)?;
        } else if let Some(call) = step.get("call") {
            self.call(call)?;
        } else if let Some(result) = step.get("result") {
            self.result(result)?;
        } else if let Some(ms) = step["pause_ms"].as_u64() {
            std::thread::sleep(Duration::from_millis(ms)); // the model thinks
        } else if let Some(fifo) = step["wait"].as_str() {
            File::open(fifo)?; // opens when somebody opens the other end
        } else if step["end"] == "answered" {
            self.answered()?;
        } else if step["end"] == "limit" {
            self.refused()?;
        }
        Ok(())
    }

    fn say(&self, record: &Value) {
        say_raw(&record.to_string());
    }

    fn streamed(&self, event: &Value) {
        let id = self.message_id();
        self.say(&json!({"type": "stream_event", "event": event, "session_id": self.session, "api_message_id": id}));
    }

    fn message_id(&self) -> String {
        format!("msg_{}_{}", std::process::id(), self.message)
    }

    /// A block of text: two deltas, then the finished block once more.
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.message += 1;
        self.streamed(&json!({"type": "message_start", "message": {"id": self.message_id()}}));
        let half = text.chars().count() / 2;
        let (first, second): (String, String) = (
            text.chars().take(half).collect(),
            text.chars().skip(half).collect(),
        );
        for delta in [first, second] {
            let delta = json!({"type": "text_delta", "text": delta});
            self.streamed(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        self.assistant(&json!({"type": "text", "text": text}))
    }

    fn assistant(&self, block: &Value) -> io::Result<()> {
        let message =
            json!({"id": self.message_id(), "role": "assistant", "model": "m", "content": [block]});
        append(
            &self.transcript,
            &json!({"type": "assistant", "message": message, "sessionId": self.session}),
        )?;
        self.say(&json!({"type": "assistant", "message": message, "session_id": self.session}));
        Ok(())
    }

    /// A tool call: reported, then done. With `helper` it leaves a process of its own behind in the same group.
    fn call(&mut self, call: &Value) -> io::Result<()> {
        self.message += 1;
        self.assistant(
            &json!({"type": "tool_use", "id": call["id"], "name": "Bash", "input": call["input"]}),
        )?;
        if call["helper"] == true {
            let helper = start_helper()?;
            self.evidence.note_of(helper, "helper", &self.session, "")?;
        }
        self.evidence.note(
            "effect",
            &self.session,
            call["id"].as_str().unwrap_or_default(),
        )
    }

    fn result(&self, result: &Value) -> io::Result<()> {
        let block =
            json!({"type": "tool_result", "tool_use_id": result["id"], "content": result["text"]});
        let message = json!({"role": "user", "content": [block]});
        append(
            &self.transcript,
            &json!({"type": "user", "message": message, "sessionId": self.session}),
        )?;
        self.say(&json!({"type": "user", "message": message, "session_id": self.session}));
        Ok(())
    }

    fn answered(&mut self) -> io::Result<()> {
        self.evidence.note("answered", &self.session, "")?;
        self.say(&json!({
            "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": self.session,
            "usage": {"input_tokens": 12, "output_tokens": 42},
        }));
        Ok(())
    }

    /// The plan's five-hour window is spent: the fields of the capture `rl-unified-rejected-oauth`, with a reset that is
    /// over, so that the next turn may try again.
    fn refused(&mut self) -> io::Result<()> {
        const OVER: i64 = 1_780_000_000;
        self.evidence.note("refused", &self.session, "")?;
        self.say(&json!({"type": "rate_limit_event", "session_id": self.session, "rate_limit_info": {
            "status": "rejected", "resetsAt": OVER, "rateLimitType": "five_hour", "isUsingOverage": false,
            "unifiedWindows": {"five_hour": {"status": "rejected", "utilization": 1.0, "resetsAt": OVER}},
        }}));
        let words = "You've hit your session limit";
        self.say(&json!({
            "type": "assistant", "error": "rate_limit", "is_api_error_message": true, "session_id": self.session,
            "message": {"id": "synthetic", "model": "<synthetic>", "content": [{"type": "text", "text": words}]},
        }));
        self.say(&json!({
            "type": "result", "subtype": "success", "is_error": true, "api_error_status": 429, "result": words,
            "terminal_reason": "api_error", "session_id": self.session, "num_turns": 1,
        }));
        Ok(())
    }

    fn no_such_session(&self) {
        let error = format!("No conversation found with session ID: {}", self.session);
        self.say(&json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0, "errors": [error],
        }));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this program plays a tool that starts processes"
)]
fn start_helper() -> io::Result<u32> {
    let mut helper = Command::new(std::env::current_exe()?);
    helper
        .arg("helper")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(helper.spawn()?.id())
}
