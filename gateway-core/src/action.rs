//! Buttons that outlive the process. What stands in a button's `custom_id` is a word for the kind, a version, and an opaque
//! id whose meaning is a row in the store ([`Action`]). So a button works after a restart, says nothing by itself, and a
//! stale one is recognised instead of acting on something else. What a press comes to is decided here.
//!
//! Bounds: Discord takes 1 to 100 characters in `custom_id`, Slack 255 in `action_id` (their component references). One
//! form serves both. A platform sends back whatever a client sends, so decoding trusts nothing.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, ProfileId, SessionKey};
use crate::message::Standing;
use crate::route::Route;

/// The longest `custom_id`, in characters: Discord's bound.
pub const CUSTOM_ID_MAX: usize = 100;

/// Begins every id of ours; a later layout of what follows counts it up.
const HEAD: &str = "baton1";

/// Ids are hexadecimal digits; fewer than these could be guessed.
const TOKEN_LENGTH: std::ops::RangeInclusive<usize> = 16..=64;

/// How long an undo works. A choice that has held for a day is how things are, no longer a slip.
pub const UNDO_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What a button does, as far as its message has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionKind {
    /// Undo a `/model` choice.
    UndoModel,
    /// Undo the last automatic switch.
    SwitchBack,
}

impl ActionKind {
    const ALL: [Self; 2] = [Self::UndoModel, Self::SwitchBack];

    /// The word in the id and in the store. Never changed: messages with it stand in channels for years.
    pub fn word(self) -> &'static str {
        match self {
            Self::UndoModel => "undo-model",
            Self::SwitchBack => "switch-back",
        }
    }

    /// The kind of a word; `None` = another version's.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// What stands on the button.
    pub fn label(self) -> &'static str {
        match self {
            Self::UndoModel => "Undo",
            Self::SwitchBack => "Switch back",
        }
    }

    /// What a person can type instead, for a button that no longer works.
    pub fn command(self) -> &'static str {
        match self {
            Self::UndoModel => "/model",
            Self::SwitchBack => "/switch-back",
        }
    }
}

/// One button's action: its kind, and the id of its row in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionId {
    kind: ActionKind,
    token: String,
}

impl ActionId {
    /// An action under `token`, which must be 16 to 64 lower-case hexadecimal digits from a random source (a UUID without
    /// its dashes is); `None` = it is not.
    pub fn new(kind: ActionKind, token: &str) -> Option<Self> {
        is_token(token).then(|| Self {
            kind,
            token: token.to_owned(),
        })
    }

    pub fn kind(&self) -> ActionKind {
        self.kind
    }

    /// The key of the row that says what the action is about, who may use it and whether it was used.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Reads a `custom_id` that came back.
    pub fn decode(custom_id: &str) -> Result<Self, NotOurs> {
        let mut parts = custom_id.split(':');
        let (head, word, token) = (parts.next(), parts.next(), parts.next());
        if head != Some(HEAD) {
            let earlier = head.is_some_and(|head| head.starts_with("baton"));
            return Err(if earlier {
                NotOurs::OtherVersion
            } else {
                NotOurs::Foreign
            });
        }
        let kind = word.and_then(ActionKind::of_word);
        match (kind, token, parts.next()) {
            (Some(kind), Some(token), None) => Self::new(kind, token).ok_or(NotOurs::OtherVersion),
            _ => Err(NotOurs::OtherVersion),
        }
    }
}

/// The `custom_id`.
impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}:{}:{}", self.kind.word(), self.token)
    }
}

fn is_token(text: &str) -> bool {
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    TOKEN_LENGTH.contains(&text.len()) && text.chars().all(is_digit)
}

/// Why a `custom_id` names no action of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// Another program made it; it is left alone.
    #[error("the button is not one of ours")]
    Foreign,
    /// Another version of this gateway made it, or somebody tampered with it.
    #[error("the button is from another version of the gateway")]
    OtherVersion,
}

/// A button that is about to be shown: what its row holds before the store adds what it undoes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub id: ActionId,
    /// The platform it is shown on: ids of people are the platform's.
    pub platform: String,
    /// The one who may press it beside operators; `None` = everybody who may speak there.
    pub only_for: Option<String>,
    pub made_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A button's row in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub offer: Offer,
    pub profile: ProfileId,
    pub session: SessionKey,
    /// It acts on this conversation and on no other.
    pub conversation: ConversationId,
    pub undoes: Undoes,
    pub state: ActionState,
}

/// What a button takes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undoes {
    /// A `/model` choice: from `made` back to `former`; `None` = the chain decides.
    Choice {
        made: Option<Route>,
        former: Option<Route>,
    },
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionState {
    Open,
    Used,
    /// Something newer stands in its place.
    Replaced,
}

/// Who presses, and where.
#[derive(Debug, Clone, Copy)]
pub struct Presser<'a> {
    pub platform: &'a str,
    pub profile: &'a ProfileId,
    /// The platform's id of the person.
    pub id: &'a str,
    pub standing: Standing,
}

/// What a press comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Act,
    /// It will never work again: the buttons come off the message.
    Stale(Stale),
    /// Not by this person; the button stays for those who may.
    NotYours,
}

/// Why a button works no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// Pressed before.
    Used,
    Replaced,
    Expired,
    /// There is no such row, or it is of another place.
    Unknown,
}

/// Decides on a press. Who may not press learns nothing about the state.
pub fn judge(action: Option<&Action>, presser: Presser<'_>, now: Timestamp) -> Verdict {
    let is_here = |action: &&Action| {
        action.offer.platform == presser.platform && action.profile == *presser.profile
    };
    let Some(action) = action.filter(is_here) else {
        return Verdict::Stale(Stale::Unknown);
    };
    let may = match &action.offer.only_for {
        Some(person) => person == presser.id || presser.standing >= Standing::Operator,
        None => true,
    };
    match action.state {
        _ if !may => Verdict::NotYours,
        ActionState::Used => Verdict::Stale(Stale::Used),
        ActionState::Replaced => Verdict::Stale(Stale::Replaced),
        ActionState::Open if action.offer.expires_at <= now => Verdict::Stale(Stale::Expired),
        ActionState::Open => Verdict::Act,
    }
}

/// What is said of a stale button to whoever pressed it. `kind` = `None` where the id could not be decoded.
pub fn stale(why: Stale, kind: Option<ActionKind>) -> String {
    let why = match why {
        Stale::Used => "This was done already.",
        Stale::Replaced => "Something newer was chosen since; this button is no longer valid.",
        Stale::Expired | Stale::Unknown => "This button is no longer valid.",
    };
    let instead = kind.map(|kind| format!(" Type {} instead.", kind.command()));
    format!("{why}{}", instead.unwrap_or_default())
}

/// What is said to somebody who may not press.
pub const NOT_YOURS: &str = "This button is for the person it was shown to, or for an operator.";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn an_id_fits_every_platform_and_comes_back() {
        for kind in ActionKind::ALL {
            let longest = ActionId::new(kind, &"f".repeat(64)).unwrap();
            assert!(longest.to_string().len() <= CUSTOM_ID_MAX, "{longest}");
            assert_eq!(ActionId::decode(&longest.to_string()), Ok(longest));
        }
        let action = ActionId::new(ActionKind::UndoModel, TOKEN).unwrap();
        assert_eq!(action.to_string(), format!("baton1:undo-model:{TOKEN}"));
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_old() {
        let rows = [
            ("", NotOurs::Foreign),
            ("vote:1", NotOurs::Foreign),
            ("baton2:undo-model:0123456789abcdef", NotOurs::OtherVersion),
            ("baton1:gone:0123456789abcdef", NotOurs::OtherVersion),
            ("baton1:undo-model:short", NotOurs::OtherVersion),
            ("baton1:undo-model:0123456789ABCDEF", NotOurs::OtherVersion),
            (
                "baton1:undo-model:0123456789abcdef:x",
                NotOurs::OtherVersion,
            ),
            ("baton1", NotOurs::OtherVersion),
        ];
        for (text, want) in rows {
            assert_eq!(ActionId::decode(text), Err(want), "{text}");
        }
    }

    fn action(state: ActionState) -> Action {
        Action {
            offer: Offer {
                id: ActionId::new(ActionKind::UndoModel, TOKEN).unwrap(),
                platform: "discord".to_owned(),
                only_for: Some("ann".to_owned()),
                made_at: Timestamp::UNIX_EPOCH,
                expires_at: Timestamp::UNIX_EPOCH + UNDO_FOR,
            },
            profile: "default".into(),
            session: "lane".into(),
            conversation: "c-1".into(),
            undoes: Undoes::Choice {
                made: None,
                former: Some(Route::new("s", "m")),
            },
            state,
        }
    }

    #[test]
    fn a_press_acts_once_in_its_time_and_for_those_who_may() {
        use ActionState::{Open, Replaced, Used};
        let (ann, bob) = (("ann", Standing::Member), ("bob", Standing::Member));
        let operator = ("bob", Standing::Operator);
        let stale = Verdict::Stale;
        let rows = [
            ("the asker", Open, ann, 0, Verdict::Act),
            ("an operator", Open, operator, 0, Verdict::Act),
            ("somebody else", Open, bob, 0, Verdict::NotYours),
            ("somebody else, late", Used, bob, 0, Verdict::NotYours),
            ("the last moment", Open, ann, 24 * 3_600 - 1, Verdict::Act),
            ("expired", Open, ann, 24 * 3_600, stale(Stale::Expired)),
            ("used", Used, ann, 0, stale(Stale::Used)),
            (
                "used and expired",
                Used,
                ann,
                99 * 3_600,
                stale(Stale::Used),
            ),
            ("replaced", Replaced, ann, 0, stale(Stale::Replaced)),
        ];
        for (name, state, (id, standing), second, want) in rows {
            let presser = Presser {
                platform: "discord",
                profile: &"default".into(),
                id,
                standing,
            };
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(judge(Some(&action(state)), presser, now), want, "{name}");
        }
    }

    #[test]
    fn a_button_of_another_place_is_no_button() {
        let open = action(ActionState::Open);
        for (platform, profile) in [("slack", "default"), ("discord", "work")] {
            let presser = Presser {
                platform,
                profile: &profile.into(),
                id: "ann",
                standing: Standing::Operator,
            };
            let verdict = judge(Some(&open), presser, Timestamp::UNIX_EPOCH);
            assert_eq!(
                verdict,
                Verdict::Stale(Stale::Unknown),
                "{platform} {profile}"
            );
        }
    }

    #[test]
    fn what_everybody_may_press_everybody_may_press() {
        let mut open = action(ActionState::Open);
        open.offer.only_for = None;
        let presser = Presser {
            platform: "discord",
            profile: &"default".into(),
            id: "anybody",
            standing: Standing::Member,
        };
        assert_eq!(
            judge(Some(&open), presser, Timestamp::UNIX_EPOCH),
            Verdict::Act
        );
    }

    #[test]
    fn a_stale_button_says_what_to_type() {
        let kind = Some(ActionKind::UndoModel);
        let rows = [
            (
                kind,
                Stale::Used,
                "This was done already. Type /model instead.",
            ),
            (
                kind,
                Stale::Replaced,
                "Something newer was chosen since; this button is no longer valid. Type /model instead.",
            ),
            (
                kind,
                Stale::Expired,
                "This button is no longer valid. Type /model instead.",
            ),
            (None, Stale::Unknown, "This button is no longer valid."),
        ];
        for (kind, why, want) in rows {
            assert_eq!(stale(why, kind), want);
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_back_is_decoded_or_refused(text in any::<String>()) {
            if let Ok(action) = ActionId::decode(&text) {
                prop_assert_eq!(action.to_string(), text);
            }
        }

        #[test]
        fn every_token_comes_back(token in "[0-9a-f]{16,64}") {
            let action = ActionId::new(ActionKind::SwitchBack, &token).unwrap();
            let decoded = ActionId::decode(&action.to_string());
            prop_assert_eq!(decoded, Ok(action));
        }
    }
}
