//! Faults on command, and how tests send what no person would.

use serde_json::Value;

use super::FakeSlack;
use super::fault::Fault;
use super::model::At;
use super::socket::Push;

impl FakeSlack {
    /// The next call of `method` (or `response_url`) meets `fault`. Several for one method are met in order.
    pub fn plan(&self, method: &str, fault: Fault) {
        self.shared.faults.plan(method, fault);
    }

    /// A `disconnect` on every open socket: `warning`, `refresh_requested`, `link_disabled`, `too_many_websockets`.
    /// They stay open; new envelopes go to newer sockets. Returns how many.
    pub fn ask_to_disconnect(&self, reason: &str) -> usize {
        self.shared.hub.lock().disconnect(reason)
    }

    /// The next `count` envelopes go to a socket that was told to disconnect, if one is still open.
    pub fn send_late(&self, count: u32) {
        self.shared.hub.lock().late_envelopes = count;
    }

    /// The next `count` envelopes are sent twice.
    pub fn duplicate_envelopes(&self, count: u32) {
        self.shared.hub.lock().duplicated = count;
    }

    /// Closes every open socket with a goodbye.
    pub fn close_sockets(&self) -> usize {
        self.shared.hub.lock().to_all(|| Push::Close)
    }

    /// Breaks every open socket with RST.
    pub fn reset_sockets(&self) -> usize {
        self.shared.hub.lock().to_all(|| Push::Reset)
    }

    /// Open sockets stay open and say nothing more: no envelopes, no pongs.
    pub fn silence_sockets(&self) -> usize {
        self.shared.hub.lock().to_all(|| Push::Silence)
    }

    /// Delivers a message's events once more: same channel and ts, new event ids.
    pub fn repeat(&self, at: &At) {
        self.shared.world.lock().tell_message(at);
        self.shared.flush();
    }

    /// Delivers any inner event.
    pub fn send_event(&self, event: Value) {
        self.shared.world.lock().tell(event);
        self.shared.flush();
    }

    /// Sends any text to every open socket.
    pub fn send_text(&self, text: &str) -> usize {
        self.shared
            .hub
            .lock()
            .to_all(|| Push::Text(text.to_owned()))
    }
}
