//! How a conversation gets to another route: natively, as what is new since, as a portable handover, or as a pointer to one.
//! And how large a handover may be (rows F of the routing contract): the request comes first and is never cut, so it is the
//! one thing that can make a route too small.

/// A context window nobody stated, in tokens.
const UNKNOWN_WINDOW: u64 = 128_000;
/// Room for the answer that no handover may take, in tokens; more in a large window.
const ANSWER_TOKENS: u64 = 16_000;
/// With less than this a handover says nothing that a pointer does not, in tokens.
const LEAST_TOKENS: u64 = 512;

/// What is to be carried, and where to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freight {
    /// The next model's window in tokens; `None` = unknown.
    pub context_window: Option<u64>,
    /// Tokens of the target's own prompt and history.
    pub native_tokens: u64,
    pub request_tokens: u64,
    /// The target resumes the native session; verified with the real program.
    pub native_resume_verified: bool,
    /// The target holds an earlier part of this conversation.
    pub returning: bool,
    /// A crash hid whether an earlier delivery arrived.
    pub delivery_ambiguous: bool,
}

/// How the conversation is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// Start the target's session anew rather than deliver twice.
    ReplaceNative,
    NativeResume,
    /// Only what happened since the target last saw it, within so many tokens.
    Delta(u64),
    /// Within so many tokens.
    Handoff(u64),
    /// Too little room for one: where it can be read. Carries what room there is.
    Pointer(u64),
    /// Not even the request fits.
    TooLarge,
}

/// Decides how to carry a conversation; `cap_tokens` is the most a handover may take.
pub fn carry(freight: &Freight, cap_tokens: u64) -> Carriage {
    let budget = budget_tokens(freight, cap_tokens);
    let window = freight.context_window.unwrap_or(UNKNOWN_WINDOW);
    let taken = freight.native_tokens.saturating_add(freight.request_tokens);
    if freight.delivery_ambiguous {
        Carriage::ReplaceNative
    } else if freight.native_resume_verified {
        Carriage::NativeResume
    } else if freight.returning {
        Carriage::Delta(budget)
    } else if taken.saturating_add(LEAST_TOKENS) > window {
        Carriage::TooLarge
    } else if budget < LEAST_TOKENS {
        Carriage::Pointer(budget)
    } else {
        Carriage::Handoff(budget)
    }
}

/// Tokens a handover may take: at most the cap and a quarter of the window, and never the room of the request, the target's
/// own history or the answer.
pub fn budget_tokens(freight: &Freight, cap_tokens: u64) -> u64 {
    let window = freight.context_window.unwrap_or(UNKNOWN_WINDOW);
    let taken = freight
        .native_tokens
        .saturating_add(freight.request_tokens)
        .saturating_add(ANSWER_TOKENS.max(window / 8));
    cap_tokens.min(window / 4).min(window.saturating_sub(taken))
}

/// Tokens of a text of so many bytes: a third, rounded up. Counted bytes overstate and would waste the room.
pub fn tokens_of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn freight(context_window: Option<u64>, request_tokens: u64) -> Freight {
        Freight {
            context_window,
            request_tokens,
            ..Freight::default()
        }
    }

    #[test]
    fn f1_to_f6_how_much_may_be_carried() {
        let rows = [
            (Some(200_000), 1_500, Carriage::Handoff(32_000)),
            (Some(64_000), 4_000, Carriage::Handoff(16_000)),
            (Some(32_000), 10_000, Carriage::Handoff(6_000)),
            (Some(32_000), 15_900, Carriage::Pointer(100)),
            (Some(32_000), 15_488, Carriage::Handoff(512)),
            (Some(32_000), 31_488, Carriage::Pointer(0)),
            (Some(32_000), 31_900, Carriage::TooLarge),
            (None, 0, Carriage::Handoff(32_000)),
            (Some(u64::MAX - 1), u64::MAX, Carriage::TooLarge),
        ];
        for (window, request, want) in rows {
            let got = carry(&freight(window, request), 32_000);
            assert_eq!(got, want, "{window:?} {request}");
        }
    }

    #[test]
    fn f7_to_f9_what_comes_before_a_handover() {
        let mut all = Freight {
            native_resume_verified: true,
            returning: true,
            delivery_ambiguous: true,
            ..freight(Some(1), 99)
        };
        assert_eq!(carry(&all, 32_000), Carriage::ReplaceNative);
        all.delivery_ambiguous = false;
        assert_eq!(carry(&all, 32_000), Carriage::NativeResume);
        all.native_resume_verified = false;
        assert_eq!(carry(&all, 32_000), Carriage::Delta(0));
    }

    #[test]
    fn tokens_are_a_third_of_the_bytes_rounded_up() {
        assert_eq!([0, 1, 3, 4].map(tokens_of_bytes), [0, 1, 1, 2]);
    }
}
