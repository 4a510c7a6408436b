//! One session: what it may hear and what it has heard.

use serde_json::{Value, json};

use crate::discord::world::Event;

const MESSAGE_CONTENT: u64 = 1 << 15;

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) intents: u64,
    pub(crate) sequence: u64,
    /// Every event so far, with its sequence number: what RESUME replays.
    pub(crate) heard: Vec<(u64, String)>,
    /// `None` = its socket is gone; it can be resumed.
    pub(crate) link: Option<u64>,
}

impl Session {
    pub(crate) fn new(id: String, intents: u64, link: u64) -> Self {
        Self {
            id,
            intents,
            sequence: 0,
            heard: Vec::new(),
            link: Some(link),
        }
    }

    /// Returns the frame if this session hears the event.
    pub(crate) fn take(&mut self, event: &Event) -> Option<String> {
        if event
            .intent
            .is_some_and(|intent| self.intents & intent == 0)
        {
            return None;
        }
        let mut payload = event.payload.clone();
        if event.censored && self.intents & MESSAGE_CONTENT == 0 {
            censor(&mut payload);
        }
        Some(self.frame(&event.name, payload))
    }

    pub(crate) fn frame(&mut self, name: &str, payload: Value) -> String {
        self.sequence += 1;
        let frame = json!({ "op": 0, "s": self.sequence, "t": name, "d": payload }).to_string();
        self.heard.push((self.sequence, frame.clone()));
        frame
    }

    /// Frames after `sequence`. `None` = it claims more than it was sent.
    pub(crate) fn missed(&self, sequence: u64) -> Option<Vec<String>> {
        let later = self.heard.iter().filter(|(known, _)| *known > sequence);
        (sequence <= self.sequence).then(|| later.map(|(_, frame)| frame.clone()).collect())
    }
}

/// What the privileged intent hides; mentions of the bot, its own messages and DMs are exempt (the event says so).
fn censor(payload: &mut Value) {
    payload["content"] = json!("");
    for key in ["embeds", "attachments", "components"] {
        payload[key] = json!([]);
    }
}
