//! `--watch`: the table again and again. On a terminal it is redrawn in place every second on a screen of its own, and the
//! terminal is as it was afterwards; elsewhere (a dumb terminal too) a new block (with `--json` a new line) comes with every change.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use commands::usage::room;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Answers, Desk, terminal_size};
use crate::cli::answer::Answer;
use crate::cli::colour;
use crate::cli::outcome::Failure;
use crate::usage::Evidence;

const EVERY: Duration = Duration::from_secs(1);
/// How often somebody may be asked; whether it is due is another question.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// Shows until interrupted.
pub(super) async fn run(desk: &Desk, answer: &mut Answer) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let screen = (can_redraw() && !answer.is_json()).then(Screen::enter);
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asking = Box::pin(desk.ask());
    let mut waiting = true;
    let mut ask_again = Instant::now() + ASK_EVERY;
    let mut told = Answers::new();
    let mut shown = None;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            answers = &mut asking, if waiting => {
                waiting = false;
                told = answers;
            }
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        }
        if !waiting && Instant::now() >= ask_again {
            ask_again = Instant::now() + ASK_EVERY;
            asking.set(desk.ask());
            waiting = true;
        }
        let evidence = desk.registry.current(desk.now()).await;
        match &screen {
            Some(screen) => screen.draw(desk, &evidence, &told)?,
            None => {
                let now = Mark::of(desk, &evidence, &told);
                if shown.as_ref() != Some(&now) {
                    if shown.is_some() && !answer.is_json() {
                        answer.line("")?;
                    }
                    desk.show(&evidence, &told, None, answer)?;
                    shown = Some(now);
                }
            }
        }
    }
}

/// Whether stdout is a terminal that understands the codes of [`Screen`]; one that is called dumb, or nothing, does not.
fn can_redraw() -> bool {
    io::stdout().is_terminal() && understands_codes(std::env::var_os("TERM").as_deref())
}

fn understands_codes(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// What makes one look differ from another; ages and distances do not.
#[derive(PartialEq)]
struct Mark {
    revision: u64,
    verdicts: Vec<&'static str>,
    remarks: Vec<String>,
}

impl Mark {
    fn of(desk: &Desk, evidence: &Evidence, told: &Answers) -> Self {
        let now = desk.now();
        let entries = desk.entries(evidence);
        Self {
            revision: evidence.revision,
            verdicts: entries
                .iter()
                .map(|entry| room(entry, now).word())
                .collect(),
            remarks: super::sheet::remarks(evidence, told),
        }
    }
}

/// The terminal's other screen, without a cursor; left when dropped, however the watch ends.
struct Screen;

impl Screen {
    fn enter() -> Self {
        write("\u{1b}[?1049h\u{1b}[?25l");
        Self
    }

    fn draw(&self, desk: &Desk, evidence: &Evidence, told: &Answers) -> io::Result<()> {
        let (width, height) = terminal_size().unwrap_or((80, 24));
        let text = desk.text(evidence, told, Some(width), colour::on_stdout());
        let mut out = io::stdout().lock();
        out.write_all(b"\x1b[H")?;
        out.write_all(fit(&text, height).as_bytes())?;
        out.write_all(b"\x1b[J")?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write("\u{1b}[?25h\u{1b}[?1049l");
    }
}

/// A terminal that is gone is restored by nobody.
fn write(codes: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(codes.as_bytes()).and_then(|()| out.flush());
}

/// As many lines as there are, each cleared to its end; what does not fit is counted.
fn fit(text: &str, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = height.saturating_sub(1).max(1);
    let mut shown: Vec<String> = lines.iter().take(room).map(ToString::to_string).collect();
    if lines.len() > room {
        shown.truncate(room.saturating_sub(1));
        shown.push(format!(
            "… {} more lines; make the window taller, or leave out --watch",
            lines.len() - shown.len()
        ));
    }
    shown
        .iter()
        .map(|line| format!("{line}\u{1b}[K\r\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_gets_no_codes() {
        for (term, codes) in [
            (Some("xterm"), true),
            (Some("dumb"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(understands_codes(term.map(OsStr::new)), codes, "{term:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let text = "a\nb\nc\nd";
        assert_eq!(fit(text, 24).matches("\r\n").count(), 4);
        let short = fit(text, 4);
        assert!(
            short.starts_with("a\u{1b}[K\r\nb\u{1b}[K\r\n… 2 more lines"),
            "{short:?}"
        );
        assert_eq!(fit(text, 0).matches("\r\n").count(), 1);
    }
}
