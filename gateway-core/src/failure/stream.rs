//! Whether a stream of an answer came to its end.

use serde_json::Value;

/// What was seen of a stream's events, in the dialects of all protocols.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stream {
    began: bool,
    ended: bool,
}

impl Stream {
    /// Takes note of an end that is no event: `data: [DONE]`.
    pub(super) fn mark(&mut self, ended: bool) {
        self.ended |= ended;
    }

    /// Looks at one event.
    pub(super) fn look(&mut self, event: &Value) {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let chunk = event
            .get("object")
            .is_some_and(|kind| kind == "chat.completion.chunk");
        self.began |= chunk
            || event.pointer("/choices/0/delta").is_some()
            || event.pointer("/candidates/0/content").is_some()
            || matches!(
                kind,
                "message_start"
                    | "content_block_start"
                    | "content_block_delta"
                    | "response.created"
                    | "response.in_progress"
                    | "response.output_text.delta"
            );
        let stated = |pointer: &str| event.pointer(pointer).is_some_and(|value| !value.is_null());
        self.ended |= stated("/choices/0/finish_reason")
            || stated("/candidates/0/finishReason")
            || stated("/delta/stop_reason")
            || matches!(
                kind,
                "message_stop"
                    | "response.completed"
                    | "response.incomplete"
                    | "response.failed"
                    | "response.done"
                    | "error"
            );
    }

    /// It began and has no end.
    pub(super) fn is_cut(self) -> bool {
        self.began && !self.ended
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stream_is_cut_if_it_began_and_has_no_end() {
        let start = json!({"type": "message_start"});
        let stop = json!({"type": "message_stop"});
        let chunk = json!({"choices": [{"delta": {"content": "a"}, "finish_reason": null}]});
        let last = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        for (events, cut) in [
            (vec![&start], true),
            (vec![&start, &stop], false),
            (vec![&chunk], true),
            (vec![&chunk, &last], false),
            (vec![], false),
        ] {
            let mut stream = Stream::default();
            events.iter().for_each(|event| stream.look(event));
            assert_eq!(stream.is_cut(), cut, "{events:?}");
        }
    }
}
