//! Model text never pings anyone. What a platform would read as a mention is disarmed before it is sent; the adapters
//! also send `allowed_mentions: {parse: []}` with every Discord create and edit, which is the guard that counts there.
//!
//! Facts: Discord reads `@everyone`, `@here`, `<@id>`, `<@!id>`, `<@&id>` outside code (its documentation, message
//! formatting). Slack reads `<!channel>`, `<@U…>`, `<#C…>` and asks for `&`, `<`, `>` as entities (its documentation,
//! formatting message text); bare `@channel` is text as long as `link_names` and `parse` stay unset.

use std::borrow::Cow;

use crate::split::{Unit, split};

/// How a platform reads text, and how much of it one message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub dialect: Dialect,
    /// The longest text one message is given, in [`Dialect::unit`]: below the platform's own bound.
    pub limit: usize,
}

/// A platform's way to read text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Discord,
    Slack,
}

impl Shape {
    /// Discord's `content`: 1900 of 2000.
    pub const DISCORD: Self = Self {
        dialect: Dialect::Discord,
        limit: 1_900,
    };
    /// Slack's `text` with mrkdwn: 3500 of the recommended 4000.
    pub const SLACK_MRKDWN: Self = Self {
        dialect: Dialect::Slack,
        limit: 3_500,
    };
    /// Slack's `markdown_text`: 11,500 of 12,000.
    pub const SLACK_MARKDOWN: Self = Self {
        dialect: Dialect::Slack,
        limit: 11_500,
    };

    /// Cuts text into messages that are ready to send: disarmed, within the limit, never blank (platforms refuse those).
    pub fn messages(&self, text: &str) -> Vec<String> {
        let unit = self.dialect.unit();
        let pieces = match self.dialect {
            // Disarming makes it longer, so it comes first; for Slack the unit already counts the entities.
            Dialect::Discord => split(&self.dialect.disarm(text), self.limit, unit),
            Dialect::Slack => split(text, self.limit, unit)
                .iter()
                .map(|piece| self.dialect.disarm(piece).into_owned())
                .collect(),
        };
        pieces
            .into_iter()
            .filter(|piece| !is_blank(piece))
            .collect()
    }

    /// The same bound halved, for a platform that called a message too long; `None` = it cannot be halved usefully.
    pub fn halved(&self) -> Option<Self> {
        (self.limit >= 2 * LEAST).then_some(Self {
            limit: self.limit / 2,
            ..*self
        })
    }
}

/// Below this a message is not worth sending.
const LEAST: usize = 200;

impl Dialect {
    /// The unit [`Shape::limit`] counts in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Discord => Unit::Utf16,
            Self::Slack => Unit::SlackEscaped,
        }
    }

    /// Returns `text` without anything that would ping. Idempotent for Discord; Slack's entities must be made once.
    pub fn disarm(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Discord => discord(text),
            Self::Slack => slack(text),
        }
    }
}

/// Parts the `@` from what makes it a mention, unseen.
const WORD_JOINER: char = '\u{2060}';

fn discord(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut before = None;
    for (at, c) in text.char_indices() {
        if c == '@' && before == Some('<') {
            safe.push(WORD_JOINER);
        }
        safe.push(c);
        let (_, rest) = text.split_at(at + c.len_utf8());
        if c == '@' && pings_all(rest) {
            safe.push(WORD_JOINER);
        }
        before = Some(c);
    }
    Cow::Owned(safe)
}

fn pings_all(rest: &str) -> bool {
    ["everyone", "here"].iter().any(|name| {
        let head = rest.as_bytes().get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
    })
}

fn slack(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            _ => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Whether a client would show nothing of it.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mentions_are_disarmed_and_the_rest_stays() {
        let rows = [
            (Dialect::Discord, "mail a@b.c, @you", "mail a@b.c, @you"),
            (
                Dialect::Discord,
                "@everyone @Here",
                "@\u{2060}everyone @\u{2060}Here",
            ),
            (
                Dialect::Discord,
                "<@1> <@!1> <@&1>",
                "<\u{2060}@1> <\u{2060}@!1> <\u{2060}@&1>",
            ),
            (Dialect::Discord, "a < b && c", "a < b && c"),
            (
                Dialect::Slack,
                "<!channel> <@U1>",
                "&lt;!channel&gt; &lt;@U1&gt;",
            ),
            (Dialect::Slack, "&lt;", "&amp;lt;"),
            (Dialect::Slack, "@channel", "@channel"),
        ];
        for (dialect, text, want) in rows {
            assert_eq!(dialect.disarm(text), want, "{text}");
        }
    }

    #[test]
    fn a_blank_message_is_not_sent() {
        let text = format!("a\n{}\nb", "\n".repeat(5_000));
        let sent = Shape::DISCORD.messages(&text);
        assert!(sent.iter().all(|one| !is_blank(one)));
        assert_eq!(sent.len(), 2);
        assert!(Shape::DISCORD.messages(" \n\u{200b}").is_empty());
    }

    #[test]
    fn halving_ends() {
        let mut shape = Some(Shape::DISCORD);
        let mut limits = Vec::new();
        while let Some(now) = shape {
            limits.push(now.limit);
            shape = now.halved();
        }
        assert_eq!(limits, [1_900, 950, 475, 237]);
    }

    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-z @<>&!#]{0,40}",
            Just("@everyone".to_owned()),
            Just("<!channel>".to_owned()),
            Just("<@U123>".to_owned()),
            Just("\n```\n".to_owned()),
            "\\PC{0,30}",
        ];
        prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn no_message_pings_or_is_too_long(text in text(), limit in 100_usize..400) {
            for dialect in [Dialect::Discord, Dialect::Slack] {
                let shape = Shape { dialect, limit };
                for message in shape.messages(&text) {
                    prop_assert!(Unit::Utf16.length(&message) <= limit);
                    let found = match dialect {
                        Dialect::Discord => ["@everyone", "@here", "<@"].iter().any(|ping| message.contains(ping)),
                        Dialect::Slack => message.contains(['<', '>']),
                    };
                    prop_assert!(!found, "{message:?}");
                }
            }
        }

        #[test]
        fn discord_text_is_disarmed_once(text in text()) {
            let once = Dialect::Discord.disarm(&text).into_owned();
            prop_assert_eq!(Dialect::Discord.disarm(&once), once.as_str());
        }
    }
}
