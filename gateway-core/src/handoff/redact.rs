//! Secrets out before anything is stored or shown.
//!
//! Two ways of knowing one: by value (what the config names; also in its base64, URL-encoded and JSON-escaped forms) and by
//! shape (`shapes.rs`). Everything stored or shown goes through both; what is sent to another provider only loses the
//! known values, for a request is sent as it was written. Work on whole text: a secret split over two pieces is in neither.
//! Redacting twice changes nothing more.

mod shapes;

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};

use super::Handoff;

/// Stands where a secret was.
pub const MARK: &str = "[redacted]";

/// Shorter values are not looked for: they would tear ordinary text to pieces.
pub const MIN_SECRET: usize = 6;

/// Bytes of secrets in one pattern, and its compiled bound: far more than that many literal bytes need.
const PATTERN: usize = 64 * 1024;
const COMPILED: usize = 256 * 1024 * 1024;

/// Knows secrets by value and by shape.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Alternatives of escaped values, longer ones first.
    known: Vec<Regex>,
}

impl Redactor {
    /// Learns secret values; blank ones and ones shorter than [`MIN_SECRET`] bytes are left out.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut needles: Vec<String> = secrets
            .into_iter()
            .flat_map(|secret| forms(secret.as_ref().trim()))
            .filter(|needle| {
                needle.len() >= MIN_SECRET
                    && needle.len() <= PATTERN
                    && !MARK.contains(needle.as_str())
            })
            .collect();
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self {
            known: patterns(&needles),
        }
    }

    /// Knows shapes only.
    pub fn shapes() -> &'static Self {
        static SHAPES: Redactor = Redactor { known: Vec::new() };
        &SHAPES
    }

    /// For everything stored or shown: known values and known shapes.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_known(text) {
            Cow::Borrowed(text) => shapes::redact(text),
            Cow::Owned(text) => Cow::Owned(shapes::redact(&text).into_owned()),
        }
    }

    /// For what goes to another provider: known values only.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = Cow::Borrowed(text);
        for pattern in &self.known {
            if let Cow::Owned(changed) = pattern.replace_all(&redacted, MARK) {
                redacted = Cow::Owned(changed);
            }
        }
        redacted
    }

    /// A copy for people: every text of it redacted, the request too. Never what is stored or injected, which keeps the
    /// request as it was written.
    pub fn handoff(&self, handoff: &Handoff) -> Handoff {
        let mut shown = self.remains(handoff.clone());
        shown.request = self.redact(&shown.request).into_owned();
        shown
    }

    /// Redacts everything but the request: what a handoff must have gone through before it is stored.
    pub fn remains(&self, mut handoff: Handoff) -> Handoff {
        self.scrub(&mut handoff.reason);
        self.scrub(&mut handoff.progress);
        for call in &mut handoff.calls {
            self.scrub(&mut call.name);
            self.scrub(&mut call.arguments);
            if let Some(result) = &mut call.result {
                self.scrub(result);
            }
        }
        for todo in &mut handoff.open_todos {
            self.scrub(&mut todo.content);
        }
        handoff
    }

    fn scrub(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }
}

/// Never prints what it knows.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("patterns", &self.known.len())
            .finish()
    }
}

fn patterns(needles: &[String]) -> Vec<Regex> {
    let mut patterns = vec![];
    let mut batch: Vec<String> = vec![];
    let mut size = 0;
    for needle in needles {
        if size + needle.len() > PATTERN && !batch.is_empty() {
            patterns.push(compile(&batch));
            batch.clear();
            size = 0;
        }
        size += needle.len();
        batch.push(regex::escape(needle));
    }
    if !batch.is_empty() {
        patterns.push(compile(&batch));
    }
    patterns
}

fn compile(alternatives: &[String]) -> Regex {
    RegexBuilder::new(&alternatives.join("|"))
        .size_limit(COMPILED)
        .build()
        .expect("escaped literals always parse, and a batch is far below the size limit")
}

/// The value itself and how it looks after being encoded on its way.
fn forms(secret: &str) -> Vec<String> {
    if secret.len() < MIN_SECRET {
        return vec![];
    }
    let mut forms = vec![secret.to_owned(), escaped(secret)];
    forms.extend([true, false].map(|upper| percent_encoded(secret, upper)));
    forms.push(percent_encoded(secret, true).replace("%20", "+"));
    for alphabet in [STANDARD, URL_SAFE] {
        forms.push(base64(secret.as_bytes(), alphabet));
        forms.extend((0..3).map(|shift| base64_inside(secret.as_bytes(), shift, alphabet)));
    }
    forms
}

/// As it stands inside a JSON string.
fn escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|s| s.strip_suffix('"'))
        .unwrap_or(secret)
        .to_owned()
}

fn percent_encoded(secret: &str, upper: bool) -> String {
    let mut encoded = String::with_capacity(secret.len());
    for byte in secret.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            _ if upper => encoded.push_str(&format!("%{byte:02X}")),
            _ => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
    encoded
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Without padding: the padding that may follow hides nothing.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let digits = |chunk: &[u8]| {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        [18, 12, 6, 0].map(|shift| usize::try_from(word >> shift & 63).unwrap_or(0))
    };
    bytes
        .chunks(3)
        .flat_map(|chunk| digits(chunk).into_iter().take(chunk.len() + 1))
        .filter_map(|digit| alphabet.get(digit).map(|byte| char::from(*byte)))
        .collect()
}

/// The digits a secret always has when `shift` bytes stand before it and anything after it, as in `base64("user:" + secret)`:
/// those that it shares with its neighbours are left away.
fn base64_inside(secret: &[u8], shift: usize, alphabet: &[u8; 64]) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, shift)
        .chain(secret.iter().copied())
        .collect();
    let own = padded.len() * 8 / 6;
    base64(&padded, alphabet)
        .chars()
        .take(own)
        .skip((shift * 8).div_ceil(6))
        .collect()
}

#[cfg(test)]
mod tests;
