//! What Slack's refusals mean: for a message ([`wire_error`]), and for whether the app can serve at all ([`Refusal`]).
//!
//! Slack answers most refusals with 200 and a word in `error` (the "errors" tables of each method's page). Words that are
//! not listed here are refusals of the one message.

use platforms::adapter::{Finding, Severity};
use platforms::wire::{Scope, WireError};
use slack_morphism::errors::{SlackClientApiError, SlackClientError};

/// What a failed call means for the message it was about.
pub(crate) fn wire_error(method: &str, error: SlackClientError) -> WireError {
    match error {
        SlackClientError::RateLimitError(limited) => WireError::RateLimited {
            after: limited.retry_after,
            scope: scope(method),
        },
        SlackClientError::ApiError(refused) => by_word(method, &refused),
        SlackClientError::HttpError(answered) if answered.status_code.is_server_error() => {
            WireError::Uncertain(format!("{method}: Slack answered {}", answered.status_code))
        }
        SlackClientError::HttpError(answered) => {
            WireError::Refused(format!("{method}: Slack answered {}", answered.status_code))
        }
        SlackClientError::HttpProtocolError(broken) => {
            let cause = broken.cause;
            let why = match &cause {
                Some(cause) => format!("{method}: {}", with_sources(cause.as_ref())),
                None => format!("{method}: the connection broke"),
            };
            let never_left = cause
                .as_ref()
                .and_then(|cause| cause.downcast_ref::<reqwest::Error>())
                .is_some_and(|error| error.is_connect() || error.is_builder());
            match never_left {
                true => WireError::NotDelivered(why),
                false => WireError::Uncertain(why),
            }
        }
        SlackClientError::SystemError(fault) => WireError::Refused(format!("{method}: {fault}")),
        other => WireError::Uncertain(format!("{method}: {other}")),
    }
}

/// Posting is limited per channel, everything else per method, app and workspace.
fn scope(method: &str) -> Scope {
    match method {
        "chat.postMessage" => Scope::Channel,
        _ => Scope::Kind,
    }
}

fn by_word(method: &str, refused: &SlackClientApiError) -> WireError {
    let word = refused.code.as_str();
    let gone = |hint: &str| WireError::PlaceGone(format!("{word}: {hint}"));
    match word {
        "ratelimited" | "rate_limited" => WireError::RateLimited {
            after: None,
            scope: scope(method),
        },
        "msg_too_long" | "msg_blocks_too_long" => WireError::TooLong,
        "edit_window_closed" | "cant_update_message" => WireError::EditTooOld,
        "message_not_found" | "cant_delete_message" => WireError::MessageGone,
        "channel_not_found" => gone(
            "there is no such channel, or it is private and the bot is not in it; type /invite @bot there",
        ),
        "not_in_channel" => gone("the bot is not in the channel; type /invite @bot there"),
        "user_not_in_channel" => gone("the person is not in the channel"),
        "is_archived" => gone("the channel is archived"),
        "thread_not_found" | "cannot_reply_to_message" => gone("the thread is gone"),
        "restricted_action"
        | "restricted_action_read_only_channel"
        | "restricted_action_thread_only_channel"
        | "restricted_action_non_threadable_channel"
        | "restricted_action_thread_locked"
        | "channel_is_limited_access" => {
            gone("a workspace setting keeps the bot from posting there")
        }
        "messages_tab_disabled" => gone(
            "direct messages to the app are switched off; enable App Home > Messages Tab in the app's settings",
        ),
        "cannot_dm_bot" | "user_disabled" | "user_not_found" => gone("nobody reads there"),
        "team_access_not_granted" | "no_permission" | "ekm_access_denied" | "access_denied" => {
            gone("the app may not write in this workspace")
        }
        word if credentials(word).is_some() => {
            gone(credentials(word).unwrap_or("the token does not work"))
        }
        "missing_scope" => WireError::Refused(format!("{method}: {}", missing_scope(refused))),
        "service_unavailable" | "request_timeout" | "accesslimited" => {
            WireError::NotDelivered(format!("{method}: {word}"))
        }
        // Slack: "some aspect of the operation succeeded before the error was raised".
        "internal_error" | "fatal_error" => WireError::Uncertain(format!("{method}: {word}")),
        word => WireError::Refused(format!("{method}: {word}")),
    }
}

/// Whether the app can go on after a failed call at start, or for a socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing but the operator can mend it.
    ForGood(Finding),
    /// It may work later; the platform may have said when.
    ForNow(WireError),
}

/// What a failed call of `method` with the token that is configured as `token` means for the app.
pub(crate) fn refusal(method: &str, token: &str, error: SlackClientError) -> Refusal {
    let fatal = |what: String, hint: &str| {
        Refusal::ForGood(Finding {
            severity: Severity::Fatal,
            what,
            hint: hint.to_owned(),
        })
    };
    if let SlackClientError::ApiError(refused) = &error {
        let word = refused.code.as_str();
        if word == "missing_scope" {
            let what = format!(
                "Slack refused the {token} at {method}: {}.",
                missing_scope(refused)
            );
            let hint = match token {
                "app token" => {
                    "Generate an app-level token with the scope connections:write (app settings > Basic Information)."
                }
                _ => "Add the scope under OAuth & Permissions and reinstall the app.",
            };
            return fatal(what, hint);
        }
        if let Some(hint) = credentials(word) {
            let what = format!("Slack refused the {token} at {method}: {word}.");
            return fatal(what, &sentence(hint));
        }
    }
    Refusal::ForNow(wire_error(method, error))
}

/// What to do about a word that means the token does not work; `None` = it means something else.
fn credentials(word: &str) -> Option<&'static str> {
    Some(match word {
        "invalid_auth" | "not_authed" => {
            "the token is wrong or was revoked; copy it again from the app's settings"
        }
        "account_inactive" | "user_removed_from_team" => {
            "the app was uninstalled or its bot removed; install it again and copy the new token"
        }
        "token_revoked" | "token_expired" => {
            "the token was revoked or has expired; install the app again and copy the new one"
        }
        "not_allowed_token_type" => {
            "it is the other kind of token: the bot token begins with xoxb-, the app token with xapp-"
        }
        "org_login_required" | "team_added_to_org" => {
            "the workspace is moving to an organisation; install the app there"
        }
        "ekm_access_denied" | "two_factor_setup_required" => {
            "an administrator of the workspace has to allow it"
        }
        _ => return None,
    })
}

fn missing_scope(refused: &SlackClientApiError) -> String {
    #[derive(serde::Deserialize)]
    struct Needed {
        needed: Option<String>,
    }
    let body = refused.http_response_body.as_deref().unwrap_or("{}");
    let needed = serde_json::from_str::<Needed>(body);
    match needed.ok().and_then(|answer| answer.needed) {
        Some(needed) => format!("the scope {needed} is missing"),
        None => "a scope is missing".to_owned(),
    }
}

fn sentence(hint: &str) -> String {
    let mut letters = hint.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).chain(['.']).collect(),
        None => String::new(),
    }
}

fn with_sources(error: &(dyn std::error::Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        said.push_str(": ");
        said.push_str(&cause.to_string());
        source = cause.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::StatusCode;
    use slack_morphism::errors::{SlackClientHttpError, SlackRateLimitError};

    use super::*;

    fn refused(word: &str) -> SlackClientError {
        SlackClientError::ApiError(SlackClientApiError::new(word.to_owned()))
    }

    #[test]
    fn every_word_has_its_meaning() {
        let kind = |error: WireError| match error {
            WireError::RateLimited { .. } => "limited",
            WireError::TooLong => "too long",
            WireError::EditTooOld => "too old",
            WireError::MessageGone => "message gone",
            WireError::PlaceGone(_) => "place gone",
            WireError::Refused(_) => "refused",
            WireError::NotDelivered(_) => "not delivered",
            WireError::Uncertain(_) => "uncertain",
        };
        let rows = [
            ("ratelimited", "limited"),
            ("msg_too_long", "too long"),
            ("msg_blocks_too_long", "too long"),
            ("edit_window_closed", "too old"),
            ("cant_update_message", "too old"),
            ("message_not_found", "message gone"),
            ("channel_not_found", "place gone"),
            ("not_in_channel", "place gone"),
            ("is_archived", "place gone"),
            ("invalid_auth", "place gone"),
            ("missing_scope", "refused"),
            ("invalid_blocks", "refused"),
            ("a_word_of_next_year", "refused"),
            ("service_unavailable", "not delivered"),
            ("internal_error", "uncertain"),
        ];
        for (word, want) in rows {
            assert_eq!(
                kind(wire_error("chat.update", refused(word))),
                want,
                "{word}"
            );
        }
        let broke = SlackClientHttpError::new(StatusCode::BAD_GATEWAY);
        let broke = wire_error("chat.update", SlackClientError::HttpError(broke));
        assert_eq!(kind(broke), "uncertain");
    }

    #[test]
    fn a_limit_reaches_as_far_as_slack_counts() {
        let limited = || {
            let after = SlackRateLimitError::new().with_retry_after(Duration::from_secs(7));
            SlackClientError::RateLimitError(after)
        };
        let rows = [
            ("chat.postMessage", Scope::Channel),
            ("chat.update", Scope::Kind),
            ("chat.postEphemeral", Scope::Kind),
        ];
        for (method, scope) in rows {
            let after = Some(Duration::from_secs(7));
            let want = WireError::RateLimited { after, scope };
            assert_eq!(wire_error(method, limited()), want, "{method}");
        }
    }

    #[test]
    fn what_the_operator_must_mend_says_how() {
        let missing = SlackClientApiError::new("missing_scope".to_owned())
            .with_http_response_body(r#"{"ok":false,"needed":"connections:write"}"#.to_owned());
        let said = |refusal: Refusal| match refusal {
            Refusal::ForGood(finding) => finding.to_string(),
            Refusal::ForNow(error) => format!("later: {error}"),
        };
        let open = "apps.connections.open";
        insta::assert_snapshot!(
            said(refusal(open, "app token", SlackClientError::ApiError(missing))),
            @"Slack refused the app token at apps.connections.open: the scope connections:write is missing. Generate an app-level token with the scope connections:write (app settings > Basic Information)."
        );
        insta::assert_snapshot!(
            said(refusal("auth.test", "bot token", refused("invalid_auth"))),
            @"Slack refused the bot token at auth.test: invalid_auth. The token is wrong or was revoked; copy it again from the app's settings."
        );
        insta::assert_snapshot!(
            said(refusal(open, "app token", refused("not_allowed_token_type"))),
            @"Slack refused the app token at apps.connections.open: not_allowed_token_type. It is the other kind of token: the bot token begins with xoxb-, the app token with xapp-."
        );
        insta::assert_snapshot!(
            said(refusal(open, "app token", refused("internal_error"))),
            @"later: unknown whether delivered: apps.connections.open: internal_error"
        );
    }
}
