//! Slack as a chat platform, over Socket Mode and the Web API. No type of the client library leaves this crate. Facts about
//! Slack are of its documentation of 2026 unless another source is named.
