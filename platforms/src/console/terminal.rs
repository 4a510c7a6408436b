//! Where the console's text goes: a plain writer, or the screen a prompt lives on.

use std::io::{self, Write};

use rustyline::ExternalPrinter;

/// A place for text. Fragments come in order; `flush` ends one op.
pub trait Terminal: Send {
    fn write(&mut self, text: &str) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
}

/// Writes as it comes: pipes, files, tests.
#[derive(Debug)]
pub struct WriterTerminal<W>(pub W);

impl<W: Write + Send> Terminal for WriterTerminal<W> {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints above a prompt. The printer takes whole lines only (it ends an unfinished one itself), so text is held until
/// its line ends; a line wider than the screen is handed over at its last space, where the screen would wrap it anyway.
pub(super) struct PromptTerminal<P> {
    printer: P,
    columns: usize,
    held: String,
}

impl<P: ExternalPrinter + Send> PromptTerminal<P> {
    pub(super) fn new(printer: P, columns: usize) -> Self {
        Self {
            printer,
            columns: columns.max(20),
            held: String::new(),
        }
    }

    fn print(&mut self, text: String) -> io::Result<()> {
        self.printer.print(text).map_err(io::Error::other)
    }
}

impl<P: ExternalPrinter + Send> Terminal for PromptTerminal<P> {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.held.push_str(text);
        let ready = take_lines(&mut self.held, self.columns);
        match ready.is_empty() {
            true => Ok(()),
            false => self.print(ready),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // an unfinished line waits for its end: printing it would break it there
    }
}

/// Takes the finished lines off the front, and of an unfinished one what the screen would wrap; each ends in a line feed.
fn take_lines(held: &mut String, columns: usize) -> String {
    let rest_at = held.rfind('\n').map_or(0, |at| at + 1);
    let rest = held.split_off(rest_at);
    let mut ready = std::mem::replace(held, rest);
    while let Some(at) = wrap_at(held, columns) {
        let rest = held.split_off(at);
        ready.push_str(held.trim_end_matches(' '));
        ready.push('\n');
        *held = rest.trim_start_matches(' ').to_owned();
    }
    ready
}

/// The byte position behind the last space of the first screen line; `None` = the text is not longer than one, or has
/// no space to break at.
fn wrap_at(line: &str, columns: usize) -> Option<usize> {
    line.char_indices().nth(columns)?;
    let spaces = line
        .char_indices()
        .take(columns + 1)
        .filter(|(_, c)| *c == ' ');
    spaces.last().map(|(at, _)| at + 1).filter(|at| *at > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Prints(Vec<String>);

    impl ExternalPrinter for Prints {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            self.0.push(text);
            Ok(())
        }
    }

    #[test]
    fn above_a_prompt_only_whole_lines_are_printed() {
        let mut terminal = PromptTerminal::new(Prints::default(), 20);
        for delta in ["Hel", "lo\nand ", "more\n", "tail"] {
            terminal.write(delta).unwrap();
        }
        assert_eq!(terminal.printer.0, ["Hello\n", "and more\n"]);
        assert_eq!(terminal.held, "tail");
    }

    #[test]
    fn a_long_line_is_handed_over_where_the_screen_would_wrap() {
        let mut held = "a paragraph that is wider than twenty columns and goes on".to_owned();
        let ready = take_lines(&mut held, 20);
        assert_eq!(ready, "a paragraph that is\nwider than twenty\n");
        assert_eq!(held, "columns and goes on");
    }

    #[test]
    fn a_line_without_a_space_waits_for_its_end() {
        let mut held = "x".repeat(100);
        assert_eq!(take_lines(&mut held, 20), "");
        held.push('\n');
        assert_eq!(take_lines(&mut held, 20).len(), 101);
    }
}
