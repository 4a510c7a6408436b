//! Many plugins' answers to one, and what no plugin may say taken out. Pure. Skips are a union, the first status line
//! and the first document win, texts append, all in the order of the configuration. What is out of bounds is dropped or
//! trimmed and reported; it never fails the turn. A text and the documents it claims are taken together or not at all:
//! half of it would lose something.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use gateway_core::handoff::render::REQUEST_PLACEHOLDER;
use gateway_core::handoff::{Handoff, HandoffState, PAYLOAD_VERSION};
use gateway_core::ids::HandoffId;
use jiff::Timestamp;
use plugin_api::{advice, prologue, terminal, walk};

use super::facts::{
    PrologueAdvice, PrologueFacts, Skip, TerminalAdvice, TerminalFacts, WalkAdvice, WalkFacts,
};

/// The longest status or notice line, in characters.
const LINE_CHARS: usize = 500;
const NOTICE_LINES: usize = 20;
const APPEND_CHARS: usize = 2_000;
/// The longest injected text in bytes, the request not counted.
const INJECT_BYTES: usize = 256 * 1024;

/// Something a plugin said that was dropped or trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misbehaviour {
    pub(crate) plugin: String,
    pub(crate) what: String,
}

/// One plugin's answer, by the plugin's name.
pub(crate) type Said<T> = (String, T);

/// Merges the answers to `prologue`.
pub(crate) fn prologue(
    answers: Vec<Said<prologue::PrologueAdvice>>,
    facts: &PrologueFacts,
) -> (PrologueAdvice, Vec<Misbehaviour>) {
    let mut merged = PrologueAdvice::default();
    let mut bad = Vec::new();
    let positions = 0..facts.turn.sheet.positions();
    for (plugin, answer) in answers {
        let mut notes = Notes::of(&plugin, &mut bad);
        add_skips(
            &mut merged.skips,
            &answer.skips,
            positions.clone(),
            &mut notes,
        );
        merged.gated |= answer.gated;
        first_line(&mut merged.status_line, answer.status_line, &mut notes);
        carry(
            &mut merged,
            answer.inject,
            &answer.claims,
            facts,
            &mut notes,
        );
    }
    (merged, bad)
}

/// Merges the answers to `before_walk`.
pub(crate) fn walk(
    answers: Vec<Said<walk::WalkAdvice>>,
    facts: &WalkFacts,
) -> (WalkAdvice, Vec<Misbehaviour>) {
    let mut merged = WalkAdvice::default();
    let mut bad = Vec::new();
    let positions = facts.cursor..facts.turn.sheet.positions();
    for (plugin, answer) in answers {
        let mut notes = Notes::of(&plugin, &mut bad);
        add_skips(
            &mut merged.skips,
            &answer.skips,
            positions.clone(),
            &mut notes,
        );
        merged.gated |= answer.gated;
        first_line(&mut merged.status_line, answer.status_line, &mut notes);
    }
    (merged, bad)
}

/// Merges the answers to `on_terminal`. `complete` is the caller's to set.
pub(crate) fn terminal(
    answers: Vec<Said<terminal::TerminalAdvice>>,
    facts: &TerminalFacts,
) -> (TerminalAdvice, Vec<Misbehaviour>) {
    let mut merged = TerminalAdvice::default();
    let mut bad = Vec::new();
    for (plugin, answer) in answers {
        let mut notes = Notes::of(&plugin, &mut bad);
        if let Some(json) = answer.seal {
            match document(&json, facts) {
                Err(why) => notes.say(why),
                Ok(_) if merged.seal.is_some() => notes.say("a second document to seal"),
                Ok(handoff) => merged.seal = Some(handoff),
            }
        }
        for text in answer.notice {
            if merged.notice.len() >= NOTICE_LINES {
                notes.say("too many notice lines");
                break;
            }
            merged.notice.extend(one_line(&text, &mut notes));
        }
        if let Some(text) = answer.append {
            let all = match merged.append.take() {
                None => text,
                Some(before) => format!("{before}\n\n{text}"),
            };
            merged.append = Some(paragraph(&all, &mut notes));
        }
    }
    (merged, bad)
}

/// What [`prologue`] would take out of one answer about a chain without documents; for the conformance kit.
pub(crate) fn prologue_faults(answer: prologue::PrologueAdvice, positions: usize) -> Vec<String> {
    let mut bad = Vec::new();
    let mut notes = Notes::of("", &mut bad);
    add_skips(&mut Vec::new(), &answer.skips, 0..positions, &mut notes);
    first_line(&mut None, answer.status_line, &mut notes);
    if !answer.claims.is_empty() {
        notes.say("a claim of a document that is not armed here");
    }
    if answer.inject.is_some_and(|text| text.len() > INJECT_BYTES) {
        notes.say("a text to inject of more than 256 KiB");
    }
    bad.into_iter().map(|bad| bad.what).collect()
}

/// What [`walk`] would take out of one answer; for the conformance kit.
pub(crate) fn walk_faults(answer: walk::WalkAdvice, allowed: Range<usize>) -> Vec<String> {
    let mut bad = Vec::new();
    let mut notes = Notes::of("", &mut bad);
    add_skips(&mut Vec::new(), &answer.skips, allowed, &mut notes);
    first_line(&mut None, answer.status_line, &mut notes);
    bad.into_iter().map(|bad| bad.what).collect()
}

pub(super) struct Notes<'a> {
    plugin: &'a str,
    all: &'a mut Vec<Misbehaviour>,
}

impl<'a> Notes<'a> {
    pub(super) fn of(plugin: &'a str, all: &'a mut Vec<Misbehaviour>) -> Self {
        Self { plugin, all }
    }

    pub(super) fn say(&mut self, what: impl Into<String>) {
        self.all.push(Misbehaviour {
            plugin: self.plugin.to_owned(),
            what: what.into(),
        });
    }
}

fn add_skips(
    merged: &mut Vec<Skip>,
    said: &[advice::Skip],
    allowed: Range<usize>,
    notes: &mut Notes<'_>,
) {
    // A chain can be thousands of entries long: looked up by position, never searched.
    let known: HashMap<usize, usize> = merged.iter().map(|skip| skip.position).zip(0..).collect();
    let mut own = HashSet::new();
    let mut dropped = 0usize;
    for skip in said {
        let position = skip.position as usize;
        if !allowed.contains(&position) || !own.insert(position) {
            dropped += 1;
            continue;
        }
        let until = skip
            .until_ms
            .into_option()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        match known.get(&position).and_then(|at| merged.get_mut(*at)) {
            // Two plugins know it spent: it is spent until the later instant, if both are known.
            Some(known) => known.until = known.until.max(until),
            None => merged.push(Skip { position, until }),
        }
    }
    merged.sort_by_key(|skip| skip.position);
    if dropped > 0 {
        notes.say(format!("{dropped} skips out of range or given twice"));
    }
}

fn first_line(merged: &mut Option<String>, said: Option<String>, notes: &mut Notes<'_>) {
    let Some(text) = said else { return };
    let line = one_line(&text, notes);
    if merged.is_none() {
        *merged = line;
    }
}

/// The text as one line without control characters; `None` = nothing is left.
pub(super) fn one_line(text: &str, notes: &mut Notes<'_>) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    if lines.next().is_some() {
        notes.say("several lines where one is allowed");
    }
    let clean: String = first.chars().filter(|c| !c.is_control()).collect();
    if clean.len() != first.len() {
        notes.say("control characters in a line");
    }
    let cut: String = clean.chars().take(LINE_CHARS).collect();
    if cut.len() != clean.len() {
        notes.say(format!("a line of more than {LINE_CHARS} characters"));
    }
    Some(cut).filter(|line| !line.is_empty())
}

pub(super) fn paragraph(text: &str, notes: &mut Notes<'_>) -> String {
    let clean: String = text
        .chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .collect();
    if clean.len() != text.len() {
        notes.say("control characters in a text");
    }
    let cut: String = clean.chars().take(APPEND_CHARS).collect();
    if cut.len() != clean.len() {
        notes.say(format!("a text of more than {APPEND_CHARS} characters"));
    }
    cut
}

/// Takes a text and the documents it carries, or neither.
fn carry(
    merged: &mut PrologueAdvice,
    text: Option<String>,
    ids: &[String],
    facts: &PrologueFacts,
    notes: &mut Notes<'_>,
) {
    let claims = claims(ids, &merged.claims, facts, notes);
    let Some(text) = text else {
        if !claims.is_empty() {
            notes.say("claimed documents without a text that carries them");
        }
        return;
    };
    if text.len() > INJECT_BYTES {
        return notes.say("a text to inject of more than 256 KiB");
    }
    let places = text.matches(REQUEST_PLACEHOLDER).count();
    let requests = claims.iter().filter(|(_, request)| *request).count();
    if places != requests || claims.len() != ids.len() {
        return notes.say("a text to inject that does not fit the documents it claims");
    }
    merged.claims.extend(claims.into_iter().map(|(id, _)| id));
    merged.inject = Some(match merged.inject.take() {
        None => text,
        Some(before) => format!("{before}\n\n{text}"),
    });
}

/// The claims that hold, and whether each document has a request to fill in.
fn claims(
    said: &[String],
    taken: &[HandoffId],
    facts: &PrologueFacts,
    notes: &mut Notes<'_>,
) -> Vec<(HandoffId, bool)> {
    let mut claims: Vec<(HandoffId, bool)> = Vec::new();
    for id in said {
        let armed = facts
            .documents
            .iter()
            .find(|stored| stored.handoff.id.as_str() == id && stored.state == HandoffState::Armed);
        let Some(stored) = armed else {
            notes.say("a claim of a document that is not armed here");
            continue;
        };
        let id = &stored.handoff.id;
        if taken.contains(id) || claims.iter().any(|(known, _)| known == id) {
            notes.say("a document claimed twice");
            continue;
        }
        claims.push((id.clone(), !stored.handoff.request.is_empty()));
    }
    claims
}

/// A document is taken only if it is this turn's, whole: the request verbatim, under the id it was given.
fn document(json: &str, facts: &TerminalFacts) -> Result<Handoff, String> {
    let handoff: Handoff = serde_json::from_str(json)
        .map_err(|error| format!("a document that cannot be read: {error}"))?;
    let row = &facts.row;
    let checks = [
        ("version", handoff.version == PAYLOAD_VERSION),
        ("id", handoff.id == facts.handoff),
        ("turn", handoff.turn == row.turn),
        ("profile", handoff.profile == row.profile),
        ("session", handoff.session == row.session),
        ("conversation", handoff.conversation == row.conversation),
        ("request", handoff.request.contains(&row.request)),
    ];
    match checks.iter().find(|(_, holds)| !holds) {
        Some((field, _)) => Err(format!("a document with the wrong {field}")),
        None => Ok(handoff),
    }
}

#[cfg(test)]
mod tests;
