//! What the numbers of a size error say: is the question too large, or only question and answer together.

use std::sync::LazyLock;

use regex::Regex;

#[expect(
    clippy::unwrap_used,
    reason = "a constant pattern, compiled in every test"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static AFFORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)only afford\s+([\d,]+)"));
static LIMIT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)limit:?\s+([\d,]+)[^.]{0,40}?requested:?\s+~?([\d,]+)"));
static WINDOW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:maximum|max|model's|model\x{2019}s)\s+context\s+(?:length|window|size)\s+(?:is|of)\s+(?:only\s+)?([\d,]+)",
    )
});
static PARTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)([\d,]+)\s+(?:tokens\s+)?(?:in the|of|from the|from)\s+(messages|prompt|text input|input|tool input|image input|audio input|functions)",
    )
});
static INPUT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)([\d,]+)\s+(?:input|prompt)\s+tokens"));
static SUM: LazyLock<Regex> = LazyLock::new(|| pattern(r"([\d,]+)\s*\+\s*([\d,]+)\s*>\s*([\d,]+)"));

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

/// The answer's tokens a balance still pays for.
pub(super) fn affordable(message: &str) -> Option<u64> {
    number(AFFORD.captures(message)?.get(1)?.as_str())
}

/// Whether one request is above the whole budget: "Limit 30000, Requested 35064". `None` = no such numbers.
pub(super) fn above_the_limit(message: &str) -> Option<bool> {
    let found = LIMIT.captures(message)?;
    Some(number(found.get(2)?.as_str())? > number(found.get(1)?.as_str())?)
}

/// The parts of the question as a message lists them. A message that stands there twice is counted once.
fn parts(message: &str) -> Vec<u64> {
    let mut named: Vec<&str> = Vec::new();
    let mut sizes = Vec::new();
    for part in PARTS.captures_iter(message) {
        let name = part.get(2).map_or("", |name| name.as_str());
        if named.contains(&name) {
            break;
        }
        named.push(name);
        sizes.extend(part.get(1).and_then(|size| number(size.as_str())));
    }
    sizes
}

/// Whether the question alone fits the window. `None` = the numbers do not say.
pub(super) fn question_fits(message: &str) -> Option<bool> {
    if let Some(sum) = SUM.captures(message) {
        return Some(number(sum.get(1)?.as_str())? < number(sum.get(3)?.as_str())?);
    }
    let window = number(WINDOW.captures(message)?.get(1)?.as_str())?;
    let parts = parts(message);
    let parts = if parts.is_empty() {
        INPUT
            .captures_iter(message)
            .take(1)
            .filter_map(|part| number(part.get(1)?.as_str()))
            .collect()
    } else {
        parts
    };
    (!parts.is_empty()).then(|| parts.iter().sum::<u64>() < window)
}

static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)(?:^|\b(?:status|code|https?|error|rejected|failed|provider|returned|received|got|server|api)\b[\s:=("'-]{0,3}(?:code|status|error)?[\s:=("'-]{0,3})(4\d\d|5\d\d)(?:$|[\s:;,.)"'{\]-])"#,
    )
});

/// The HTTP status a program writes into its text: `API Error: 403 …`, `429 {…}`, `last status: 429`.
pub(super) fn status_in(text: &str) -> Option<u16> {
    let head = super::loose::head(text).trim_start();
    STATUS.captures(head)?.get(1)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_their_sentences() {
        assert_eq!(affordable("but can only afford 27,342."), Some(27_342));
        assert_eq!(
            above_the_limit("(TPM): Limit 30000, Requested 35064. Please"),
            Some(true)
        );
        assert_eq!(
            above_the_limit("Limit 100000, Used 97050, Requested 3619"),
            Some(false)
        );
        assert_eq!(
            question_fits(
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
            ),
            Some(true)
        );
        assert_eq!(
            question_fits(
                "maximum context length is 8192 tokens. However, you requested 9000 (8900 in the messages, 100"
            ),
            Some(false)
        );
        assert_eq!(
            question_fits("prompt is too long: 214420 tokens > 200000 maximum"),
            None
        );
    }

    #[test]
    fn a_status_is_read_where_a_program_writes_one() {
        for (text, want) in [
            ("API Error: 403 x", Some(403)),
            ("429 {\"a\"", Some(429)),
            ("Error code: 429 - {", Some(429)),
            ("last status: 429 Too Many", Some(429)),
            ("API Error: Request rejected (429) · x", Some(429)),
            ("HTTP 503", Some(503)),
            ("402 Insufficient Balance", Some(402)),
            ("used 4000 tokens of 500 words", None),
            ("limit 429, requested", None),
        ] {
            assert_eq!(status_in(text), want, "{text}");
        }
    }
}
