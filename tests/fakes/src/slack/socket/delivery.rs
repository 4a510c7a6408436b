//! Getting an envelope to the app.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::Shared;
use super::super::reply;
use super::super::world::World;

/// An envelope without its ack by then has failed.
pub(crate) const ACK_WITHIN: Duration = Duration::from_secs(3);
/// Waits before each attempt of an event.
const ATTEMPTS: [Duration; 4] = [
    Duration::ZERO,
    Duration::ZERO,
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// Sends an event until it is acked or Slack gives up.
pub(crate) async fn deliver_event(shared: Arc<Shared>, payload: Value, first: String) {
    let clock = shared.world.lock().clock.clone();
    let mut envelope = first;
    for (attempt, wait) in (0_u32..).zip(ATTEMPTS) {
        if attempt > 0 {
            let sent_at = shared
                .hub
                .lock()
                .envelope(&envelope)
                .map(|known| known.sent_at);
            clock
                .reach(sent_at.unwrap_or_else(|| clock.now()) + ACK_WITHIN + wait)
                .await;
            envelope = shared
                .hub
                .lock()
                .send("events_api", &payload, attempt, clock.now());
            shared.changed();
        }
        if acked(&shared, &envelope).await {
            return;
        }
    }
}

async fn acked(shared: &Shared, envelope: &str) -> bool {
    let mut changes = shared.changes.subscribe();
    let clock = shared.world.lock().clock.clone();
    let sent_at = shared
        .hub
        .lock()
        .envelope(envelope)
        .map(|known| known.sent_at);
    let Some(sent_at) = sent_at else {
        return false;
    };
    let deadline = clock.reach(sent_at + ACK_WITHIN);
    tokio::pin!(deadline);
    loop {
        changes.borrow_and_update();
        if shared
            .hub
            .lock()
            .envelope(envelope)
            .is_some_and(|known| known.acked.is_some())
        {
            return true;
        }
        tokio::select! {
            () = &mut deadline => return false,
            _ = changes.changed() => {}
        }
    }
}

/// Sends a command or a click: once, and it is lost without a socket.
pub(crate) fn send_once(shared: &Shared, world: &World, kind: &str, payload: &Value) -> String {
    shared.hub.lock().send(kind, payload, 0, world.now())
}

/// An ack may carry an answer, which is posted as through the `response_url`.
pub(super) fn answer_in_ack(shared: &Shared, command: &Value, answer: &Value) {
    let id = command["response_url"]
        .as_str()
        .and_then(|url| url.rsplit('/').next())
        .unwrap_or_default();
    if let Some(body) = answer.as_object() {
        let (status, _, broken) = reply::respond(&mut shared.world.lock(), id, body);
        for sentence in broken {
            shared
                .violations
                .add(format!("ack with an answer: {sentence}"));
        }
        if status != 200 {
            shared
                .violations
                .add(format!("ack with an answer: refused with {status}"));
        }
    }
}
