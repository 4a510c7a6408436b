//! What Discord's answers mean. Codes are those of its page on opcodes and status codes; pure.

use std::time::Duration;

use platforms::wire::{Scope, WireError};
use serde::Deserialize;
use serde_json::Value;

/// Why one request did not do its work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    /// 429, or the client's own limiter would have to wait. `after` = as told.
    Limited {
        after: Option<Duration>,
        scope: Scope,
    },
    Refused(Refusal),
    /// It never left, or was turned away at the door.
    NotDelivered(String),
    /// It may have been carried out.
    Uncertain(String),
}

/// A 4xx answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Discord's own code; 0 = it gave none.
    pub(crate) code: u64,
    pub(crate) message: String,
    /// The fields it complains about, for example `content`, with the first complaint's code each.
    pub(crate) fields: Vec<(String, String)>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}, code {})", self.message, self.status, self.code)?;
        for (field, code) in &self.fields {
            write!(f, ", {field}: {code}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limited { after, .. } => match after {
                Some(after) => write!(f, "rate limited for {:.1} s", after.as_secs_f64()),
                None => f.write_str("rate limited"),
            },
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NotDelivered(why) => write!(f, "not delivered: {why}"),
            Self::Uncertain(why) => write!(f, "unknown whether delivered: {why}"),
        }
    }
}

/// The headers an unsuccessful answer is read by.
#[derive(Debug, Default)]
pub(crate) struct Headers<'a> {
    /// Seconds.
    pub(crate) retry_after: Option<&'a str>,
    /// `user`, `global` or `shared`.
    pub(crate) scope: Option<&'a str>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    code: Option<u64>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    errors: Value,
    /// Seconds, more exact than the header.
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    global: Option<bool>,
}

/// Reads an answer that is no success.
pub(crate) fn read(status: u16, headers: &Headers<'_>, body: &[u8]) -> Trouble {
    let parsed = serde_json::from_slice::<Body>(body).ok();
    // Edits of old messages and slow mode are refused with a 429 too, which no pause of the channel would help.
    let own_rule = |body: &Body| matches!(body.code, Some(20_016 | 30_046));
    match status {
        429 if parsed.as_ref().is_some_and(own_rule) => Trouble::Refused(refusal(status, parsed)),
        429 => limited(headers, parsed.as_ref()),
        // 503: the front door has nobody to hand the request to (its page: "there was not a gateway available").
        502 | 503 => Trouble::NotDelivered(format!("Discord answered {status}")),
        400..=499 => Trouble::Refused(refusal(status, parsed)),
        _ => Trouble::Uncertain(format!("Discord answered {status}")),
    }
}

fn limited(headers: &Headers<'_>, body: Option<&Body>) -> Trouble {
    let header = headers
        .retry_after
        .and_then(|text| text.trim().parse().ok());
    let seconds = body.and_then(|body| body.retry_after).or(header);
    let seconds = seconds.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    let global = body.and_then(|body| body.global).unwrap_or_default();
    // Without a body of Discord's own it is the front door that limits, and it limits the whole address.
    let everything = global || headers.scope == Some("global") || body.is_none();
    Trouble::Limited {
        after: seconds.map(|seconds| Duration::from_secs_f64(seconds.min(86_400.0))),
        scope: match everything {
            true => Scope::Everything,
            false => Scope::Channel,
        },
    }
}

fn refusal(status: u16, body: Option<Body>) -> Refusal {
    let Some(body) = body else {
        return Refusal {
            status,
            code: 0,
            message: "no explanation".to_owned(),
            fields: Vec::new(),
        };
    };
    let mut fields = Vec::new();
    complaints(&body.errors, &mut String::new(), 0, &mut fields);
    Refusal {
        status,
        code: body.code.unwrap_or_default(),
        message: body.message.unwrap_or_default(),
        fields,
    }
}

/// `{"content": {"_errors": [{"code": …}]}}`, at any depth.
fn complaints(at: &Value, path: &mut String, depth: usize, found: &mut Vec<(String, String)>) {
    let Some(object) = at.as_object().filter(|_| depth < 16) else {
        return;
    };
    for (key, below) in object {
        if key == "_errors" {
            let first = below.get(0).and_then(|one| one.get("code"));
            let code = first.and_then(Value::as_str).unwrap_or_default();
            found.push((path.clone(), code.to_owned()));
            continue;
        }
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        complaints(below, path, depth + 1, found);
        path.truncate(length);
    }
}

impl Refusal {
    /// Whether the interaction's token no longer works: its 15 minutes are over, or it never was.
    pub(crate) fn is_dead_token(&self) -> bool {
        matches!(self.code, 10_015 | 10_062 | 50_027)
    }

    fn is_too_long(&self) -> bool {
        let content = |(field, _): &(String, String)| field == "content";
        self.code == 50_035 && self.fields.iter().any(content)
    }
}

impl From<Trouble> for WireError {
    fn from(trouble: Trouble) -> Self {
        let refusal = match trouble {
            Trouble::Limited { after, scope } => return Self::RateLimited { after, scope },
            Trouble::NotDelivered(why) => return Self::NotDelivered(why),
            Trouble::Uncertain(why) => return Self::Uncertain(why),
            Trouble::Refused(refusal) => refusal,
        };
        match refusal.code {
            10_008 => Self::MessageGone,
            30_046 => Self::EditTooOld,
            _ if refusal.is_too_long() => Self::TooLong,
            // Slow mode of the channel, which bots without a right to pass it have to obey.
            20_016 => Self::RateLimited {
                after: None,
                scope: Scope::Channel,
            },
            // Unknown channel, server; no access, no right, closed direct messages; archived and locked threads.
            10_003 | 10_004 | 50_001 | 50_007 | 50_013 | 50_083 | 160_005 => {
                Self::PlaceGone(place_gone(&refusal))
            }
            _ => Self::Refused(refusal.to_string()),
        }
    }
}

fn place_gone(refusal: &Refusal) -> String {
    let hint = match refusal.code {
        10_003 | 10_004 => "it does not exist any more",
        50_001 => "give the bot's role the right View Channel there",
        50_013 => "give the bot's role the rights Send Messages and Send Messages in Threads there",
        50_007 => "the person takes no direct messages from it",
        50_083 => "the thread is archived; somebody has to write in it first",
        _ => "it is locked",
    };
    format!("{} ({})", refusal.message, hint)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(status: u16, body: &Value) -> WireError {
        read(status, &Headers::default(), body.to_string().as_bytes()).into()
    }

    #[test]
    fn every_answer_the_outbox_tells_apart() {
        let code = |status: u16, code: u64| of(status, &json!({ "message": "m", "code": code }));
        let too_long = json!({ "code": 50035, "message": "Invalid Form Body", "errors": {
            "content": { "_errors": [{ "code": "BASE_TYPE_MAX_LENGTH", "message": "…" }] } } });
        let other = json!({ "code": 50035, "message": "Invalid Form Body", "errors": {
            "components": { "0": { "_errors": [{ "code": "X", "message": "…" }] } } } });
        assert_eq!(of(400, &too_long), WireError::TooLong);
        assert!(
            matches!(of(400, &other), WireError::Refused(why) if why.contains("components.0: X"))
        );
        assert_eq!(code(404, 10_008), WireError::MessageGone);
        assert_eq!(code(429, 30_046), WireError::EditTooOld);
        assert!(matches!(
            code(429, 20_016),
            WireError::RateLimited {
                after: None,
                scope: Scope::Channel
            }
        ));
        for gone in [10_003, 50_001, 50_013, 50_083] {
            assert!(matches!(code(403, gone), WireError::PlaceGone(_)), "{gone}");
        }
        assert!(matches!(code(401, 0), WireError::Refused(_)));
        assert!(matches!(code(400, 50_006), WireError::Refused(_)));
        assert!(matches!(code(500, 0), WireError::Uncertain(_)));
        assert!(matches!(code(504, 0), WireError::Uncertain(_)));
        assert!(matches!(code(503, 0), WireError::NotDelivered(_)));
    }

    #[test]
    fn a_limit_says_how_long_and_how_far() {
        let body = |global| json!({ "message": "m", "retry_after": 0.35, "global": global });
        let limit = |body: &str, scope| {
            let headers = Headers {
                retry_after: Some("1"),
                scope,
            };
            read(429, &headers, body.as_bytes())
        };
        let limited = |seconds, scope| Trouble::Limited {
            after: Some(Duration::from_secs_f64(seconds)),
            scope,
        };
        assert_eq!(
            limit(&body(false).to_string(), Some("user")),
            limited(0.35, Scope::Channel)
        );
        assert_eq!(
            limit(&body(true).to_string(), None),
            limited(0.35, Scope::Everything)
        );
        assert_eq!(
            limit(&body(false).to_string(), Some("global")),
            limited(0.35, Scope::Everything)
        );
        assert_eq!(
            limit("error code: 1015", None),
            limited(1.0, Scope::Everything)
        );
        let bare = read(429, &Headers::default(), b"error code: 1015");
        assert_eq!(
            bare,
            Trouble::Limited {
                after: None,
                scope: Scope::Everything
            }
        );
    }

    proptest! {
        #[test]
        fn whatever_is_answered_is_read(status in 100_u16..1000, body in prop::collection::vec(any::<u8>(), 0..200), header in "\\PC{0,20}") {
            let headers = Headers { retry_after: Some(&header), scope: Some(&header) };
            let error: WireError = read(status, &headers, &body).into();
            prop_assert_eq!(matches!(error, WireError::RateLimited { .. }), status == 429);
        }
    }
}
