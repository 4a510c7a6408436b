//! What a turn may do, as the rules its session carries. The program reads rules from the top and the last that matches
//! decides (1.18.33); the session's come after every agent's, so nothing of the person's own files can open them.
//!
//! What the program does not do by itself, checked in `tests/real_opencode.rs`:
//! * its file tools compare paths as text and follow symbolic links, so `ground.rs` looks for links first and what leads
//!   out is denied by name;
//! * `grep` and `glob` are allowed or denied as a whole, never for one path, so they are only offered where nothing
//!   below the working directory has to be hidden;
//! * in a git repository everything of the repository counts as inside, so paths are allowed below the working
//!   directory only.

use serde_json::{Value, json};

use super::ground::Ground;
use crate::Permissions;

/// Never written at `edit`: other programs run what stands there, or take their orders from it.
const GUARDED: &[&str] = &[
    ".git",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".claude",
    ".codex",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".envrc",
];

/// The rules of one level. `ground` is `None` where no file is touched (`none`) or none is confined (`full`).
pub(super) fn rules(permissions: Permissions, ground: Option<&Ground>) -> Value {
    let mut rules = Rules(vec![rule("*", "*", "deny")]);
    match (permissions, ground) {
        (Permissions::Full, _) => {
            rules.all("*", "allow");
            // Nobody is there to answer.
            for asking in ["question", "plan_enter", "plan_exit"] {
                rules.all(asking, "deny");
            }
            // Its helpers inherit this one and no other.
            rules.all("external_directory", "allow");
        }
        (Permissions::ReadOnly, Some(ground)) => rules.looking(ground),
        (Permissions::Edit, Some(ground)) => {
            rules.looking(ground);
            rules.below("edit", ground);
            for name in GUARDED {
                for pattern in [
                    ground.pattern(name),
                    ground.pattern(&format!("{name}/*")),
                    ground.pattern(&format!("*/{name}")),
                    ground.pattern(&format!("*/{name}/*")),
                ] {
                    rules.0.push(rule("edit", &pattern, "deny"));
                }
            }
        }
        (Permissions::None | Permissions::ReadOnly | Permissions::Edit, _) => {}
    }
    Value::Array(rules.0)
}

struct Rules(Vec<Value>);

impl Rules {
    fn all(&mut self, tool: &str, action: &str) {
        self.0.push(rule(tool, "*", action));
    }

    fn looking(&mut self, ground: &Ground) {
        self.below("read", ground);
        self.all("todowrite", "allow");
        if ground.searchable {
            self.all("glob", "allow");
            self.all("grep", "allow");
        }
        // A loop of equal calls is bounded by the attempt's deadline; denying it would end the turn.
        self.all("doom_loop", "allow");
        self.all("external_directory", "deny");
    }

    /// Allows a tool below the working directory, but for what is hidden there.
    fn below(&mut self, tool: &str, ground: &Ground) {
        for pattern in ground.inside() {
            self.0.push(rule(tool, &pattern, "allow"));
        }
        for pattern in ["..", "../*"] {
            self.0.push(rule(tool, pattern, "deny"));
        }
        for pattern in &ground.denied {
            self.0.push(rule(tool, pattern, "deny"));
        }
    }
}

fn rule(permission: &str, pattern: &str, action: &str) -> Value {
    json!({"permission": permission, "pattern": pattern, "action": action})
}

/// Whether a session's rules already end with these: then they decide.
pub(super) fn stand(session: &Value, rules: &Value) -> bool {
    match (session, rules) {
        (Value::Array(known), Value::Array(rules)) => known.ends_with(rules),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: &Value) -> String {
        let part = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
        let line = |rule: &Value| {
            let parts = ["permission", "pattern", "action"].map(|key| part(rule, key));
            parts.join(" ")
        };
        let lines: Vec<String> = rules.as_array().unwrap().iter().map(line).collect();
        lines.join("\n")
    }

    fn ground(below: &str, searchable: bool, denied: &[&str]) -> Ground {
        Ground {
            below: below.to_owned(),
            searchable,
            denied: denied.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn none_has_nothing_and_full_everything_but_questions() {
        assert_eq!(shown(&rules(Permissions::None, None)), "* * deny");
        insta::assert_snapshot!(shown(&rules(Permissions::Full, None)), @r"
        * * deny
        * * allow
        question * deny
        plan_enter * deny
        plan_exit * deny
        external_directory * allow
        ");
    }

    #[test]
    fn read_only_looks_inside_the_working_directory() {
        insta::assert_snapshot!(shown(&rules(Permissions::ReadOnly, Some(&ground("", true, &["out", "out/*"])))), @r"
        * * deny
        read * allow
        read .. deny
        read ../* deny
        read out deny
        read out/* deny
        todowrite * allow
        glob * allow
        grep * allow
        doom_loop * allow
        external_directory * deny
        ");
    }

    #[test]
    fn below_a_repository_only_the_working_directory_is_open_and_nothing_is_searched() {
        let rules = shown(&rules(
            Permissions::Edit,
            Some(&ground("src/app", false, &[])),
        ));
        assert!(
            rules.contains("\nread src/app allow\nread src/app/* allow\n"),
            "{rules}"
        );
        assert!(rules.contains("\nedit src/app/* allow\n"));
        assert!(rules.contains("\nedit src/app/.git/* deny\n"));
        assert!(rules.contains("\nedit src/app/*/opencode.json deny\n"));
        assert!(!rules.contains("grep") && !rules.contains("bash") && !rules.contains("* * allow"));
    }

    #[test]
    fn rules_stand_when_they_are_the_last_ones() {
        let ours = rules(Permissions::None, None);
        assert!(stand(&ours, &ours));
        let before = json!([{"permission": "*", "pattern": "*", "action": "allow"}, ours[0]]);
        assert!(stand(&before, &ours));
        let after = json!([ours[0], {"permission": "*", "pattern": "*", "action": "allow"}]);
        assert!(!stand(&after, &ours));
        assert!(!stand(&Value::Null, &ours));
    }
}
