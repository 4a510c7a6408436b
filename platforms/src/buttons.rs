//! What stands in a button's `custom_id`: a word for the kind, a version, and an opaque id whose meaning is a row in the
//! store. So a button works after a restart, says nothing by itself, and a stale one is recognised instead of acting on
//! something else.
//!
//! Bounds: Discord takes 1 to 100 characters in `custom_id`, Slack 255 in `action_id` (their component references). One
//! form serves both. A platform sends back whatever a client sends, so decoding trusts nothing.

use std::fmt;

/// The longest `custom_id`, in characters: Discord's bound.
pub const CUSTOM_ID_MAX: usize = 100;

/// Begins every id of ours; a later layout of what follows counts it up.
const HEAD: &str = "baton1";

/// Ids are hexadecimal digits; fewer than these could be guessed.
const TOKEN_LENGTH: std::ops::RangeInclusive<usize> = 16..=64;

/// What a button does, as far as its message has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Undo a `/model` choice.
    UndoModel,
    /// Undo the last automatic switch.
    SwitchBack,
}

impl ActionKind {
    const ALL: [Self; 2] = [Self::UndoModel, Self::SwitchBack];

    /// The word in the id. Never changed: messages with it stand in channels for years.
    fn word(self) -> &'static str {
        match self {
            Self::UndoModel => "undo-model",
            Self::SwitchBack => "switch-back",
        }
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
        let kind = ActionKind::ALL
            .into_iter()
            .find(|kind| Some(kind.word()) == word);
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

/// What the store knows of an action when it is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Open,
    /// Pressed before, or undone by other means.
    Used,
    Expired,
    /// There is no such row.
    Unknown,
}

/// What a press comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    Act,
    /// Take the buttons off the message and say this to whoever pressed.
    Stale(String),
}

/// Decides on a press. `kind` = `None` where the id could not be decoded.
pub fn press(kind: Option<ActionKind>, standing: Standing) -> Press {
    let why = match standing {
        Standing::Open if kind.is_some() => return Press::Act,
        Standing::Used => "This was done already.",
        Standing::Expired | Standing::Unknown | Standing::Open => "This button is no longer valid.",
    };
    let instead = kind.map(|kind| format!(" Type {} instead.", kind.command()));
    Press::Stale(format!("{why}{}", instead.unwrap_or_default()))
}

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

    #[test]
    fn a_stale_button_says_what_to_type() {
        let kind = Some(ActionKind::UndoModel);
        assert_eq!(press(kind, Standing::Open), Press::Act);
        let rows = [
            (
                kind,
                Standing::Used,
                "This was done already. Type /model instead.",
            ),
            (
                kind,
                Standing::Expired,
                "This button is no longer valid. Type /model instead.",
            ),
            (
                kind,
                Standing::Unknown,
                "This button is no longer valid. Type /model instead.",
            ),
            (None, Standing::Open, "This button is no longer valid."),
        ];
        for (kind, standing, want) in rows {
            assert_eq!(press(kind, standing), Press::Stale(want.to_owned()));
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
