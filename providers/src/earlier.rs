//! The part of a conversation a session has not seen, as text before the prompt: for providers that keep sessions.

use crate::{AttemptRequest, Exchange};

/// The most of the earlier conversation that is sent as text, in bytes.
const CONTEXT_BYTES: usize = 64 * 1024;

/// What the session of this request has not seen: all of it if it is new, else the last `unseen` exchanges. `None` = it
/// has seen everything.
pub(crate) fn unseen(request: &AttemptRequest, resumed: bool) -> Option<String> {
    let unseen = match resumed {
        false => request.history.len(),
        true => request.unseen.min(request.history.len()),
    };
    let from = request.history.len() - unseen;
    earlier(request.history.get(from..).unwrap_or_default())
}

/// The exchanges as text, the newest that fit; `None` = there are none.
fn earlier(exchanges: &[Exchange]) -> Option<String> {
    let mut parts = Vec::new();
    let mut room = CONTEXT_BYTES;
    for exchange in exchanges.iter().rev() {
        let part = format!(
            "User: {}\n\nAssistant: {}",
            exchange.request, exchange.answer
        );
        match room.checked_sub(part.len()) {
            Some(left) => room = left,
            None => break,
        }
        parts.push(part);
    }
    parts.reverse();
    (!parts.is_empty()).then(|| {
        let told = parts.join("\n\n");
        format!("What was said earlier in this conversation, outside of this session:\n\n{told}\n\nThe next message follows.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(request: &str, answer: &str) -> Exchange {
        Exchange {
            request: request.to_owned(),
            answer: answer.to_owned(),
        }
    }

    #[test]
    fn earlier_exchanges_are_told_newest_first_within_the_bound() {
        assert_eq!(earlier(&[]), None);
        let told = earlier(&[exchange("q1", "a1"), exchange("q2", "a2")]).unwrap();
        assert!(
            told.find("q1").unwrap() < told.find("a2").unwrap(),
            "{told}"
        );
        let long = "x".repeat(CONTEXT_BYTES);
        let told = earlier(&[exchange("old", &long), exchange("new", "a")]).unwrap();
        assert!(told.contains("new") && !told.contains("old"));
        assert!(earlier(&[exchange("old", &long)]).is_none());
    }
}
