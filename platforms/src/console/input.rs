//! What is typed: lines from a prompt when the input is a terminal, plain lines otherwise.
//!
//! A line that begins with `/` is a command, `//` sends a line that begins with one slash. Ctrl-C asks to stop the running
//! turn; twice in a row, or Ctrl-D, means leaving. Reading blocks, so it lives on a thread of its own, which ends when
//! the receiver is gone or the input is over.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;

use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Editor};
use tokio::sync::mpsc;

use super::terminal::{PromptTerminal, Terminal, WriterTerminal};

/// Lines typed ahead that are kept; further ones wait in the terminal.
const TYPED_AHEAD: usize = 64;
/// Lines of history kept.
const HISTORY_LINES: usize = 1_000;
/// The screen's width where it does not tell.
const DEFAULT_COLUMNS: usize = 80;

/// One thing the person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleLine {
    /// Something for the model.
    Text(String),
    /// A slash command without its slash, and the rest of the line.
    Command { name: String, args: String },
    /// Ctrl-C: stop the running turn.
    Interrupt,
    /// Ctrl-D, Ctrl-C twice, or the end of the input: leave.
    End,
}

/// How to read.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Shown before each line when the input is a terminal.
    pub prompt: String,
    /// Where lines are remembered, owner-only; `None` = nowhere.
    pub history: Option<PathBuf>,
}

/// The person's side of the terminal.
pub struct ConsoleInput {
    pub lines: mpsc::Receiver<ConsoleLine>,
    /// The screen to give to [`Console::new`](super::Console::new): it goes well with the prompt.
    pub terminal: Box<dyn Terminal>,
}

impl ConsoleInput {
    /// Starts to read: with a prompt if both input and output are a terminal, else plain lines.
    pub fn start(options: InputOptions) -> io::Result<Self> {
        match io::stdin().is_terminal() && io::stdout().is_terminal() {
            true => Self::prompting(options),
            false => Self::reading(io::BufReader::new(io::stdin()), io::stdout()),
        }
    }

    /// Reads plain lines from `input` and shows on `output`.
    pub fn reading(
        input: impl BufRead + Send + 'static,
        output: impl io::Write + Send + 'static,
    ) -> io::Result<Self> {
        let (send, lines) = mpsc::channel(TYPED_AHEAD);
        thread::Builder::new()
            .name("console-input".to_owned())
            .spawn(move || read_plain(input, &send))?;
        Ok(Self {
            lines,
            terminal: Box::new(WriterTerminal(output)),
        })
    }

    fn prompting(options: InputOptions) -> io::Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(io::Error::other)?
            .auto_add_history(true)
            .history_ignore_space(true) // a line that begins with a space is not remembered
            .build();
        let mut editor =
            Editor::<(), DefaultHistory>::with_config(config).map_err(io::Error::other)?;
        if let Some(path) = &options.history {
            load_history(&mut editor, path);
        }
        let columns = editor
            .dimensions()
            .map_or(DEFAULT_COLUMNS, |(columns, _)| usize::from(columns));
        let printer = editor.create_external_printer().map_err(io::Error::other)?;
        let (send, lines) = mpsc::channel(TYPED_AHEAD);
        thread::Builder::new()
            .name("console-input".to_owned())
            .spawn(move || read_prompt(editor, &options, &send))?;
        Ok(Self {
            lines,
            terminal: Box::new(PromptTerminal::new(printer, columns)),
        })
    }
}

/// What a typed line means; `None` = nothing was typed.
pub fn parse_line(line: &str) -> Option<ConsoleLine> {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.trim().is_empty() {
        return None;
    }
    let text = || Some(ConsoleLine::Text(line.to_owned()));
    let Some(rest) = line.strip_prefix('/') else {
        return text();
    };
    if rest.starts_with('/') {
        return Some(ConsoleLine::Text(rest.to_owned()));
    }
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match is_command_name(name) {
        true => Some(ConsoleLine::Command {
            name: name.to_lowercase(),
            args: args.trim().to_owned(),
        }),
        false => text(), // a path, for example: /etc/hosts
    }
}

fn is_command_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(is_part)
}

fn read_plain(mut input: impl BufRead, send: &mpsc::Sender<ConsoleLine>) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match input.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                let line = String::from_utf8_lossy(&bytes);
                if parse_line(&line).is_some_and(|line| send.blocking_send(line).is_err()) {
                    return;
                }
            }
        }
    }
    let _ = send.blocking_send(ConsoleLine::End); // nobody listens any more: then nobody needs to know
}

fn read_prompt(
    mut editor: Editor<(), DefaultHistory>,
    options: &InputOptions,
    send: &mpsc::Sender<ConsoleLine>,
) {
    let mut interrupted = false;
    loop {
        let (line, over) = heard(editor.readline(&options.prompt), interrupted);
        interrupted = line == Some(ConsoleLine::Interrupt);
        if line.is_some_and(|line| send.blocking_send(line).is_err()) || over {
            break;
        }
        if let Some(path) = &options.history {
            save_history(&mut editor, path);
        }
    }
}

/// What one read means, and whether it was the last.
fn heard(read: rustyline::Result<String>, interrupted: bool) -> (Option<ConsoleLine>, bool) {
    match read {
        Ok(line) => (parse_line(&line), false),
        Err(ReadlineError::Interrupted) if !interrupted => (Some(ConsoleLine::Interrupt), false),
        Err(ReadlineError::Signal(_)) => (None, false), // the window changed its size
        Err(_) => (Some(ConsoleLine::End), true),
    }
}

/// History is a convenience: without it the conversation goes on.
fn load_history(editor: &mut Editor<(), DefaultHistory>, path: &Path) {
    if let Err(why) = editor.load_history(path)
        && path.exists()
    {
        tracing::warn!(path = %path.display(), %why, "cannot read the line history");
    }
}

fn save_history(editor: &mut Editor<(), DefaultHistory>, path: &Path) {
    if let Err(why) = editor.append_history(path) {
        tracing::debug!(path = %path.display(), %why, "cannot write the line history");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<ConsoleLine> {
        Some(ConsoleLine::Text(text.to_owned()))
    }

    fn command(name: &str, args: &str) -> Option<ConsoleLine> {
        Some(ConsoleLine::Command {
            name: name.to_owned(),
            args: args.to_owned(),
        })
    }

    #[test]
    fn lines_become_text_or_commands() {
        let rows = [
            ("hello /there\n", text("hello /there")),
            ("  indented", text("  indented")),
            ("", None),
            ("  \r\n", None),
            ("/status", command("status", "")),
            ("/Model  a/b \n", command("model", "a/b")),
            ("/resume_handoff", command("resume_handoff", "")),
            ("//status", text("/status")),
            ("// a comment", text("/ a comment")),
            ("/etc/hosts is what?", text("/etc/hosts is what?")),
            ("/", text("/")),
            ("/ help", text("/ help")),
        ];
        for (line, expected) in rows {
            assert_eq!(parse_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn ctrl_c_asks_once_and_leaves_the_second_time() {
        let (first, over) = heard(Err(ReadlineError::Interrupted), false);
        assert_eq!((first, over), (Some(ConsoleLine::Interrupt), false));
        let (second, over) = heard(Err(ReadlineError::Interrupted), true);
        assert_eq!((second, over), (Some(ConsoleLine::End), true));
    }

    #[test]
    fn ctrl_d_leaves() {
        let read = heard(Err(ReadlineError::Eof), false);
        assert_eq!(read, (Some(ConsoleLine::End), true));
    }

    #[tokio::test]
    async fn plain_input_is_read_line_by_line_until_its_end_whatever_its_bytes() {
        let input = io::Cursor::new(b"hi\n\n/stop\nbad \xff byte".to_vec());
        let mut input = ConsoleInput::reading(input, io::sink()).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = input.lines.recv().await {
            lines.push(Some(line));
        }
        assert_eq!(
            lines,
            [
                text("hi"),
                command("stop", ""),
                text("bad \u{fffd} byte"),
                Some(ConsoleLine::End)
            ]
        );
    }
}
