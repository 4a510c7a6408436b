//! Who is let in, and to which profile. Pure: the rules are `gateway_core::access`'s; here are several profiles behind one
//! bot.

use std::collections::HashMap;

use gateway_core::access::{AccessRules, Admission, Call, Silence, Speaker, SpeakerKind, Spot};
use gateway_core::ids::ProfileId;
use gateway_core::message::Standing;
use platforms::adapter::{self, Heard};

/// What becomes of something heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is for this profile.
    Admitted(ProfileId, Standing),
    /// Somebody unknown spoke to the bot, at a place of this profile.
    Stranger(ProfileId),
    /// As if it had not been said.
    Ignored(Silence),
}

/// Decides on something heard. Of several profiles the first that admits the speaker takes it: in channels no two can, in
/// direct messages the order says. `in_a_row` = the messages of bots answered there since a person last spoke.
pub fn judge<'a>(
    profiles: impl IntoIterator<Item = (&'a ProfileId, &'a AccessRules)>,
    heard: &Heard,
    in_a_row: u32,
) -> Verdict {
    let (speaker, spot, call) = asked(heard, in_a_row);
    let mut otherwise = Verdict::Ignored(Silence::Elsewhere);
    for (profile, rules) in profiles {
        match (rules.admit(&speaker, &spot, call), &otherwise) {
            (Admission::Admitted(standing), _) => {
                return Verdict::Admitted(profile.clone(), standing);
            }
            (Admission::Stranger, Verdict::Ignored(_)) => {
                otherwise = Verdict::Stranger(profile.clone());
            }
            (Admission::Ignored(why), Verdict::Ignored(Silence::Elsewhere)) => {
                otherwise = Verdict::Ignored(why);
            }
            _ => {}
        }
    }
    otherwise
}

/// The profiles at whose places it was said, whoever said it.
pub fn here<'a>(
    profiles: impl IntoIterator<Item = (&'a ProfileId, &'a AccessRules)>,
    heard: &Heard,
) -> Vec<ProfileId> {
    let (speaker, spot, _) = asked(heard, 0);
    let is_here = |rules: &AccessRules| {
        let admission = rules.admit(&speaker, &spot, Call::ByName);
        matches!(admission, Admission::Admitted(_) | Admission::Stranger)
    };
    let here = profiles.into_iter().filter(|(_, rules)| is_here(rules));
    here.map(|(profile, _)| profile.clone()).collect()
}

fn asked(heard: &Heard, in_a_row: u32) -> (Speaker<'_>, Spot<'_>, Call) {
    let kind = match heard.speaker.kind {
        adapter::SpeakerKind::Person => SpeakerKind::Person,
        adapter::SpeakerKind::Bot => SpeakerKind::Bot { in_a_row },
        adapter::SpeakerKind::Ourselves => SpeakerKind::Ourselves,
    };
    let speaker = Speaker {
        id: &heard.speaker.id,
        roles: &heard.speaker.roles,
        kind,
    };
    let spot = match &heard.spot {
        adapter::Spot::Direct { .. } => Spot::Direct,
        adapter::Spot::Channel {
            guild,
            channel,
            parent,
        } => Spot::Channel {
            guild: guild.as_deref(),
            channel,
            parent: parent.as_deref(),
        },
    };
    let call = match heard.called {
        true => Call::ByName,
        false => Call::Overheard,
    };
    (speaker, spot, call)
}

/// How many messages of bots were answered in each conversation since a person last spoke. In memory: a restart begins
/// anew.
#[derive(Debug, Default)]
pub struct BotRuns(HashMap<String, u32>);

/// Conversations whose count is kept; beyond it bots are not answered in new ones.
const RUNS_MAX: usize = 10_000;

impl BotRuns {
    /// The count of a conversation.
    pub fn of(&self, conversation: &str) -> u32 {
        match self.0.get(conversation) {
            Some(count) => *count,
            None if self.0.len() >= RUNS_MAX => u32::MAX,
            None => 0,
        }
    }

    /// Counts something that was said there and, by a bot, is answered.
    pub fn note(&mut self, heard: &Heard, answered: bool) {
        match heard.speaker.kind {
            adapter::SpeakerKind::Person => drop(self.0.remove(&heard.conversation)),
            adapter::SpeakerKind::Bot if answered => {
                *self.0.entry(heard.conversation.clone()).or_default() += 1;
            }
            adapter::SpeakerKind::Bot | adapter::SpeakerKind::Ourselves => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gateway_core::ids::InboundId;
    use platforms::adapter::{Content, Speaker, SpeakerKind, Spot};

    use super::*;

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    /// Two profiles of one bot: each has a channel; `ann` is in both, `op` is the second's operator.
    fn two() -> [(ProfileId, AccessRules); 2] {
        let rules = |channel, users: &[&str], operators: &[&str]| AccessRules {
            channels: set(&[channel]),
            users: set(users),
            operators: set(operators),
            bots: set(&["helper"]),
            bot_depth: 2,
            ..AccessRules::default()
        };
        [
            (ProfileId::new("one"), rules("c1", &["ann", "bob"], &[])),
            (ProfileId::new("two"), rules("c2", &["ann"], &["op"])),
        ]
    }

    fn heard(id: &str, channel: Option<&str>, called: bool) -> Heard {
        Heard {
            id: InboundId::new("m"),
            speaker: Speaker {
                id: id.to_owned(),
                name: id.to_owned(),
                roles: Vec::new(),
                kind: match id {
                    "helper" | "other-bot" => SpeakerKind::Bot,
                    "us" => SpeakerKind::Ourselves,
                    _ => SpeakerKind::Person,
                },
            },
            spot: match channel {
                Some(channel) => Spot::Channel {
                    guild: None,
                    channel: channel.to_owned(),
                    parent: None,
                },
                None => Spot::Direct {
                    channel: "d".to_owned(),
                },
            },
            called,
            conversation: channel.unwrap_or("d").to_owned(),
            address: "a".to_owned(),
            content: Content::Text {
                text: "hello".to_owned(),
                files: Vec::new(),
            },
        }
    }

    #[test]
    fn each_message_has_one_profile_or_none() {
        let profiles = two();
        let admitted = |profile: &str, standing| Verdict::Admitted(profile.into(), standing);
        let member = |profile| admitted(profile, Standing::Member);
        let rows = [
            ("ann", Some("c1"), false, member("one")),
            ("ann", Some("c2"), false, member("two")),
            ("ann", None, true, member("one")),
            ("op", None, true, admitted("two", Standing::Operator)),
            ("op", Some("c1"), true, Verdict::Stranger("one".into())),
            ("bob", Some("c2"), true, Verdict::Stranger("two".into())),
            ("eve", None, true, Verdict::Stranger("one".into())),
            (
                "eve",
                Some("c1"),
                false,
                Verdict::Ignored(Silence::NotAddressed),
            ),
            (
                "ann",
                Some("c3"),
                true,
                Verdict::Ignored(Silence::Elsewhere),
            ),
            ("us", Some("c1"), true, Verdict::Ignored(Silence::Ourselves)),
            ("helper", Some("c2"), true, member("two")),
            ("helper", Some("c2"), false, Verdict::Ignored(Silence::Bot)),
            (
                "other-bot",
                Some("c1"),
                true,
                Verdict::Ignored(Silence::Bot),
            ),
        ];
        for (id, channel, called, want) in rows {
            let rules = profiles.iter().map(|(id, rules)| (id, rules));
            let got = judge(rules, &heard(id, channel, called), 0);
            assert_eq!(got, want, "{id} {channel:?} {called}");
        }
    }

    #[test]
    fn bots_talk_until_the_depth_and_a_person_begins_anew() {
        let profiles = two();
        let mut runs = BotRuns::default();
        let says = |id: &str| {
            let heard = heard(id, Some("c1"), true);
            let rules = profiles.iter().map(|(id, rules)| (id, rules));
            let verdict = judge(rules, &heard, runs.of(&heard.conversation));
            let admitted = matches!(verdict, Verdict::Admitted(..));
            runs.note(&heard, admitted);
            admitted
        };
        let all = ["helper", "helper", "helper", "other-bot", "eve", "helper"].map(says);
        assert_eq!(all, [true, true, false, false, false, true]);
    }

    #[test]
    fn the_profiles_of_a_place_are_found_whoever_speaks() {
        let profiles = two();
        let of = |channel| {
            let rules = profiles.iter().map(|(id, rules)| (id, rules));
            here(rules, &heard("eve", channel, true))
        };
        assert_eq!(of(None), [ProfileId::new("one"), ProfileId::new("two")]);
        assert_eq!(of(Some("c2")), [ProfileId::new("two")]);
        assert_eq!(of(Some("c3")), []);
    }
}
