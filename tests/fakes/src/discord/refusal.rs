//! Discord's error answers, by their documented codes (topics/opcodes-and-status-codes).

use serde_json::{Value, json};

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: u32, message: &str) -> Self {
        Self {
            status,
            body: json!({ "message": message, "code": code }),
        }
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, 0, "401: Unauthorized")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, 0, "404: Not Found")
    }

    pub(crate) fn unknown_channel() -> Self {
        Self::new(404, 10003, "Unknown Channel")
    }

    pub(crate) fn unknown_guild() -> Self {
        Self::new(404, 10004, "Unknown Guild")
    }

    pub(crate) fn unknown_message() -> Self {
        Self::new(404, 10008, "Unknown Message")
    }

    pub(crate) fn unknown_webhook() -> Self {
        Self::new(404, 10015, "Unknown Webhook")
    }

    pub(crate) fn unknown_interaction() -> Self {
        Self::new(404, 10062, "Unknown interaction")
    }

    pub(crate) fn unknown_command() -> Self {
        Self::new(404, 10063, "Unknown application command")
    }

    pub(crate) fn already_acknowledged() -> Self {
        Self::new(400, 40060, "Interaction has already been acknowledged.")
    }

    pub(crate) fn expired_token() -> Self {
        Self::new(401, 50027, "Invalid Webhook Token")
    }

    pub(crate) fn missing_access() -> Self {
        Self::new(403, 50001, "Missing Access")
    }

    pub(crate) fn missing_permissions() -> Self {
        Self::new(403, 50013, "Missing Permissions")
    }

    pub(crate) fn empty_message() -> Self {
        Self::new(400, 50006, "Cannot send an empty message")
    }

    pub(crate) fn not_the_author() -> Self {
        Self::new(403, 50005, "Cannot edit a message authored by another user")
    }

    pub(crate) fn archived_thread() -> Self {
        Self::new(
            400,
            50083,
            "Tried to perform an operation on an archived thread",
        )
    }

    pub(crate) fn thread_exists() -> Self {
        Self::new(
            400,
            160_004,
            "A thread has already been created for this message",
        )
    }

    pub(crate) fn old_message_edits() -> Self {
        let text =
            "Maximum number of edits to messages older than 1 hour reached. Try again later.";
        let mut refusal = Self::new(429, 30046, text);
        refusal.body["retry_after"] = json!(60.0);
        refusal.body["global"] = json!(false);
        refusal
    }

    pub(crate) fn too_many_commands() -> Self {
        Self::new(
            400,
            30032,
            "Maximum number of application commands reached (100)",
        )
    }

    pub(crate) fn too_many_creates() -> Self {
        Self::new(
            400,
            30034,
            "Max number of daily application command creates has been reached (200)",
        )
    }

    /// 50035: `broken` is what the checks said.
    pub(crate) fn invalid_form(broken: &[String]) -> Self {
        let mut refusal = Self::new(400, 50035, "Invalid Form Body");
        let reason = broken.join("; ");
        refusal.body["errors"] =
            json!({ "_errors": [{ "code": "INVALID_FORM", "message": reason }] });
        refusal
    }
}
