//! What a close code of the gateway means (Discord's page on opcodes and status codes).

use platforms::adapter::{Finding, Severity};

/// How to go on after a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    /// Where it stopped.
    Resume,
    /// With a new session; this one is forgotten.
    Anew,
    /// Not at all: it would end the same way for ever.
    Never(Finding),
}

/// `None` = it ended without a code.
pub(crate) fn after(code: Option<u16>) -> After {
    let refused = |what: &str, hint: &str| {
        After::Never(Finding {
            severity: Severity::Fatal,
            what: format!(
                "Discord's gateway refused the connection (close code {}): {what}.",
                code.unwrap_or_default()
            ),
            hint: hint.to_owned(),
        })
    };
    match code {
        // 4003 not authenticated, 4005 identified twice, 4007 invalid sequence, 4009 timed out: the session is no more.
        Some(4003 | 4005 | 4007 | 4009) => After::Anew,
        Some(4004) => refused(
            "the token is not valid",
            "Reset the token on the Bot page of the application in the developer portal and give the new one to the gateway.",
        ),
        Some(4010) => refused(
            "invalid shard",
            "This is a fault of the gateway; please report it.",
        ),
        Some(4011) => refused(
            "the bot is in too many servers for one connection",
            "Take it out of servers it does not serve; one connection carries 2,500.",
        ),
        Some(4012) => refused(
            "the API version is no longer served",
            "Install a newer version of this program.",
        ),
        Some(4013) => refused(
            "invalid intents",
            "This is a fault of the gateway; please report it.",
        ),
        Some(4014) => refused(
            "an intent is not allowed for this bot",
            MESSAGE_CONTENT_HINT,
        ),
        _ => After::Resume,
    }
}

/// How to get the one privileged intent this program asks for.
pub(crate) const MESSAGE_CONTENT_HINT: &str = "Switch on \"Message Content Intent\" under Privileged Gateway Intents on the Bot page of the application in the developer portal.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_the_same_way_ends_for_good_and_says_what_to_do() {
        for code in [4004, 4010, 4011, 4012, 4013, 4014] {
            let After::Never(finding) = after(Some(code)) else {
                panic!("{code} goes on");
            };
            assert!(finding.what.contains(&code.to_string()) && !finding.hint.is_empty());
            assert_eq!(finding.severity, Severity::Fatal);
        }
        for code in [4003, 4005, 4007, 4009] {
            assert_eq!(after(Some(code)), After::Anew, "{code}");
        }
        for code in [
            None,
            Some(1000),
            Some(1001),
            Some(1006),
            Some(4000),
            Some(4001),
            Some(4002),
            Some(4008),
        ] {
            assert_eq!(after(code), After::Resume, "{code:?}");
        }
    }
}
