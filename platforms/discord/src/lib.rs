//! Discord as a chat platform: translation between its gateway and REST interface and ours. No type of the client library
//! leaves this crate. Facts about Discord are of its documentation of August 2026 unless another source is named.
