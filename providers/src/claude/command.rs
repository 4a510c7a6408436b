//! The command line and the lines written to stdin. Everything a person can influence (title, model, paths) is either one
//! `--name=value` argument or JSON, so none of it can become an option.
//!
//! Permissions (checked with the real program, version 2.1.332, in `tests/real_claude.rs`):
//! * `--restricted` confines the file tools to the working directory, symbolic links included, and removes tools that run
//!   code; files mentioned as `@path` in a prompt are confined as well;
//! * `--safe-mode`, an empty `--setting-sources` and `--strict-mcp-config` keep the person's settings, hooks, CLAUDE.md
//!   and MCP servers out;
//! * deny rules in `--settings` hide folders inside the working directory; for `none` they also stop `@path`, which
//!   otherwise is read without any tool.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gateway_core::ids::{ModelId, ProviderSessionId};
use serde_json::{Value, json};

use crate::Permissions;

/// The tools that only look, and the program's own todo list (which touches nothing but its folder).
const LOOKING: &str = "Read,Glob,Grep,TodoWrite,TaskCreate,TaskUpdate,TaskList,TaskGet";
/// The tools that also change files.
const EDITING: &str =
    "Read,Glob,Grep,TodoWrite,TaskCreate,TaskUpdate,TaskList,TaskGet,Edit,Write,NotebookEdit";
/// Longest title passed on, in characters.
const TITLE_CHARS: usize = 200;

/// Which session a run works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opening {
    /// A new one with this id.
    New(ProviderSessionId),
    Resume(ProviderSessionId),
}

/// One run of the program.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) model: &'a ModelId,
    pub(super) opening: &'a Opening,
    pub(super) title: &'a str,
    pub(super) permissions: Permissions,
    pub(super) hidden: &'a [PathBuf],
}

/// The arguments of one run.
pub(super) fn arguments(run: &Run<'_>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        "--setting-sources=",
        "--strict-mcp-config",
        "--safe-mode",
        "--disable-slash-commands",
        "--permission-prompts=none",
    ]
    .map(OsString::from)
    .into();
    arguments.push(format!("--model={}", run.model).into());
    arguments.extend(session_arguments(run.opening, run.title));
    arguments.extend(permission_arguments(run.permissions, run.hidden));
    arguments
}

fn session_arguments(opening: &Opening, title: &str) -> Vec<OsString> {
    match opening {
        Opening::Resume(id) => vec![format!("--resume={id}").into()],
        Opening::New(id) => {
            let title = one_line(title);
            let name = (!title.is_empty()).then(|| format!("--name={title}").into());
            [Some(format!("--session-id={id}").into()), name]
                .into_iter()
                .flatten()
                .collect()
        }
    }
}

fn one_line(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").chars().take(TITLE_CHARS).collect()
}

fn permission_arguments(permissions: Permissions, hidden: &[PathBuf]) -> Vec<OsString> {
    let confined = |mode: &str, tools: &str, deny_all: bool| {
        vec![
            "--restricted".into(),
            format!("--permission-mode={mode}").into(),
            format!("--settings={}", deny_rules(hidden, deny_all)).into(),
            "--tools".into(),
            tools.into(),
        ]
    };
    match permissions {
        Permissions::None => confined("dontAsk", "", true),
        Permissions::ReadOnly => {
            let mut arguments = confined("dontAsk", LOOKING, false);
            arguments.extend(["--allowedTools".into(), LOOKING.into()]);
            arguments
        }
        Permissions::Edit => confined("acceptEdits", EDITING, false),
        Permissions::Full => vec!["--permission-mode=bypassPermissions".into()],
    }
}

fn deny_rules(hidden: &[PathBuf], everything: bool) -> Value {
    let mut rules: Vec<String> = Vec::new();
    if everything {
        rules.extend(["Read".to_owned(), "Edit".to_owned()]);
    }
    for path in hidden {
        let pattern = as_pattern(path);
        for tool in ["Read", "Edit"] {
            rules.push(format!("{tool}(/{pattern})"));
            rules.push(format!("{tool}(/{pattern}/**)"));
        }
    }
    json!({"permissions": {"deny": rules}})
}

/// The path as a pattern: whatever has a meaning there becomes `?`, which matches any one character.
fn as_pattern(path: &Path) -> String {
    path.to_string_lossy()
        .trim_end_matches('/')
        .chars()
        .map(|c| {
            if "*?[]{}()!\\\u{fffd}".contains(c) {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// The line that gives the program its user message. The prompt is a block of its own, word for word.
pub(super) fn user_message(context: Option<&str>, prompt: &str) -> String {
    let mut blocks: Vec<Value> = Vec::new();
    blocks.extend(context.map(text_block));
    blocks.push(text_block(prompt));
    if prompt.trim_start().starts_with('/') {
        // 2.1.332 takes a last block that starts with a slash for a command of its own and answers it without the
        // model; a blank block behind it (dropped before the request) makes it plain text.
        blocks.push(text_block(" "));
    }
    let message = json!({"type": "user", "message": {"role": "user", "content": blocks}});
    format!("{message}\n")
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The line that asks the program to give up the running turn.
pub(super) fn interrupt_request() -> String {
    let request = json!({
        "type": "control_request",
        "request_id": "stop",
        "request": {"subtype": "interrupt"},
    });
    format!("{request}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(opening: Opening, permissions: Permissions, title: &str) -> String {
        let run = Run {
            model: &"opus".into(),
            opening: &opening,
            title,
            permissions,
            hidden: &["/home/ann/.baton".into(), "/srv/a (b)*".into()],
        };
        let shown = |argument: OsString| match argument.into_string().unwrap() {
            empty if empty.is_empty() => "''".to_owned(),
            full => full,
        };
        arguments(&run)
            .into_iter()
            .map(shown)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_new_session_without_tools() {
        insta::assert_snapshot!(line(Opening::New("U".into()), Permissions::None, "--a\ntitle "), @r#"
        -p
        --input-format=stream-json
        --output-format=stream-json
        --verbose
        --include-partial-messages
        --setting-sources=
        --strict-mcp-config
        --safe-mode
        --disable-slash-commands
        --permission-prompts=none
        --model=opus
        --session-id=U
        --name=--a title
        --restricted
        --permission-mode=dontAsk
        --settings={"permissions":{"deny":["Read","Edit","Read(//home/ann/.baton)","Read(//home/ann/.baton/**)","Edit(//home/ann/.baton)","Edit(//home/ann/.baton/**)","Read(//srv/a ?b??)","Read(//srv/a ?b??/**)","Edit(//srv/a ?b??)","Edit(//srv/a ?b??/**)"]}}
        --tools
        ''
        "#);
    }

    #[test]
    fn a_resumed_session_that_may_read() {
        insta::assert_snapshot!(line(Opening::Resume("U".into()), Permissions::ReadOnly, "t"), @r#"
        -p
        --input-format=stream-json
        --output-format=stream-json
        --verbose
        --include-partial-messages
        --setting-sources=
        --strict-mcp-config
        --safe-mode
        --disable-slash-commands
        --permission-prompts=none
        --model=opus
        --resume=U
        --restricted
        --permission-mode=dontAsk
        --settings={"permissions":{"deny":["Read(//home/ann/.baton)","Read(//home/ann/.baton/**)","Edit(//home/ann/.baton)","Edit(//home/ann/.baton/**)","Read(//srv/a ?b??)","Read(//srv/a ?b??/**)","Edit(//srv/a ?b??)","Edit(//srv/a ?b??/**)"]}}
        --tools
        Read,Glob,Grep,TodoWrite,TaskCreate,TaskUpdate,TaskList,TaskGet
        --allowedTools
        Read,Glob,Grep,TodoWrite,TaskCreate,TaskUpdate,TaskList,TaskGet
        "#);
    }

    #[test]
    fn edit_and_full_differ_in_their_last_arguments() {
        let edit = line(Opening::Resume("U".into()), Permissions::Edit, "");
        assert!(edit.contains("--restricted\n--permission-mode=acceptEdits"));
        assert!(edit.ends_with("NotebookEdit") && !edit.contains("Bash"));
        let full = line(Opening::Resume("U".into()), Permissions::Full, "");
        assert!(full.ends_with("--permission-mode=bypassPermissions"));
    }

    #[test]
    fn a_prompt_that_looks_like_a_command_gets_a_blank_block_behind_it() {
        assert_eq!(
            user_message(Some("before"), "/compact"),
            "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"before\"},\
             {\"type\":\"text\",\"text\":\"/compact\"},{\"type\":\"text\",\"text\":\" \"}]}}\n"
        );
    }
}
