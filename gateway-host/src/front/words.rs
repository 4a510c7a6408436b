//! What a message to the bot means: most are for the model, but `/name` of a known command is that command (in threads of
//! Slack there is no other way to give one), and `/pair` brings the owner's code. Pure.

use commands::surface::{BATON, slack};
use platforms::adapter::Content;

/// What was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// For the model.
    Text(String),
    Command {
        name: String,
        args: String,
    },
    Press {
        custom_id: String,
    },
    /// A pairing code.
    Pair(String),
}

/// Reads what was sent. `prefix` = what stands before the names of our commands there, `brought` = commands of plugins.
pub fn read(content: &Content, prefix: &str, brought: &[&str]) -> Meant {
    match content {
        Content::Text { text, .. } => of_text(text, prefix, brought),
        Content::Command { name, args } => Meant::Command {
            name: name.clone(),
            args: args.clone(),
        },
        Content::Press { custom_id } => Meant::Press {
            custom_id: custom_id.clone(),
        },
    }
}

fn of_text(text: &str, prefix: &str, brought: &[&str]) -> Meant {
    let whole = || Meant::Text(text.to_owned());
    let Some(line) = text.trim().strip_prefix('/') else {
        return whole();
    };
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if name.eq_ignore_ascii_case("pair") {
        return Meant::Pair(args.trim().to_owned());
    }
    let (name, args) = match name.eq_ignore_ascii_case(BATON) {
        true => slack::behind_baton(args),
        false => (name.strip_prefix(prefix).unwrap_or(name), args),
    };
    let ours = commands::find(name).map(|command| command.spec.name);
    let theirs = || brought.iter().find(|one| one.eq_ignore_ascii_case(name));
    match ours.or_else(|| theirs().copied()) {
        Some(name) => Meant::Command {
            name: name.to_owned(),
            args: args.trim().to_owned(),
        },
        None => whole(), // a path, a fraction, another bot's command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_command_is_one() {
        let command = |name: &str, args: &str| Meant::Command {
            name: name.to_owned(),
            args: args.to_owned(),
        };
        let text = |text: &str| Meant::Text(text.to_owned());
        let rows = [
            ("/usage", command("usage", "")),
            (" /Model  sub/m ", command("model", "sub/m")),
            ("/resume_handoff", command("resume-handoff", "")),
            ("/b-usage", command("usage", "")),
            ("/baton usage", command("usage", "")),
            ("/Deploy now", command("deploy", "now")),
            ("/baton", command("help", "")),
            ("/baton nonsense", text("/baton nonsense")),
            ("/etc/passwd is what?", text("/etc/passwd is what?")),
            ("what does /usage do", text("what does /usage do")),
            ("/", text("/")),
            ("", text("")),
            ("/pair abcd-efgh", Meant::Pair("abcd-efgh".to_owned())),
            ("/pair", Meant::Pair(String::new())),
            ("/pairs of shoes", text("/pairs of shoes")),
        ];
        for (said, want) in rows {
            assert_eq!(of_text(said, "b-", &["deploy"]), want, "{said:?}");
        }
    }
}
