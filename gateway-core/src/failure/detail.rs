//! The one line a failure leaves for people and logs: no markup, no secrets, at most 300 characters.

/// The contract of `Failure::detail`.
const MAX_CHARS: usize = 300;

/// A shorter word is no secret.
const SHORTEST_SECRET: usize = 8;

/// Starts of words that are credentials wherever they stand.
const SECRET_PREFIXES: &[&str] = &[
    "sk-", "sk_", "gsk_", "xai-", "key-", "rk_", "pk_", "AIza", "eyJ", "ghp_", "hf_",
];

/// Makes the line. HTML becomes its title; `key` and anything that looks like a credential is struck out.
pub fn line(text: &str, html: bool, key: Option<&str>) -> String {
    let text = match html {
        true => title(text).unwrap_or_else(|| "an HTML page".to_owned()),
        false => text.to_owned(),
    };
    let text = match key.filter(|key| key.len() >= 4) {
        Some(key) => text.replace(key, "[redacted]"),
        None => text,
    };
    let words: Vec<String> = text.split_whitespace().map(redact_word).collect();
    let mut hide_next = false;
    let words = words.into_iter().map(|word| {
        let hidden = std::mem::replace(&mut hide_next, word.eq_ignore_ascii_case("bearer"));
        if hidden {
            "[redacted]".to_owned()
        } else {
            word
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    shorten(&line)
}

fn shorten(line: &str) -> String {
    if line.chars().count() <= MAX_CHARS {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(MAX_CHARS - 1).collect();
    short.push('…');
    short
}

/// The page's title, whatever the case of its tags.
fn title(html: &str) -> Option<String> {
    // ASCII lowering keeps byte positions, so `get` finds the same place in the original.
    let lower = html.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = html.get(start..end)?.trim();
    (!title.is_empty()).then(|| title.to_owned())
}

fn redact_word(word: &str) -> String {
    if word.len() < SHORTEST_SECRET {
        return word.to_owned();
    }
    for prefix in SECRET_PREFIXES {
        let Some((before, secret)) = word.split_once(prefix) else {
            continue;
        };
        let at_start = before.chars().last().is_none_or(|c| !c.is_alphanumeric());
        let length = secret
            .chars()
            .take_while(|c| c.is_alphanumeric() || "-_.*".contains(*c))
            .count();
        if at_start && length >= SHORTEST_SECRET {
            let rest: String = secret.chars().skip(length).collect();
            return format!("{before}[redacted]{rest}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_its_title() {
        let page = "<!DOCTYPE html>\n<TITLE>Attention Required! | Cloudflare</TITLE><body>…";
        assert_eq!(line(page, true, None), "Attention Required! | Cloudflare");
        assert_eq!(line("<html><body>x", true, None), "an HTML page");
    }

    #[test]
    fn secrets_are_struck_out() {
        let text = "Incorrect API key provided: sk-proj-abcdefgh1234. header \"Bearer abc.def\" Bearer tok mine=hunter22";
        let line = line(text, false, Some("hunter22"));
        for secret in ["abcdefgh", "Bearer tok", "hunter22"] {
            assert!(!line.contains(secret), "{line}");
        }
    }

    #[test]
    fn long_lines_are_cut_at_characters() {
        let line = line(&"ä ".repeat(400), false, None);
        assert_eq!(line.chars().count(), MAX_CHARS);
        assert!(line.ends_with('…'));
    }
}
