//! When a full session is retired. A request retires at most one, and never for a failure that a new session would share.
//!
//! | what overflowed | means | so |
//! |---|---|---|
//! | a resumed session | it is full | retire it, open its successor, ask once more |
//! | a resumed session, and the failure is about the request | an image, a tier or a cap is too small for this request | the session stays |
//! | a session just opened | this request does not fit a fresh one | nothing is retired: the next would fail alike |
//! | anything, after a rotation in the same request | it does not fit either | the failure is the answer |
//! | a route without sessions | the transcript does not fit | the failure is the answer |
//!
//! Retiring is a compare-and-swap in the store, on the id of the session that overflowed: of several requests that meet the
//! same full session one retires it and the others [join](Swap::Joined) its successor. It is durable before anything is
//! sent to the successor, so that a request that dies there has still done it for the next one.

use serde::{Deserialize, Serialize};

use super::title::{Foreign, Title};
use crate::failure::{Failure, FailureKind, FailureScope};

/// How the attempt that failed came by its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// It resumed one.
    Resume,
    /// It opened one.
    Create,
    /// The route keeps none.
    None,
}

/// What follows from a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The session stays; the failure is dealt with like any other.
    Keep,
    /// The session is full: retire it and ask its successor.
    Retire { successor: Title },
    /// The request does not fit a new session.
    DoesNotFit,
    /// The session is full and not ours to retire, or there is no further generation.
    Stuck(Foreign),
}

/// Judges a failure of the session with this title. `rotated` = this request has retired or joined already.
pub fn judge(failure: &Failure, arm: Arm, title: &str, rotated: bool) -> Verdict {
    if failure.kind != FailureKind::ContextOverflow {
        return Verdict::Keep;
    }
    match arm {
        Arm::None => Verdict::Keep,
        Arm::Create => Verdict::DoesNotFit,
        Arm::Resume if failure.scope != FailureScope::Session => Verdict::Keep,
        Arm::Resume if rotated => Verdict::DoesNotFit,
        Arm::Resume => match title.parse::<Title>().map(Title::successor) {
            Ok(Some(successor)) => Verdict::Retire { successor },
            Ok(None) => Verdict::Stuck(Foreign(title.to_owned())),
            Err(foreign) => Verdict::Stuck(foreign),
        },
    }
}

/// Why a session was retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was full.
    Overflow,
    /// It was about to be full.
    NearlyFull,
    /// The client's instructions changed.
    InstructionsChanged,
    /// The client's transcript went another way.
    Diverged,
}

impl Reason {
    /// The word in logs, headers and the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::NearlyFull => "nearly_full",
            Self::InstructionsChanged => "instructions_changed",
            Self::Diverged => "diverged",
        }
    }

    /// Reads [`Reason::word`].
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Overflow,
            Self::NearlyFull,
            Self::InstructionsChanged,
            Self::Diverged,
        ]
        .into_iter()
        .find(|reason| reason.word() == word)
    }
}

/// What became of a wish to retire a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// It is retired; the live generation is now this one.
    Retired { generation: u32 },
    /// It was not the live one any more: somebody else was first. The live generation is this one.
    Joined { generation: u32 },
}

impl Swap {
    /// The live generation.
    pub fn generation(self) -> u32 {
        match self {
            Self::Retired { generation } | Self::Joined { generation } => generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "baton-5a36669b9a22d7cc";

    fn failed(kind: FailureKind) -> Failure {
        Failure::new(kind, FailureScope::Session, "x")
    }

    fn overflow() -> Failure {
        failed(FailureKind::ContextOverflow)
    }

    #[test]
    fn cases_14_and_23_nothing_but_an_overflow_retires() {
        use FailureKind::*;
        let others = [
            RateLimit,
            Billing,
            UpstreamRateLimit,
            Overloaded,
            Timeout,
            Transport,
            Auth,
            ContentFilter,
            BadRequest,
            Crashed,
        ];
        for kind in others {
            for arm in [Arm::Resume, Arm::Create, Arm::None] {
                assert_eq!(
                    judge(&failed(kind), arm, TITLE, false),
                    Verdict::Keep,
                    "{kind:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_with_the_request_retires_no_session() {
        use FailureScope::*;
        for scope in [Request, Account, Burst, UpstreamShared, NetworkEdge] {
            let failure = Failure::new(FailureKind::ContextOverflow, scope.clone(), "x");
            for rotated in [false, true] {
                assert_eq!(
                    judge(&failure, Arm::Resume, TITLE, rotated),
                    Verdict::Keep,
                    "{scope:?}"
                );
            }
        }
    }

    #[test]
    fn cases_15_and_16_each_overflow_of_a_resumed_session_opens_the_next_generation() {
        let mut title = TITLE.to_owned();
        for n in 1..=4 {
            let Verdict::Retire { successor } = judge(&overflow(), Arm::Resume, &title, false)
            else {
                panic!("generation {n} was not opened");
            };
            title = successor.to_string();
            assert_eq!(title, format!("{TITLE}-g{n}"));
        }
    }

    #[test]
    fn cases_17_and_18_what_is_not_ours_is_reported_and_left() {
        let stuck = [
            "my holiday",
            "baton-5a36669b9a22d7cc-g0",
            "baton-5a36669b9a22d7cc-g4294967295",
        ];
        for title in stuck {
            let verdict = judge(&overflow(), Arm::Resume, title, false);
            assert_eq!(verdict, Verdict::Stuck(Foreign(title.to_owned())));
        }
    }

    #[test]
    fn case_24_a_route_without_sessions_has_nothing_to_retire() {
        assert_eq!(judge(&overflow(), Arm::None, TITLE, false), Verdict::Keep);
    }

    #[test]
    fn case_26_what_does_not_fit_a_new_session_moves_no_generation() {
        assert_eq!(
            judge(&overflow(), Arm::Create, TITLE, true),
            Verdict::DoesNotFit
        );
        assert_eq!(
            judge(&overflow(), Arm::Create, TITLE, false),
            Verdict::DoesNotFit
        );
    }

    #[test]
    fn a_request_rotates_once() {
        assert_eq!(
            judge(&overflow(), Arm::Resume, TITLE, true),
            Verdict::DoesNotFit
        );
    }

    #[test]
    fn reasons_are_read_back() {
        use Reason::*;
        for reason in [Overflow, NearlyFull, InstructionsChanged, Diverged] {
            assert_eq!(Reason::from_word(reason.word()), Some(reason));
        }
        assert_eq!(Reason::from_word("other"), None);
    }
}
