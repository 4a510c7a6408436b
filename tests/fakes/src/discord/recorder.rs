//! Every request as it came, and what was answered.

use jiff::Timestamp;
use serde_json::Value;

use super::model::File;

/// One request to the fake's REST side.
#[derive(Clone, Debug)]
pub struct Requested {
    pub at: Timestamp,
    pub method: String,
    /// Without `/api/v10` and without the query.
    pub path: String,
    /// The path as Discord's file writes it. `None` = unknown route, or a download.
    pub template: Option<String>,
    pub query: Vec<(String, String)>,
    /// `Null` = none. For multipart the `payload_json`.
    pub body: Value,
    pub files: Vec<File>,
    pub status: u16,
    /// `Null` = none.
    pub answer: Value,
}
