//! What the tests of both HTTP providers share.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::event::Event;
use gateway_core::failure::{AttemptLimits, Failure};
use gateway_core::turn::AttemptEnd;
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::{AttemptRequest, Exchange, Permissions, Provider};

/// The hour of all these tests; the reset in `captures/http/anthropic-unified-headers.txt` is an hour later.
pub(crate) const NOW: i64 = 1_795_997_527;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

pub(crate) fn clock() -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    Arc::new(now)
}

pub(crate) fn request(prompt: &str) -> (AttemptRequest, oneshot::Sender<()>) {
    let (fire, go) = oneshot::channel();
    let exchange = |request: &str, answer: &str| Exchange {
        request: request.into(),
        answer: answer.into(),
    };
    let request = AttemptRequest {
        attempt: "a".into(),
        conversation: "c".into(),
        model: "some/model".into(),
        session: None,
        title: String::new(),
        prompt: prompt.into(),
        history: vec![exchange("First?", "Yes.\n"), exchange("Cut?", "")],
        unseen: 0,
        workdir: ".".into(),
        permissions: Permissions::None,
        limits: limits(60_000, 60_000),
        go,
    };
    (request, fire)
}

pub(crate) fn limits(deadline_ms: u64, silence_ms: u64) -> AttemptLimits {
    AttemptLimits {
        deadline: Duration::from_millis(deadline_ms),
        silence: Duration::from_millis(silence_ms),
    }
}

/// Runs one attempt to its end.
pub(crate) async fn attempt(provider: &dyn Provider) -> (Vec<Event>, AttemptEnd) {
    let (request, fire) = request("And now?");
    let mut handle = provider.start(request);
    fire.send(()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = handle.events.recv().await {
        events.push(event);
    }
    (events, handle.end.await.unwrap())
}

/// Runs one attempt that must fail.
pub(crate) async fn failure(provider: &dyn Provider) -> Failure {
    match attempt(provider).await.1 {
        AttemptEnd::Failed(failure) => failure,
        end => panic!("{end:?}"),
    }
}

/// The text of all text events, joined.
pub(crate) fn text(events: &[Event]) -> String {
    let deltas = events.iter().filter_map(|event| match event {
        Event::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    deltas.collect()
}
