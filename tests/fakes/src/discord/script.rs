//! Faults on command, and how tests send what no person would.

use std::time::Duration;

use serde_json::{Value, json};

use super::FakeDiscord;
use super::fault::Fault;
use super::gateway::Push;
use super::ids::MessageId;

/// Codes after which Discord forgets the session.
const FORGETTING: [u16; 9] = [1000, 1001, 4003, 4004, 4007, 4009, 4010, 4011, 4012];

impl FakeDiscord {
    /// The next matching request meets `fault`. `template` is the path as Discord's file writes it, e.g.
    /// `/channels/{channel_id}/messages/{message_id}`. Several for one route are met in order.
    pub fn plan(&self, method: &str, template: &str, fault: Fault) {
        self.shared.faults.plan(method, template, fault);
    }

    /// Op 7: every open socket is asked to reconnect and resume. Returns how many.
    pub fn ask_to_reconnect(&self) -> usize {
        self.shared
            .hub
            .lock()
            .to_all(|| Push::Text(json!({ "op": 7, "d": null }).to_string()))
    }

    /// Op 9; not `resumable` forgets the sessions first.
    pub fn invalidate_sessions(&self, resumable: bool) -> usize {
        let mut hub = self.shared.hub.lock();
        if !resumable {
            hub.sessions.clear();
        }
        hub.to_all(|| Push::Text(json!({ "op": 9, "d": resumable }).to_string()))
    }

    /// Closes every open socket. `None` = a close frame without a code.
    pub fn close_sockets(&self, code: Option<u16>) -> usize {
        let mut hub = self.shared.hub.lock();
        if code.is_some_and(|code| FORGETTING.contains(&code) || code >= 4013) {
            hub.sessions.clear();
        }
        hub.to_all(|| Push::Close(code))
    }

    /// Breaks every open socket with RST.
    pub fn reset_sockets(&self) -> usize {
        self.shared.hub.lock().to_all(|| Push::Reset)
    }

    /// Open sockets stop acking heartbeats and delivering; new ones work. Their sessions go on collecting events.
    pub fn make_zombies(&self) -> usize {
        self.shared.hub.lock().make_zombies()
    }

    /// The next IDENTIFY gets its READY late.
    pub fn delay_ready(&self, by: Duration) {
        self.shared.hub.lock().faults.late_ready.push_back(by);
    }

    /// The next `count` RESUMEs are answered by op 9 false.
    pub fn refuse_resumes(&self, count: u32) {
        self.shared.hub.lock().faults.refused_resumes = count;
    }

    /// The next `count` events are delivered twice, with different sequence numbers.
    pub fn duplicate_events(&self, count: u32) {
        self.shared.hub.lock().faults.duplicated_events = count;
    }

    /// Delivers a message's MESSAGE_CREATE once more.
    pub fn repeat(&self, message: MessageId) {
        self.shared
            .world
            .lock()
            .tell_message("MESSAGE_CREATE", message);
        self.shared.flush();
    }

    /// Sends any event to every session: for payloads that do not exist yet, or should not.
    pub fn send_event(&self, name: &str, payload: Value) {
        self.shared.world.lock().tell(name, payload, None);
        self.shared.flush();
    }

    /// Sends any text to every open socket.
    pub fn send_text(&self, text: &str) -> usize {
        self.shared
            .hub
            .lock()
            .to_all(|| Push::Text(text.to_owned()))
    }

    /// Switches the privileged intent in the developer portal: sockets that asked for it close with 4014 next time.
    pub fn set_message_content(&self, allowed: bool) {
        self.shared.world.lock().message_content = allowed;
    }
}
