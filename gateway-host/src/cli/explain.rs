//! `baton explain`: JSON lines in, JSON lines out. One line out per line in, whatever comes in; each is sent off at once.

use std::io::{self, BufRead, Read};

use serde_json::{Value, json};

use super::answer::Answer;
use super::args::Topic;
use super::outcome::{Exit, Failure};

/// Answers one line; `false` = the answer is an error.
type Explain = fn(&str) -> (String, bool);

/// The longest line that is looked at; a longer one is answered with an error and not kept.
const LONGEST: u64 = 256 * 1024 * 1024;

pub(crate) fn run(topic: Topic, answer: &mut Answer) -> Result<Exit, Failure> {
    let explain: Explain = match topic {
        Topic::Decision => gateway_core::explain::decision_line,
        Topic::Failure => gateway_core::explain::failure_line,
        Topic::Usage => gateway_core::explain::usage_line,
    };
    let any_error = stream(&mut io::stdin().lock(), explain, |line| answer.line(line))?;
    Ok(if any_error { Exit::Failed } else { Exit::Done })
}

/// Answers every line of `input`; whether any answer was an error.
fn stream(
    input: &mut impl BufRead,
    explain: Explain,
    mut tell: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<bool> {
    let mut any_error = false;
    while let Some(line) = next_line(input)? {
        let (answer, is_good) = match line {
            Line::Text(text) => explain(&text),
            Line::Bad { id, why } => (json!({"id": id, "error": why}).to_string(), false),
        };
        any_error |= !is_good;
        tell(&answer)?;
    }
    Ok(any_error)
}

enum Line {
    Text(String),
    /// Not to be understood; the id is what could still be read of it.
    Bad {
        id: Value,
        why: &'static str,
    },
}

/// The next line without its break; `None` = the input has ended.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    if input.take(LONGEST).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    } else if bytes.len() as u64 == LONGEST {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::Bad {
            id: Value::Null,
            why: "the line is too long (more than 256 MiB)",
        }));
    }
    Ok(Some(match String::from_utf8(bytes) {
        Ok(text) => Line::Text(text),
        Err(error) => Line::Bad {
            id: id_of(&String::from_utf8_lossy(error.as_bytes())),
            why: "the line is not UTF-8",
        },
    }))
}

fn id_of(line: &str) -> Value {
    let value: Option<Value> = serde_json::from_str(line).ok();
    value
        .and_then(|value| value.get("id").cloned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_out_per_line_in_whatever_comes_in() {
        fn echo(line: &str) -> (String, bool) {
            (format!("<{line}>"), line != "bad")
        }
        let answers = |input: &[u8]| {
            let mut lines = Vec::new();
            let any_error = stream(&mut &*input, echo, |line| {
                lines.push(line.to_owned());
                Ok(())
            });
            (lines, any_error.unwrap())
        };
        assert_eq!(answers(b""), (vec![], false));
        assert_eq!(
            answers(b"a\r\n\nb"),
            (vec!["<a>".into(), "<>".into(), "<b>".into()], false)
        );
        assert!(answers(b"a\nbad\nb\n").1);
        let (lines, any_error) = answers(b"{\"id\": 7, \"x\": \"\xff\"}\n\xff\n");
        assert!(any_error);
        assert_eq!(
            lines,
            [
                r#"{"id":7,"error":"the line is not UTF-8"}"#,
                r#"{"id":null,"error":"the line is not UTF-8"}"#
            ]
        );
    }
}
