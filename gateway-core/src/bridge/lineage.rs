//! What of a request its session has not seen.
//!
//! A session keeps its own memory, so it is sent only what is new; sending a transcript it holds would double it, and
//! leaving out what it does not hold would lose it. So the record of a session ([`Seen`]) says exactly what it was told,
//! and a request is compared with that:
//! * the same beginning and more: the rest is new, however many messages that are;
//! * only instructions and one message: a client that leaves the memory to us; the message is new;
//! * other instructions: a session cannot unlearn its persona, so a new one is opened;
//! * anything else (an edited answer, a removed message, the same question again): it went another way; a new session is
//!   opened and told the transcript as the client has it now.

use serde::{Deserialize, Serialize};

use super::digest::{self, Digest, Key};
use super::{Message, split};

/// What the session of a conversation was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    instructions: Digest,
    /// The dialogue of the last answered request: how many messages, and their digest.
    asked: (usize, Digest),
    /// The same with the answer.
    answered: (usize, Digest),
}

impl Seen {
    /// The record after a turn that answered this transcript.
    pub fn after(key: &Key, transcript: &[Message], answer: &str) -> Self {
        let (instructions, dialogue) = split(transcript);
        let mut answered = dialogue.to_vec();
        answered.push(Message::new("assistant", answer));
        Self {
            instructions: digest::transcript(key, instructions),
            asked: (dialogue.len(), digest::transcript(key, dialogue)),
            answered: (answered.len(), digest::transcript(key, &answered)),
        }
    }
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The session goes on: the dialogue from this message on is new.
    From(usize),
    /// A session is opened and told everything.
    All(Opening),
}

/// Why a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// The conversation is new.
    First,
    /// Nobody said that this lone message belongs to an earlier one.
    Alone,
    InstructionsChanged,
    /// The client's transcript is not a continuation of what the session was told.
    Diverged,
}

impl Opening {
    /// The word in logs, headers and the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Alone => "alone",
            Self::InstructionsChanged => "instructions_changed",
            Self::Diverged => "diverged",
        }
    }
}

/// Compares a request with its session. `named` = the caller named itself, so that a lone message is a continuation.
pub fn unseen(key: &Key, seen: Option<&Seen>, transcript: &[Message], named: bool) -> Unseen {
    let Some(seen) = seen else {
        return Unseen::All(Opening::First);
    };
    let (instructions, dialogue) = split(transcript);
    if digest::transcript(key, instructions) != seen.instructions {
        return Unseen::All(Opening::InstructionsChanged);
    }
    if let [only] = dialogue
        && !only.is_assistant()
    {
        return match named || !instructions.is_empty() {
            true => Unseen::From(0),
            false => Unseen::All(Opening::Alone),
        };
    }
    if continues(key, dialogue, seen.answered) {
        return Unseen::From(seen.answered.0);
    }
    let next = dialogue.get(seen.asked.0);
    if next.is_some_and(|next| !next.is_assistant()) && continues(key, dialogue, seen.asked) {
        return Unseen::From(seen.asked.0);
    }
    Unseen::All(Opening::Diverged)
}

fn continues(key: &Key, dialogue: &[Message], (told, digest): (usize, Digest)) -> bool {
    match dialogue.split_at_checked(told) {
        Some((beginning, [_, ..])) => digest::transcript(key, beginning) == digest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> Key {
        Key::of_profile(&[7; 32], "default")
    }

    fn says(messages: &[(&str, &str)]) -> Vec<Message> {
        let message = |(role, text): &(&str, &str)| Message::new(*role, *text);
        messages.iter().map(message).collect()
    }

    /// What a request after one answered turn is told, by name.
    struct Row {
        name: &'static str,
        before: &'static [(&'static str, &'static str)],
        now: &'static [(&'static str, &'static str)],
        named: bool,
        want: Unseen,
    }

    const S: (&str, &str) = ("system", "persona");
    const Q1: (&str, &str) = ("user", "q1");
    const A1: (&str, &str) = ("assistant", "a1");
    const Q2: (&str, &str) = ("user", "q2");
    const Q3: (&str, &str) = ("user", "q3");

    #[test]
    fn what_a_request_adds() {
        use Opening::{Alone, Diverged, InstructionsChanged};
        let rows = [
            Row {
                name: "case_7_an_exact_continuation_sends_the_newest_only",
                before: &[S, Q1],
                now: &[S, Q1, A1, Q2],
                named: false,
                want: Unseen::From(2),
            },
            Row {
                name: "case_11_the_answer_was_not_repeated",
                before: &[S, Q1],
                now: &[S, Q1, Q2],
                named: false,
                want: Unseen::From(1),
            },
            Row {
                name: "case_43_two_new_messages_are_both_sent",
                before: &[S, Q1],
                now: &[S, Q1, A1, Q2, Q3],
                named: true,
                want: Unseen::From(2),
            },
            Row {
                name: "case_43_also_where_the_answer_was_not_repeated",
                before: &[S, Q1],
                now: &[S, Q1, Q2, Q3],
                named: true,
                want: Unseen::From(1),
            },
            Row {
                name: "case_42_changed_instructions_reach_the_model",
                before: &[S, Q1],
                now: &[("system", "other"), Q1, A1, Q2],
                named: true,
                want: Unseen::All(InstructionsChanged),
            },
            Row {
                name: "case_42_instructions_that_went_away_too",
                before: &[S, Q1],
                now: &[Q1, A1, Q2],
                named: true,
                want: Unseen::All(InstructionsChanged),
            },
            Row {
                name: "case_12_a_rewritten_answer_opens_a_session",
                before: &[S, Q1],
                now: &[S, Q1, ("assistant", "better"), Q2],
                named: true,
                want: Unseen::All(Diverged),
            },
            Row {
                name: "an_edited_question_opens_a_session",
                before: &[S, Q1],
                now: &[S, ("user", "q1'"), A1, Q2],
                named: true,
                want: Unseen::All(Diverged),
            },
            Row {
                name: "the_same_dialogue_again_wants_another_answer",
                before: &[Q1, A1, Q2],
                now: &[Q1, A1, Q2],
                named: false,
                want: Unseen::All(Diverged),
            },
            Row {
                name: "an_undone_exchange_opens_a_session",
                before: &[Q1, A1, Q2],
                now: &[Q1, A1],
                named: true,
                want: Unseen::All(Diverged),
            },
            Row {
                name: "a_persona_and_one_message_go_on",
                before: &[S, Q1],
                now: &[S, Q2],
                named: false,
                want: Unseen::From(0),
            },
            Row {
                name: "a_named_caller_goes_on_with_one_message",
                before: &[Q1],
                now: &[Q2],
                named: true,
                want: Unseen::From(0),
            },
            Row {
                name: "nobody_says_that_a_lone_message_goes_on",
                before: &[Q1],
                now: &[Q1],
                named: false,
                want: Unseen::All(Alone),
            },
            Row {
                name: "a_lone_answer_is_no_message",
                before: &[S, Q1],
                now: &[S, A1],
                named: true,
                want: Unseen::All(Diverged),
            },
        ];
        for row in rows {
            let seen = Seen::after(&key(), &says(row.before), "a1");
            let got = unseen(&key(), Some(&seen), &says(row.now), row.named);
            assert_eq!(got, row.want, "{}", row.name);
        }
    }

    #[test]
    fn a_new_conversation_is_told_everything() {
        let all = unseen(&key(), None, &says(&[S, Q1]), true);
        assert_eq!(all, Unseen::All(Opening::First));
    }

    fn transcripts() -> impl Strategy<Value = Vec<Message>> {
        let role = prop_oneof![Just("system"), Just("user"), Just("assistant")];
        let message = (role, "[ab]{0,2}").prop_map(|(role, text)| Message::new(role, text));
        prop::collection::vec(message, 0..6)
    }

    proptest! {
        /// Told earlier + sent now = what the client has, or the session is new and told everything.
        #[test]
        fn nothing_is_lost_and_nothing_is_told_twice(before in transcripts(), now in transcripts(), answer in "[ab]{0,2}", named: bool) {
            let seen = Seen::after(&key(), &before, &answer);
            let (_, old) = split(&before);
            let (_, new) = split(&now);
            if let Unseen::From(from) = unseen(&key(), Some(&seen), &now, named) {
                prop_assert!(from < new.len());
                let lone = from == 0 && new.len() == 1;
                let repeats = new[..from] == *old;
                let echoes = from == old.len() + 1
                    && new[..old.len()] == *old
                    && new[old.len()] == Message::new("assistant", answer.clone());
                prop_assert!(lone || repeats || echoes);
                prop_assert_eq!(split(&before).0, split(&now).0);
            }
        }

        #[test]
        fn a_continuation_is_always_recognised(before in transcripts(), answer in "[ab]{0,2}", next in "[ab]{0,2}") {
            let seen = Seen::after(&key(), &before, &answer);
            let told = split(&before).1.len() + 1;
            let mut now = before;
            now.push(Message::new("assistant", answer));
            now.push(Message::new("user", next));
            prop_assert_eq!(unseen(&key(), Some(&seen), &now, false), Unseen::From(told));
        }
    }
}
