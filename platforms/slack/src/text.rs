//! Slack's text as people read it. Slack writes `&`, `<` and `>` as entities, and everything that is not text between
//! `<` and `>`: people, channels, groups, links (its documentation, formatting message text).

use std::borrow::Cow;

use platforms::escape::Dialect;
use platforms::split::{Unit, split};

/// Returns the text a person meant, without the mention of `bot` it begins with.
pub(crate) fn spoken(text: &str, bot: &str) -> String {
    let mut rest = text.trim_start();
    while let Some(behind) = mention_of(rest, bot) {
        rest = behind.trim_start_matches([':', ',']).trim_start();
    }
    readable(rest).trim_end().to_owned()
}

/// Whether `bot` is mentioned anywhere.
pub(crate) fn mentions(text: &str, bot: &str) -> bool {
    text.split('<')
        .skip(1)
        .any(|part| mention_of(&format!("<{part}"), bot).is_some())
}

/// What stands behind the mention of `bot` the text begins with.
fn mention_of<'a>(text: &'a str, bot: &str) -> Option<&'a str> {
    let (inside, behind) = text.strip_prefix("<@")?.split_once('>')?;
    let user = inside.split('|').next().unwrap_or_default();
    (user == bot && !bot.is_empty()).then_some(behind)
}

/// Resolves entities and what stands between `<` and `>`.
pub(crate) fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('<') {
        out.push_str(&plain(before));
        match from.split_once('>') {
            Some((inside, behind)) if !inside.contains('<') && !inside.is_empty() => {
                out.push_str(&plain(&control(inside)));
                rest = behind;
            }
            _ => {
                out.push('<');
                rest = from;
            }
        }
    }
    out.push_str(&plain(rest));
    out
}

/// What a person sees of `<inside>`.
fn control(inside: &str) -> String {
    let (what, label) = match inside.split_once('|') {
        Some((what, label)) => (what, Some(label).filter(|label| !label.is_empty())),
        None => (inside, None),
    };
    if let Some(id) = what.strip_prefix('@') {
        return format!("@{}", label.unwrap_or(id).trim_start_matches('@'));
    }
    if let Some(id) = what.strip_prefix('#') {
        return format!("#{}", label.unwrap_or(id).trim_start_matches('#'));
    }
    if let Some(command) = what.strip_prefix('!') {
        return special(command, label);
    }
    let bare = ["mailto:", "tel:"]
        .iter()
        .find_map(|scheme| what.strip_prefix(scheme))
        .unwrap_or(what);
    match label {
        None => bare.to_owned(),
        // Slack links what looks like an address by itself; the person typed only the label.
        Some(label) if bare.ends_with(label) || bare.trim_end_matches('/').ends_with(label) => {
            label.to_owned()
        }
        Some(label) => format!("{label} ({bare})"),
    }
}

/// What a person sees of `<!command|label>`.
fn special(command: &str, label: Option<&str>) -> String {
    match (command.split_once('^'), label) {
        (Some(("date", _)), Some(label)) => label.to_owned(),
        (Some(("subteam", id)), label) => {
            format!("@{}", label.unwrap_or(id).trim_start_matches('@'))
        }
        (_, label) => format!("@{}", label.unwrap_or(command).trim_start_matches('@')),
    }
}

/// Resolves the three entities Slack makes, each once.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('&') {
        out.push_str(before);
        let known = [("amp;", '&'), ("lt;", '<'), ("gt;", '>')];
        let found = known
            .iter()
            .find_map(|(name, c)| Some((*c, from.strip_prefix(name)?)));
        let (c, behind) = found.unwrap_or(('&', from));
        out.push(c);
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Cuts escaped text into escaped pieces of at most `max` characters; no entity is cut in two.
pub(crate) fn pieces(escaped: &str, max: usize) -> Vec<String> {
    split(&plain(escaped), max, Unit::SlackEscaped)
        .iter()
        .map(|piece| Dialect::Slack.disarm(piece).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_stands_in_brackets_is_readable() {
        let rows = [
            ("hi <@U1>", "hi @U1"),
            ("hi <@U1|anna>", "hi @anna"),
            ("<#C1|general> and <#C2>", "#general and #C2"),
            ("<!here> <!channel|@channel>", "@here @channel"),
            ("<!subteam^S1|@devs> <!subteam^S2>", "@devs @S2"),
            ("<!date^1392734382^{date}|18 Feb>", "18 Feb"),
            ("<https://a.b/c>", "https://a.b/c"),
            ("<http://a.b|a.b> <http://a.b/|a.b>", "a.b a.b"),
            ("<https://a.b/c|the page>", "the page (https://a.b/c)"),
            ("<https://a.b/?x=1&amp;y=2>", "https://a.b/?x=1&y=2"),
            ("<mailto:a@b.c|a@b.c> <tel:112|112>", "a@b.c 112"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("a < b", "a < b"),
            ("<>", "<>"),
            ("<a<@U1>", "<a@U1"),
        ];
        for (text, want) in rows {
            assert_eq!(readable(text), want, "{text}");
        }
    }

    #[test]
    fn the_mention_at_the_beginning_goes() {
        let rows = [
            ("<@B> hello", "hello"),
            ("  <@B|baton>: hello ", "hello"),
            ("<@B>, <@B> hello", "hello"),
            ("<@U2> hello <@B>", "@U2 hello @B"),
            ("<@B>", ""),
            ("no mention", "no mention"),
        ];
        for (text, want) in rows {
            assert_eq!(spoken(text, "B"), want, "{text}");
        }
        assert!(mentions("x <@B> y", "B") && mentions("<@B|baton>", "B"));
        assert!(!mentions("x <@BX>", "B") && !mentions("&lt;@B&gt;", "B") && !mentions("<@>", ""));
    }

    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[<>&|@!#^a-z; ]{0,20}",
            Just("&amp;".to_owned()),
            Just("<@U1|".to_owned()),
            Just("<!date^1|x>".to_owned()),
            "\\PC{0,10}",
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back(text in text()) {
            let escaped = Dialect::Slack.disarm(&text);
            prop_assert_eq!(readable(&escaped), text.as_str());
            prop_assert_eq!(plain(&escaped), text.as_str());
        }

        #[test]
        fn nothing_that_comes_in_panics(text in text()) {
            let read = spoken(&text, "U1");
            prop_assert!(read.len() <= text.len() * 3 + 8);
            mentions(&text, "U1");
        }

        #[test]
        fn pieces_keep_the_text_and_their_size(text in text(), max in 20_usize..60) {
            let pieces = pieces(&Dialect::Slack.disarm(&text), max);
            prop_assert!(pieces.iter().all(|piece| piece.chars().count() <= max));
            prop_assert!(pieces.iter().all(|piece| !piece.contains(['<', '>'])));
        }
    }
}
