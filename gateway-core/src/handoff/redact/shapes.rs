//! Secrets that are known by how they look. A table: one row per shape, what of the match is the secret, and whether it
//! needs a second look because words look alike.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use super::MARK;

/// One way a secret looks. The group `secret` is replaced; a pattern without it is replaced whole.
struct Shape {
    pattern: &'static str,
    /// What else the secret must be, for shapes that ordinary words can have.
    plausible: fn(&str) -> bool,
}

const fn certain(pattern: &'static str) -> Shape {
    Shape {
        pattern,
        plausible: |_| true,
    }
}

static SHAPES: [Shape; 14] = [
    // PEM and PGP; a block that was cut off loses the key lines that are there.
    certain(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*)",
    ),
    // Anthropic, OpenAI and those who copy their prefix.
    Shape {
        pattern: r"\bsk-[A-Za-z0-9_-]{16,}",
        plausible: has_digit,
    },
    // GitHub, GitLab.
    certain(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,})",
    ),
    // Slack: tokens and incoming webhooks.
    certain(r"\b(?:xox[a-z](?:\.xox[a-z])?-|xapp-)[A-Za-z0-9-]{8,}"),
    certain(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,})"),
    // AWS.
    certain(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    // JSON web tokens, also with the signature cut off.
    certain(r"\beyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    // Google, Stripe, Hugging Face, npm, Groq, xAI.
    certain(
        r"\b(?:AIza[A-Za-z0-9_-]{30,}|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{24,}|npm_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{24,}|xai-[A-Za-z0-9]{24,})",
    ),
    // Discord bots.
    certain(r"\b[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}"),
    // A header with its scheme; after the bare word only what cannot be one.
    certain(
        r#"(?i)\b(?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|token|digest)\s+)?(?P<secret>[A-Za-z0-9._~+/=-]{8,})"#,
    ),
    Shape {
        pattern: r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{12,})",
        plausible: has_digit,
    },
    // https://user:secret@host, https://secret@host
    certain(r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?P<secret>[^\s/@]+)@"),
    // password = "…": quotes say where the value ends and that it is one.
    Shape {
        pattern: r#"(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)\\?["']?\s*(?:=>|:=|=|:)\s*\\?["'](?P<secret>[^"'\\\n]{4,})"#,
        plausible: is_value,
    },
    // password=…, --token …: without quotes an ordinary word is not taken for a secret.
    Shape {
        pattern: r#"(?i)(?:(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)\s*(?:=>|:=|=|:)\s*|--(?:password|passwd|secret|token|api-key)\s+)(?P<secret>[^\s"'`\\,;)}\]]{6,})"#,
        plausible: is_unquoted_value,
    },
];

static COMPILED: LazyLock<(RegexSet, Vec<Regex>)> = LazyLock::new(|| {
    // The boundary of ASCII words: the one of all languages takes regex's slow path as soon as a text is not ASCII.
    let boundary = |shape: &Shape| shape.pattern.replace(r"\b", r"(?-u:\b)");
    let patterns: Vec<String> = SHAPES.iter().map(boundary).collect();
    (
        RegexSet::new(&patterns).expect("fixed patterns that tests compile"),
        patterns
            .iter()
            .map(|pattern| Regex::new(pattern).expect("a fixed pattern that tests compile"))
            .collect(),
    )
});

/// Replaces every secret whose shape is known. Text without any is returned as it is after one pass over it.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let (any, each) = &*COMPILED;
    let mut redacted = Cow::Borrowed(text);
    for index in any.matches(text) {
        if let (Some(shape), Some(pattern)) = (SHAPES.get(index), each.get(index)) {
            let changed = apply(shape, pattern, &redacted);
            if changed != redacted {
                redacted = Cow::Owned(changed);
            }
        }
    }
    redacted
}

fn apply(shape: &Shape, pattern: &Regex, text: &str) -> String {
    let replace = |found: &Captures<'_>| {
        let whole = found.get_match();
        let secret = found.name("secret").unwrap_or(whole);
        if !(shape.plausible)(secret.as_str()) {
            return whole.as_str().to_owned();
        }
        let before = text.get(whole.start()..secret.start()).unwrap_or("");
        let after = text.get(secret.end()..whole.end()).unwrap_or("");
        format!("{before}{MARK}{after}")
    };
    pattern.replace_all(text, replace).into_owned()
}

fn has_digit(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit())
}

/// Not a reference to a value kept elsewhere, and not our own mark.
fn is_value(text: &str) -> bool {
    !text.starts_with(['$', '<', '{', '%', '[']) && !text.trim().is_empty()
}

/// Also neither a plain word, nor a count (`max_token: 100000`), nor a piece of program text.
fn is_unquoted_value(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let odd = text.contains(['!', '#', '@', '^', '~', '%', '+', '=']);
    is_value(text)
        && !text.contains(['(', '<', '&', '|'])
        && (odd || digits > 0)
        && digits < text.len()
}
