//! One login of the real Codex, one working directory with canaries, one model API on loopback.
#![allow(dead_code, reason = "each test executable uses what it is about")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use crate::attempt::Turn;
use crate::attempt::request;
use gateway_core::route::Billing;
use jiff::Timestamp;
use providers::codex::{Codex, CodexSettings};
use providers::loopback::{Loopback, Step, Wire};
use providers::{AttemptHandle, AttemptRequest, Provider};
use serde_json::{Value, json};

/// One login, one working directory, one model API.
pub(crate) struct World {
    pub(crate) api: Loopback,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) codex: Codex,
}

/// How the model provider of the login is paid, as `config.toml` says it.
pub(crate) const OWN_KEY: &str = "env_key = \"MOCK_API_KEY\"";
pub(crate) const LOGIN: &str = "requires_openai_auth = true";

impl World {
    /// `None` = skipped.
    pub(crate) async fn new(steps: Vec<Step>) -> Option<Self> {
        Self::with(steps, OWN_KEY, None).await
    }

    pub(crate) async fn with(steps: Vec<Step>, payment: &str, auth: Option<Value>) -> Option<Self> {
        let binary = crate::real::codex()?;
        let api = Loopback::start(Wire::Responses).await.unwrap();
        api.script(steps);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let codex = Codex::new(CodexSettings {
            binary: Some(binary),
            home: Some(root.join("login")),
            env: BTreeMap::from([
                ("HOME".to_owned(), text(root.join("home"))),
                ("MOCK_API_KEY".to_owned(), "canary-key".to_owned()),
                ("CANARY".to_owned(), "canary-environment".to_owned()),
            ]),
            subscription: "codex-test".into(),
            billing: Billing::Plan,
            hidden: vec![root.join("work/gateway")],
            now: Arc::new(|| Timestamp::from_second(1_796_000_000).unwrap()),
        });
        let world = Self { api, folder, codex };
        world.furnish(payment, auth);
        Some(world)
    }

    /// Files that must be readable, files that must not, and settings that must not count.
    pub(crate) fn furnish(&self, payment: &str, auth: Option<Value>) {
        let url = self.api.base_url();
        let touch = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let work = touch("work");
        self.write(
            "login/config.toml",
            &format!(
                r#"
model = "gpt-5.5"
model_provider = "mock"
sandbox_mode = "danger-full-access"
chatgpt_base_url = "{url}/backend-api"
notify = ["touch", "{notify}"]
developer_instructions = "kanary-instructions"
[sandbox_workspace_write]
network_access = true
[projects."{work}"]
trust_level = "trusted"
[mcp_servers.mine]
command = "touch"
args = ["{mine}"]
[[hooks.SessionStart]]
matcher = "*"
[[hooks.SessionStart.hooks]]
type = "command"
command = "touch {hook}"
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
{payment}
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 60000
"#,
                notify = touch("notify-ran"),
                mine = touch("mcp-ran"),
                hook = touch("hook-ran"),
            ),
        );
        if let Some(auth) = auth {
            self.write("login/auth.json", &auth.to_string());
        }
        self.write("login/secret.txt", "canary-login");
        self.write(
            "login/skills/evil/SKILL.md",
            "---\nname: evil\ndescription: kanary-skill\n---\nx",
        );
        self.write("home/x.txt", "canary-home");
        self.write("outside.txt", "canary-outside");
        self.write("work/in.txt", "inside the working directory");
        self.write("work/gateway/baton.db", "canary-database");
        self.write("work/AGENTS.md", "kanary-project");
        self.write(
            "work/.codex/config.toml",
            &format!(
                "[mcp_servers.project]\ncommand = \"touch\"\nargs = [\"{}\"]\n",
                touch("mcp-ran")
            ),
        );
        std::os::unix::fs::symlink(self.path("outside.txt"), self.path("work/link.txt")).unwrap();
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn start(
        &self,
        prompt: &str,
        change: impl FnOnce(&mut AttemptRequest),
    ) -> AttemptHandle {
        let (mut request, word) = request("gpt-5.5", prompt, self.path("work"));
        change(&mut request);
        word.send(()).unwrap();
        self.codex.start(request)
    }

    pub(crate) async fn turn(
        &self,
        prompt: &str,
        change: impl FnOnce(&mut AttemptRequest),
    ) -> Turn {
        Turn::of(self.start(prompt, change)).await
    }

    /// Bodies of the requests to the model; any other request went to the same server, which answered 404.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let requests = self.api.requests();
        let to_model = requests
            .into_iter()
            .filter(|request| request.path.ends_with("/responses"));
        to_model.map(|request| request.body).collect()
    }

    /// What the model was told of its tool calls, newest last.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let asked = self.asked();
        let input = asked.last().unwrap()["input"].as_array().unwrap().clone();
        let outputs = input
            .into_iter()
            .filter(|item| item["type"].as_str().unwrap().ends_with("_output"));
        outputs.map(|item| item["output"].to_string()).collect()
    }

    /// Nothing that must stay secret went to the model, and no setting of the person or the project acted.
    pub(crate) fn assert_no_canary(&self) {
        for request in self.asked() {
            let sent = request.to_string();
            for canary in ["canary-", "kanary-"] {
                let found = sent.find(canary).map(|at| sent.get(at..at + 30));
                assert_eq!(found, None, "a canary reached the model");
            }
        }
        for trace in ["hook-ran", "mcp-ran", "notify-ran"] {
            assert!(!self.path(trace).exists(), "{trace}");
        }
    }
}

pub(crate) fn tool(name: &str, input: Value) -> Step {
    Step::ToolUse {
        text: String::new(),
        name: name.to_owned(),
        input,
    }
}

pub(crate) fn command(text: &str) -> Step {
    tool(
        "exec_command",
        json!({"cmd": text, "yield_time_ms": 20_000, "max_output_tokens": 20_000}),
    )
}

pub(crate) fn tools_of(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().or(tool["type"].as_str()).unwrap())
        .collect()
}

/// Everything a chat user must not get, and what it may.
pub(crate) fn burglary(world: &World) -> Step {
    let login = world.path("login/secret.txt");
    command(&format!(
        "cat in.txt; cat link.txt ../outside.txt {} gateway/baton.db; ls gateway; env; \
         for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done; \
         cat /etc/shadow; touch written.txt ../outside-written.txt; \
         (exec 3<>/dev/tcp/127.0.0.1/{}) && echo connected-out",
        login.display(),
        world.api.base_url().rsplit(':').next().unwrap(),
    ))
}

pub(crate) fn patch(name: &str) -> Step {
    tool(
        "apply_patch",
        json!(format!(
            "*** Begin Patch\n*** Add File: {name}\n+text\n*** End Patch"
        )),
    )
}

/// Programs whose working directory is this one.
pub(crate) fn running_in(folder: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter(|entry| {
            std::fs::read_link(entry.path().join("cwd"))
                .is_ok_and(|cwd| cwd.to_str() == Some(folder))
        })
        .map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .filter(|line| !line.is_empty())
        .collect()
}
