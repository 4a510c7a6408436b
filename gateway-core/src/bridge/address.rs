//! Which conversation a request belongs to.
//!
//! A caller that names itself (`user`) has one conversation, whatever it sends. One that does not is known by what it
//! sends: all but the newest message, so that the next message of the same transcript lands at the same place; a lone
//! message by itself.

use super::digest::{self, Digest, Key};
use super::title::{Base, Space};
use super::{Message, split};

/// How far back from the newest message a known prefix is looked for: the messages a client may add in one request.
const TAIL: usize = 16;

/// A caller's name for itself; blank is none, anything else is taken as it stands, spaces included.
pub fn name(user: Option<&str>) -> Option<&str> {
    user.filter(|user| !user.trim().is_empty())
}

/// The place of a request whose transcript nobody has seen the beginning of. `user` as [`name`] gives it.
pub fn mint(key: &Key, user: Option<&str>, transcript: &[Message]) -> Base {
    if let Some(user) = user {
        return Base {
            space: Space::Identity,
            digest: digest::identity(key, user),
        };
    }
    let known_by = match transcript.split_last() {
        Some((_, prefix)) if !prefix.is_empty() => prefix,
        _ => transcript,
    };
    Base {
        space: Space::Transcript,
        digest: digest::transcript(key, known_by),
    }
}

/// The prefixes under which an earlier turn may have left this conversation, longest first: after a turn it is left under
/// [`landmarks`]. Empty for a transcript without earlier dialogue, which is known by [`mint`] alone.
pub fn prefixes(key: &Key, transcript: &[Message]) -> Vec<Digest> {
    let (lead, dialogue) = split(transcript);
    let shortest = (lead.len() + 1).max(transcript.len().saturating_sub(TAIL));
    let lengths = (shortest..transcript.len()).rev();
    lengths
        .filter(|_| dialogue.len() > 1)
        .filter_map(|length| transcript.get(..length))
        .map(|prefix| digest::transcript(key, prefix))
        .collect()
}

/// Where an answered turn leaves its conversation: the transcript with the answer, and without it for clients that do not
/// repeat it. Only for callers without a name: what a named one says must not lead anybody else to its session.
pub fn landmarks(key: &Key, transcript: &[Message], answer: &str) -> [Digest; 2] {
    let mut answered = transcript.to_vec();
    answered.push(Message::new("assistant", answer));
    [
        digest::transcript(key, &answered),
        digest::transcript(key, transcript),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::of_profile(&[7; 32], "default")
    }

    fn says(messages: &[(&str, &str)]) -> Vec<Message> {
        let message = |(role, text): &(&str, &str)| Message::new(*role, *text);
        messages.iter().map(message).collect()
    }

    fn place(messages: &[(&str, &str)]) -> Base {
        mint(&key(), None, &says(messages))
    }

    fn named(user: &str) -> Base {
        let transcript = says(&[("user", "hi")]);
        mint(&key(), name(Some(user)), &transcript)
    }

    #[test]
    fn case_1_the_newest_message_does_not_move_a_conversation() {
        let cat = ("system", "you are a cat");
        assert_eq!(
            place(&[cat, ("user", "poke")]),
            place(&[cat, ("user", "pat")])
        );
    }

    #[test]
    fn case_2_another_persona_is_another_conversation() {
        let poke = ("user", "poke");
        let (cat, dog) = (("system", "you are a cat"), ("system", "you are a dog"));
        assert_ne!(place(&[cat, poke]), place(&[dog, poke]));
    }

    #[test]
    fn case_5_lone_messages_are_known_by_themselves() {
        assert_ne!(place(&[("user", "a")]), place(&[("user", "b")]));
        assert_eq!(place(&[("user", "a")]), place(&[("user", "a")]));
    }

    #[test]
    fn cases_10_and_11_the_next_message_finds_the_turn_before_with_or_without_its_answer() {
        let first = says(&[("system", "s"), ("user", "q1")]);
        let left = landmarks(&key(), &first, "a1");
        let echoed = says(&[
            ("system", "s"),
            ("user", "q1"),
            ("assistant", "a1"),
            ("user", "q2"),
        ]);
        let bare = says(&[("system", "s"), ("user", "q1"), ("user", "q2")]);
        for next in [echoed, bare] {
            let looked_for = prefixes(&key(), &next);
            assert!(
                left.iter().any(|landmark| looked_for.contains(landmark)),
                "{next:?}"
            );
        }
    }

    #[test]
    fn case_12_a_rewritten_answer_is_found_at_most_where_it_was_not_yet_given() {
        let first = says(&[("user", "q1")]);
        let [answered, asked] = landmarks(&key(), &first, "a1");
        let next = says(&[("user", "q1"), ("assistant", "other"), ("user", "q2")]);
        let looked_for = prefixes(&key(), &next);
        assert!(!looked_for.contains(&answered));
        assert!(looked_for.contains(&asked)); // and there the lineage says that it went another way
    }

    #[test]
    fn two_messages_at_once_still_find_their_conversation() {
        let [answered, _] = landmarks(&key(), &says(&[("user", "q1")]), "a1");
        let next = says(&[
            ("user", "q1"),
            ("assistant", "a1"),
            ("user", "q2"),
            ("user", "q3"),
        ]);
        assert!(prefixes(&key(), &next).contains(&answered));
    }

    #[test]
    fn a_persona_alone_is_no_prefix_to_be_found_by() {
        assert!(prefixes(&key(), &says(&[("system", "s"), ("user", "q")])).is_empty());
        assert!(prefixes(&key(), &[]).is_empty());
        let long: Vec<Message> = (0..100)
            .map(|n| Message::new("user", n.to_string()))
            .collect();
        assert_eq!(prefixes(&key(), &long).len(), TAIL);
    }

    #[test]
    fn case_37_a_blank_name_is_none() {
        for blank in ["", "   ", "\t\n"] {
            assert_eq!(name(Some(blank)), None);
        }
        assert_eq!(name(None), None);
    }

    #[test]
    fn case_38_a_name_is_taken_as_it_stands() {
        assert_ne!(named(" pet "), named("pet"));
    }

    #[test]
    fn cases_39_and_40_no_name_reaches_the_space_of_transcripts() {
        let anonymous = place(&[("user", "hi")]).to_string();
        let bare = anonymous.trim_start_matches("baton-").to_owned();
        let tries = [
            anonymous.clone(),
            bare,
            format!("{anonymous}-g1"),
            "u-5a36669b9a22d7cc".to_owned(),
            "0000000000000000".to_owned(),
            "ffffffffffffffff".to_owned(),
        ];
        for user in tries {
            let title = named(&user).to_string();
            assert!(title.starts_with("baton-u-"), "{user}: {title}");
            assert_ne!(title, anonymous);
        }
    }
}
