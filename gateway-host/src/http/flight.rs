//! A request on its way: what it has to show so far, and those who look at it. Equal requests look at one.

use std::collections::HashMap;
use std::sync::Arc;

use gateway_core::bridge::digest::Digest;
use gateway_core::message::ReplyOp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::answer::Answered;
use super::error::ApiError;

/// How a request ended.
pub(super) type End = Result<Answered, ApiError>;

/// What a request has to show so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The answer so far.
    pub(super) text: String,
    /// The gateway's own words: why there is no answer.
    pub(super) notices: Vec<String>,
    pub(super) end: Option<Arc<End>>,
}

impl Progress {
    /// Takes what the turn shows. Status lines and tool activity are for people who watch.
    pub(super) fn take(&mut self, op: &ReplyOp) {
        match op {
            ReplyOp::Answer {
                delta,
                replaced: false,
                done: false,
                ..
            } => self.text.push_str(delta),
            ReplyOp::Answer { text, .. } => text.clone_into(&mut self.text),
            ReplyOp::Notice { text } => self.notices.push(text.clone()),
            ReplyOp::Status { .. }
            | ReplyOp::Tools { .. }
            | ReplyOp::Reply { .. }
            | ReplyOp::Settle { .. } => {}
        }
    }
}

/// The requests on their way that others may join.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Digest, watch::Receiver<Progress>>>);

/// Whether a request is the first of its kind.
pub(super) enum Boarding {
    /// It runs; equal ones join it until the seat is dropped.
    Lead(Seat),
    /// An equal one runs already.
    Join(watch::Receiver<Progress>),
}

/// Keeps a flight open to others.
pub(super) struct Seat(Option<(Arc<Flights>, Digest)>);

impl Seat {
    /// A flight nobody can join.
    pub(super) fn alone() -> Self {
        Self(None)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((flights, key)) = self.0.take() {
            flights.0.lock().remove(&key);
        }
    }
}

impl Flights {
    /// Joins the equal request that runs, or leads with `progress`.
    pub(super) fn board(
        self: &Arc<Self>,
        key: Digest,
        progress: &watch::Receiver<Progress>,
    ) -> Boarding {
        let mut flights = self.0.lock();
        if let Some(running) = flights.get(&key) {
            return Boarding::Join(running.clone());
        }
        flights.insert(key, progress.clone());
        Boarding::Lead(Seat(Some((Arc::clone(self), key))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_request_joins_while_the_first_runs() {
        let flights = Arc::new(Flights::default());
        let (_sender, progress) = watch::channel(Progress::default());
        let Boarding::Lead(seat) = flights.board(Digest(1), &progress) else {
            panic!("nobody was before it");
        };
        assert!(matches!(
            flights.board(Digest(1), &progress),
            Boarding::Join(_)
        ));
        assert!(matches!(
            flights.board(Digest(2), &progress),
            Boarding::Lead(_)
        ));
        drop(seat);
        assert!(matches!(
            flights.board(Digest(1), &progress),
            Boarding::Lead(_)
        ));
    }

    #[test]
    fn progress_is_the_answer_as_it_stands() {
        let mut progress = Progress::default();
        let answer = |text: &str, delta: &str, replaced, done| ReplyOp::Answer {
            text: text.to_owned(),
            delta: delta.to_owned(),
            replaced,
            done,
        };
        for op in [
            answer("ab", "ab", false, false),
            answer("abc", "c", false, false),
            answer("x", "", true, false),
            answer("xy", "y", false, false),
            ReplyOp::Status {
                text: "s".to_owned(),
            },
            ReplyOp::Notice {
                text: "n".to_owned(),
            },
            answer("xy", "", false, true),
        ] {
            progress.take(&op);
        }
        assert_eq!((progress.text.as_str(), progress.notices.len()), ("xy", 1));
    }
}
