//! The command line of the server and the parameters of threads. Everything a person can influence (title, model, paths)
//! is JSON, so none of it can become an option.
//!
//! Permissions (checked with the real program, version 0.171.0, in `tests/real_codex.rs`):
//! * each level is a permission profile of its own, given with the thread: it wins over `sandbox_mode` of the person's
//!   settings. The old read-only sandbox reads the whole disk and is not used;
//! * a profile's name carries a digest of all that was asked for. The program leaves a thread that is still loaded as it
//!   was, and tells so only by the name it answers with: [`accepted`] refuses anything else;
//! * `none` has no execution environment and no shell tool. `apply_patch` stays in the list of tools (the model brings it),
//!   and the program refuses every call of it;
//! * features that reach outside (apps, plugins, hooks, browser, sub-agents) are off on every level, and every MCP server
//!   of the settings is switched off by name: an empty table would be merged with them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::Permissions;

/// Settings for every run: no update check, no telemetry, no notify program, no instructions of a project, and a thread is
/// unloaded (with what it left running) as soon as its turn is over.
const SETTINGS: &[&str] = &[
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "notify=[]",
    "project_doc_max_bytes=0",
    "thread_unload_delay_secs=0",
];
/// Features that are off on every level (names of 0.171; one that does not exist is only warned about).
const OFF: &[&str] = &[
    "apps",
    "auth_elicitation",
    "browser_use",
    "browser_use_external",
    "browser_use_full_cdp_access",
    "computer_use",
    "daemon_auto_start",
    "goals",
    "hooks",
    "image_generation",
    "in_app_browser",
    "in_app_local_automation",
    "memories",
    "multi_agent",
    "plugin_sharing",
    "plugins",
    "remote_plugin",
    "shell_snapshot",
    "skill_mcp_dependency_install",
    "skill_search",
    "sleep_tool",
    "tool_call_mcp_elicitation",
    "tool_suggest",
    "unbounded_connection_retries",
    "view_image",
    "workspace_dependencies",
];
/// The profile of the program itself that confines nothing.
const FULL: &str = ":danger-full-access";
/// Longest title passed on, in characters.
const TITLE_CHARS: usize = 200;

/// The arguments of the server.
pub(super) fn arguments() -> Vec<OsString> {
    let features = OFF.iter().map(|name| format!("features.{name}=false"));
    let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
    let mut arguments = vec![OsString::from("app-server")];
    for setting in settings.chain(features) {
        arguments.extend(["-c".into(), setting.into()]);
    }
    arguments
}

/// What a thread may do and where.
#[derive(Debug)]
pub(super) struct Confinement<'a> {
    pub(super) permissions: Permissions,
    pub(super) workdir: &'a Path,
    /// The program itself: its sandbox starts it once more inside.
    pub(super) program: &'a Path,
    /// Existing paths no command may reach.
    pub(super) denied: &'a [PathBuf],
    /// MCP servers of the person's and the project's settings.
    pub(super) servers: &'a [String],
}

/// A thread's permissions, ready to be asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Terms {
    profile: String,
    workdir: PathBuf,
    config: Value,
}

impl Terms {
    pub(super) fn new(confinement: &Confinement<'_>) -> Self {
        let mut config = config(confinement);
        let profile = match confinement.permissions {
            Permissions::Full => FULL.to_owned(),
            level => {
                let rules = filesystem(confinement);
                let asked = format!(
                    "{} {rules} {}",
                    json!(config),
                    confinement.workdir.display()
                );
                let name = format!("baton-{}-{}", word(level), digest(&asked));
                config.insert("permissions".into(), json!({&name: {"filesystem": rules}}));
                name
            }
        };
        config.insert("default_permissions".into(), json!(profile));
        Self {
            profile,
            workdir: confinement.workdir.to_owned(),
            config: Value::Object(config),
        }
    }

    /// Parameters of `thread/start`, and with a `thread` of `thread/resume`.
    pub(super) fn open(&self, model: &str, thread: Option<&str>) -> Value {
        let mut params = json!({
            "model": model,
            "cwd": self.workdir,
            "approvalPolicy": "never",
            "approvalsReviewer": "user",
            "developerInstructions": "",
            "config": self.config,
        });
        if let (Some(thread), Some(params)) = (thread, params.as_object_mut()) {
            params.insert("threadId".into(), json!(thread));
            params.insert("excludeTurns".into(), json!(true));
        }
        params
    }

    /// Whether an opened thread has these permissions and no others.
    pub(super) fn accepted(&self, opened: &Value) -> bool {
        let profile = opened
            .pointer("/activePermissionProfile/id")
            .and_then(Value::as_str);
        let policy = opened.get("approvalPolicy").and_then(Value::as_str);
        let cwd = opened.get("cwd").and_then(Value::as_str).map(Path::new);
        profile == Some(&self.profile) && policy == Some("never") && cwd == Some(&self.workdir)
    }
}

/// Parameters of `turn/start`. The prompt is an input of its own, word for word.
pub(super) fn turn(
    thread: &str,
    permissions: Permissions,
    context: Option<&str>,
    prompt: &str,
) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let input: Vec<Value> = context.into_iter().chain([prompt]).map(text).collect();
    let mut params = json!({"threadId": thread, "input": input});
    if let (Permissions::None, Some(params)) = (permissions, params.as_object_mut()) {
        params.insert("environments".into(), json!([]));
    }
    params
}

/// One line for people; `None` = nothing to say.
pub(super) fn title(title: &str) -> Option<String> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(TITLE_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

fn config(confinement: &Confinement<'_>) -> Map<String, Value> {
    let level = confinement.permissions;
    let tools = level != Permissions::None;
    let servers: Map<String, Value> = confinement
        .servers
        .iter()
        .map(|name| (name.clone(), json!({"enabled": false})))
        .collect();
    let mut features: Map<String, Value> = OFF
        .iter()
        .map(|name| ((*name).to_owned(), json!(false)))
        .collect();
    features.extend(["shell_tool", "unified_exec"].map(|name| (name.to_owned(), json!(tools))));
    let mut config = json!({
        "developer_instructions": "",
        "include_apps_instructions": false,
        "project_doc_max_bytes": 0,
        "skills": {"include_instructions": false},
        "tools": {
            "update_plan": {"enabled": tools},
            "experimental_request_user_input": {"enabled": false},
        },
        "features": features,
        "mcp_servers": servers,
    });
    let config = config.as_object_mut().map(std::mem::take);
    let mut config = config.unwrap_or_default();
    if level != Permissions::Full {
        config.insert("web_search".into(), json!("disabled"));
        // HOME, PATH and the like: no variable of the subscription, which may hold a key, reaches a command.
        config.insert(
            "shell_environment_policy".into(),
            json!({"inherit": "core"}),
        );
    }
    config
}

/// `:minimal` is what programs need to run (`/usr`, `/lib`, `/etc`, …); everything not named is out of reach.
fn filesystem(confinement: &Confinement<'_>) -> Value {
    let mut rules = Map::new();
    rules.insert(":minimal".into(), json!("read"));
    let access = match confinement.permissions {
        Permissions::Edit => "write",
        Permissions::ReadOnly => "read",
        Permissions::None | Permissions::Full => return Value::Object(rules),
    };
    rules.insert(":workspace_roots".into(), json!({".": access}));
    rules.insert(confinement.program.to_string_lossy().into(), json!("read"));
    for path in confinement.denied {
        rules.insert(path.to_string_lossy().into(), json!("deny"));
    }
    Value::Object(rules)
}

fn word(level: Permissions) -> &'static str {
    match level {
        Permissions::None => "none",
        Permissions::ReadOnly => "read-only",
        Permissions::Edit => "edit",
        Permissions::Full => "full",
    }
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(permissions: Permissions) -> Terms {
        Terms::new(&Confinement {
            permissions,
            workdir: Path::new("/srv/app"),
            program: Path::new("/opt/codex"),
            denied: &["/srv/app/.baton".into()],
            servers: &["tickets".to_owned()],
        })
    }

    #[test]
    fn each_level_is_a_profile_of_its_own() {
        let rules = |level| {
            let terms = terms(level);
            let at = format!("/permissions/{}/filesystem", terms.profile);
            terms.config.pointer(&at).cloned()
        };
        assert_eq!(rules(Permissions::None), Some(json!({":minimal": "read"})));
        let confined = |access: &str| {
            Some(json!({
                ":minimal": "read", ":workspace_roots": {".": access}, "/opt/codex": "read", "/srv/app/.baton": "deny",
            }))
        };
        assert_eq!(rules(Permissions::ReadOnly), confined("read"));
        assert_eq!(rules(Permissions::Edit), confined("write"));
        assert_eq!(terms(Permissions::Full).config["default_permissions"], FULL);
        assert_eq!(
            terms(Permissions::Edit).config["mcp_servers"],
            json!({"tickets": {"enabled": false}})
        );
    }

    #[test]
    fn without_permissions_there_is_no_shell_and_no_environment() {
        let features = &terms(Permissions::None).config["features"];
        assert_eq!(
            (&features["shell_tool"], &features["hooks"]),
            (&json!(false), &json!(false))
        );
        let params = turn("t", Permissions::None, None, "hi");
        assert_eq!(params["environments"], json!([]));
        let params = turn("t", Permissions::ReadOnly, Some("before"), "/x");
        assert_eq!(params.get("environments"), None);
        assert_eq!(params["input"][1], json!({"type": "text", "text": "/x"}));
    }

    #[test]
    fn only_what_was_asked_for_is_accepted() {
        let edit = terms(Permissions::Edit);
        let opened = |profile: &str, policy: &str, cwd: &str| json!({"activePermissionProfile": {"id": profile}, "approvalPolicy": policy, "cwd": cwd});
        assert!(edit.accepted(&opened(&edit.profile, "never", "/srv/app")));
        assert!(!edit.accepted(&opened(
            &terms(Permissions::ReadOnly).profile,
            "never",
            "/srv/app"
        )));
        assert!(!edit.accepted(&opened(&edit.profile, "on-request", "/srv/app")));
        assert!(!edit.accepted(&opened(&edit.profile, "never", "/srv")));
        assert!(!edit.accepted(&json!({"sandbox": {"type": "dangerFullAccess"}})));
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(title("--a\n title "), Some("--a title".to_owned()));
        assert_eq!(title(" \n"), None);
    }
}
