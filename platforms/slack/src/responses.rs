//! The `response_url`s of commands and presses: five posts within 30 minutes each (Slack's documentation, handling user
//! interaction). In memory and bounded; an answer whose URL is unknown, spent or too old goes another way.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Posts one URL takes.
const USES: u8 = 5;

/// A little less than Slack's half hour, so that a post does not arrive too late.
const LIVES: Duration = Duration::from_secs(29 * 60);

/// More than a busy workspace needs in half an hour; the oldest go first.
const KEPT: usize = 10_000;

/// What is known of one command or press.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) url: String,
    /// What the pressed message shows, to show it again without its buttons; `None` for commands.
    pub(crate) pressed: Option<Pressed>,
}

/// The message a button was on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pressed {
    /// Its blocks and its text, as Slack sent them back.
    Blocks { blocks: Vec<Value>, text: String },
    /// Slack does not send private messages back; the button carried the text.
    Text(String),
}

#[derive(Debug, Default)]
pub(crate) struct Responses {
    known: HashMap<String, (Response, u8, Instant)>,
    /// Keys, oldest first.
    order: VecDeque<String>,
}

impl Responses {
    /// Remembers a response under `key`.
    pub(crate) fn keep(&mut self, key: &str, response: Response, now: Instant) {
        let fresh = (response, USES, now + LIVES);
        if self.known.insert(key.to_owned(), fresh).is_none() {
            self.order.push_back(key.to_owned());
        }
        while let Some(oldest) = self.order.front() {
            let is_over = |(_, _, until): &(Response, u8, Instant)| *until <= now;
            if self.order.len() <= KEPT && !self.known.get(oldest).is_none_or(is_over) {
                return;
            }
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Uses a URL once; `None` = it is unknown, spent or too old.
    pub(crate) fn take(&mut self, key: &str, now: Instant) -> Option<String> {
        let (response, uses, until) = self.known.get_mut(key)?;
        if *uses == 0 || *until <= now {
            return None;
        }
        *uses -= 1;
        Some(response.url.clone())
    }

    /// Notes that Slack takes no more posts there.
    pub(crate) fn spent(&mut self, key: &str) {
        if let Some((_, uses, _)) = self.known.get_mut(key) {
            *uses = 0;
        }
    }

    pub(crate) fn pressed(&self, key: &str) -> Option<Pressed> {
        self.known.get(key)?.0.pressed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(url: &str) -> Response {
        Response {
            url: url.to_owned(),
            pressed: None,
        }
    }

    #[test]
    fn a_url_is_used_five_times_within_half_an_hour() {
        let (mut responses, now) = (Responses::default(), Instant::now());
        responses.keep("a", response("u"), now);
        for _ in 0..5 {
            assert_eq!(responses.take("a", now).as_deref(), Some("u"));
        }
        assert_eq!(responses.take("a", now), None);
        responses.keep("b", response("u"), now);
        assert_eq!(responses.take("b", now + LIVES), None);
        responses.keep("c", response("u"), now);
        responses.spent("c");
        assert_eq!(
            (responses.take("c", now), responses.take("d", now)),
            (None, None)
        );
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut responses, now) = (Responses::default(), Instant::now());
        for n in 0..KEPT + 10 {
            responses.keep(&n.to_string(), response("u"), now);
        }
        assert_eq!((responses.known.len(), responses.order.len()), (KEPT, KEPT));
        assert!(responses.take("0", now).is_none() && responses.take("10", now).is_some());
        responses.keep("late", response("u"), now + LIVES);
        assert_eq!((responses.known.len(), responses.order.len()), (1, 1));
    }
}
