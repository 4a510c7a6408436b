//! One login, one working directory, one model API, for the tests of the real program.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::attempt::{Turn, request};
use jiff::Timestamp;
use providers::opencode::{OpenCode, OpenCodeSettings};
use providers::{AttemptHandle, AttemptRequest, Provider as _};
use serde_json::json;

use crate::chat::Mock;
use crate::real;

/// As much of ripgrep as the program's two searches use.
const RG: &str = r#"#!/bin/sh
for argument in "$@"; do
  case "$argument" in
    --files) exec find . -type f ;;
    -*) ;;
    .) ;;
    *) pattern=$argument ;;
  esac
done
grep -rHn -e "$pattern" . | while IFS=: read -r file line text; do
  printf '{"type":"match","data":{"path":{"text":"%s"},"lines":{"text":"%s\\n"},"line_number":%s,"absolute_offset":0,"submatches":[]}}\n' "$file" "$text" "$line"
done
"#;

/// One login, one working directory, one model API.
pub(crate) struct World {
    pub(crate) mock: Mock,
    folder: tempfile::TempDir,
    pub(crate) opencode: OpenCode,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program under test reads the machine's clock"
)]
pub(crate) fn machine_time() -> Timestamp {
    Timestamp::now()
}

impl World {
    /// `None` = skipped.
    pub(crate) async fn new() -> Option<Self> {
        let binary = real::opencode()?;
        let mock = Mock::start().await;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let opencode = OpenCode::new(OpenCodeSettings {
            binary: Some(binary),
            home: Some(root.join("login")),
            env: BTreeMap::from([
                (
                    "HOME".to_owned(),
                    root.join("home").to_str().unwrap().to_owned(),
                ),
                ("CANARY".to_owned(), "canary-environment".to_owned()),
            ]),
            subscription: "opencode-test".into(),
            metered: false,
            hidden: vec![root.join("work/gateway")],
            usage_base: None,
            now: Arc::new(machine_time),
        });
        let world = Self {
            mock,
            folder,
            opencode,
        };
        world.furnish();
        Some(world)
    }

    /// Providers that must count, settings that must not, files that must be readable and files that must not.
    pub(crate) fn furnish(&self) {
        let models = json!({
            "mock-model": {"name": "Mock", "limit": {"context": 200_000, "output": 8_192}},
            "gpt-5-mock": {"name": "Mock", "limit": {"context": 200_000, "output": 8_192}},
        });
        let provider = |url: &str| {
            json!({
                "npm": "@ai-sdk/openai-compatible", "name": "Mock",
                "options": {"baseURL": url, "apiKey": "dummy"}, "models": models,
            })
        };
        let touch = |name: &str| json!(["touch", self.path(name)]);
        let config = json!({
            "provider": {
                "mock": provider(&self.mock.url()),
                "nowhere": provider("http://127.0.0.1:9/v1"),
                "far": provider("https://api.example.invalid/v1"),
            },
            "enabled_providers": ["mock", "nowhere", "far"],
            "small_model": "far/mock-model",
            "permission": {"*": "allow", "bash": "allow"},
            "instructions": [self.path("outside.txt")],
            "mcp": {"evil": {"type": "local", "command": touch("mcp-ran"), "enabled": true}},
        });
        self.write("login/config/opencode/opencode.json", &config.to_string());
        self.write("login/config/opencode/AGENTS.md", "kanary-global");
        self.write("login/secret.txt", "canary-login");
        // Without an `rg` the program would download one.
        self.write("login/cache/opencode/bin/rg", RG);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path("login/cache/opencode/bin/rg"), executable).unwrap();
        self.write("home/x.txt", "canary-home");
        self.write("home/.claude/CLAUDE.md", "kanary-claude");
        self.write(
            "home/.opencode/opencode.json",
            &json!({"instructions": [self.path("outside.txt")]}).to_string(),
        );
        self.write("outside.txt", "canary-outside");
        self.write("outside/o.txt", "canary-outside-folder");
        self.write("work/in.txt", "inside the working directory");
        self.write("work/gateway/baton.db", "canary-database");
        self.write("work/AGENTS.md", "kanary-project");
        self.write(
            "work/opencode.json",
            &json!({"permission": {"*": "allow"}, "instructions": [self.path("outside.txt")]})
                .to_string(),
        );
        self.write("work/.opencode/plugin/evil.js", "kanary-plugin");
        for (target, link) in [
            ("outside.txt", "work/link.txt"),
            ("outside", "work/folder"),
            ("nowhere.txt", "work/dangling.txt"),
        ] {
            std::os::unix::fs::symlink(self.path(target), self.path(link)).unwrap();
        }
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
        let (mut request, word) = request("mock/mock-model", prompt, self.path("work"));
        change(&mut request);
        let _ = word.send(()); // a scene without a word has its own
        self.opencode.start(request)
    }

    pub(crate) async fn turn(
        &self,
        prompt: &str,
        change: impl FnOnce(&mut AttemptRequest),
    ) -> Turn {
        Turn::of(self.start(prompt, change)).await
    }

    /// Nothing that must stay secret went to the model, and no setting of the person or the project counted.
    pub(crate) fn assert_no_canary(&self) {
        for request in self.mock.requests() {
            let sent = request.to_string();
            for canary in ["canary-", "kanary-"] {
                let found = sent
                    .find(canary)
                    .map(|at| sent.get(at.saturating_sub(300)..at + 30));
                assert_eq!(found, None, "a canary reached the model");
            }
        }
        assert!(!self.path("mcp-ran").exists(), "an MCP server ran");
    }
}
