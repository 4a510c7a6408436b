//! A plugin from outside, built from `plugin-api` only, that misbehaves on demand: its configuration says how.
//! Tests load its library; nothing links it.

use std::time::Duration;

use plugin_api::gateway_core::handoff::render;
use plugin_api::prelude::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"mode":{"type":"string"},"note":{"type":"string"},"line":{"type":"string"}}}"#;
const PLACEHOLDER: &str = render::REQUEST_PLACEHOLDER;

struct Fixture {
    mode: String,
    /// Something an instance says back, to tell instances apart.
    note: String,
    line: Option<String>,
    calls: u64,
    host: Host,
    counter: Counter,
}

impl GatewayPlugin for Fixture {
    const ID: &'static str = "fixture";
    const VERSION: &'static str = "0.3.1";

    fn capabilities() -> Capabilities {
        Capabilities::PROLOGUE
            .and(Capabilities::WALK)
            .and(Capabilities::TERMINAL)
            .and(Capabilities::EVENTS)
            .and(Capabilities::COMMANDS)
    }

    fn config_schema() -> &'static str {
        SCHEMA
    }

    fn create(host: Host, config: &str) -> Result<Self, ConfigError> {
        let value: serde_json::Value = config::parse(config, &["mode", "note", "line"])?;
        let text = |key: &str| value.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        let mode = text("mode").unwrap_or_default();
        match mode.as_str() {
            "panic in create" => panic!("boom in create"),
            "error in create" => return Err(ConfigError::new("mode", "not today")),
            "exit in create" => std::process::exit(7),
            _ => {}
        }
        Ok(Self {
            mode,
            note: text("note").unwrap_or_default(),
            line: text("line"),
            calls: 0,
            counter: host.counter("calls"),
            host,
        })
    }

    fn prologue(&mut self, context: &PrologueContext<'_>) -> Answer<PrologueAdvice> {
        self.calls += 1;
        self.counter.add(1);
        let calls = self.calls;
        let skip = |position| Skip::until(position, context.turn.now_ms + 1);
        match self.mode.as_str() {
            "panic" => panic!("boom in prologue"),
            "panic payload" => std::panic::panic_any(Grenade),
            "error" => Err("no opinion today".into()),
            "hang" => hang(),
            "slow" => {
                std::thread::sleep(Duration::from_millis(400));
                self.say(calls)
            }
            "bad positions" => Ok(Some(PrologueAdvice {
                skips: vec![skip(0), skip(0), skip(99), skip(u32::MAX)],
                status_line: Some("one\ntwo\u{1b}[31m".into()),
                claims: vec!["nobody".into()],
                ..PrologueAdvice::default()
            })),
            "huge" => Ok(Some(PrologueAdvice {
                status_line: Some("x".repeat(1_000_000)),
                inject: Some("y".repeat(1_000_000)),
                skips: (0..1_000_000).map(skip).collect(),
                ..PrologueAdvice::default()
            })),
            "flood" => {
                for index in 0..10_000 {
                    self.host.info(&format!("flood {index}"));
                }
                self.say(calls)
            }
            "inject" => Ok(Some(PrologueAdvice {
                inject: Some(format!("[{}: {PLACEHOLDER}]", self.note)),
                claims: context.documents.iter().map(|d| d.id.to_string()).collect(),
                ..PrologueAdvice::default()
            })),
            _ => self.say(calls),
        }
    }

    fn before_walk(&mut self, context: &WalkContext<'_>) -> Answer<WalkAdvice> {
        match self.mode.as_str() {
            "hang" => hang(),
            "bad positions" => Ok(Some(WalkAdvice {
                skips: (0..4).map(|position| Skip::until(position, 0)).collect(),
                ..WalkAdvice::default()
            })),
            _ => Ok(Some(WalkAdvice {
                gated: true,
                status_line: self.line.clone(),
                skips: vec![Skip::until(context.cursor, context.turn.now_ms)],
            })),
        }
    }

    fn on_terminal(&mut self, context: &TerminalContext<'_>) -> Answer<TerminalAdvice> {
        if self.mode == "huge" {
            return Ok(Some(TerminalAdvice {
                seal: Some("not a document".into()),
                notice: vec!["line".into(); 1_000],
                append: Some("z".repeat(1_000_000)),
            }));
        }
        Ok(Some(TerminalAdvice {
            append: Some(format!("{} {}", self.note, context.journal.len())),
            ..TerminalAdvice::default()
        }))
    }

    fn commands(&self) -> Vec<CommandSpec> {
        let spec = |name: &str, about: &str, operators_only| CommandSpec {
            name: name.into(),
            about: about.into(),
            operators_only,
        };
        match self.mode.as_str() {
            "commands" => vec![
                spec("fixture", "Says what it was told.", false),
                spec("fixture-drop", "Drops what waits here.", true),
                spec("status", "Tries to take a name.", false),
            ],
            "panic in commands" => panic!("boom in commands"),
            _ => Vec::new(),
        }
    }

    fn on_command(&mut self, invocation: &Invocation<'_>) -> Answer<CommandAdvice> {
        let options: serde_json::Value =
            serde_json::from_str(&invocation.options).map_err(|error| error.to_string())?;
        match options
            .get("argument")
            .and_then(|argument| argument.as_str())
        {
            Some("panic") => panic!("boom in a command"),
            Some("hang") => hang(),
            Some("nothing") => none(),
            argument => Ok(Some(CommandAdvice {
                text: Some(format!(
                    "{} {:?} by {} on {} of {}: {} documents",
                    invocation.name,
                    argument.unwrap_or_default(),
                    invocation.user,
                    invocation.channel,
                    invocation.profile,
                    invocation.documents.len()
                )),
                discards: match invocation.name.as_str() {
                    "fixture-drop" => invocation
                        .documents
                        .iter()
                        .map(|d| d.id.to_string())
                        .collect(),
                    _ => Vec::new(),
                },
            })),
        }
    }

    fn on_event(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Text { text, .. } => self.host.info(&format!("saw {text}")),
            _ if self.mode == "panic on event" => panic!("boom on event"),
            _ => {}
        }
    }
}

impl Fixture {
    fn say(&self, calls: u64) -> Answer<PrologueAdvice> {
        let line = format!("fixture {} call {calls}", self.note);
        Ok(Some(PrologueAdvice {
            status_line: Some(self.line.clone().unwrap_or(line)),
            ..PrologueAdvice::default()
        }))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        assert!(self.mode != "panic in drop", "boom in drop");
    }
}

/// A panic payload whose own drop panics.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("boom in the payload");
    }
}

fn hang<T>() -> T {
    loop {
        std::thread::park();
    }
}

plugin_api::export_plugin!(Fixture);
