//! The one place that writes to stdout: answers, plain or as JSON, and nothing else.

use std::io::{self, Write};

use serde::Serialize;

/// The answer of a command.
pub(crate) struct Answer {
    /// Whether `--json` was given.
    json: bool,
    out: io::Stdout,
}

impl Answer {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            out: io::stdout(),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a line and sends it off.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        let mut out = self.out.lock();
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.line(&text)
    }

    /// Writes a text as it is: a question that leaves the cursor behind it, lines that bring their own breaks.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        let mut out = self.out.lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
