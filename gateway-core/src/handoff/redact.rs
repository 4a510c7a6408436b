//! handoff::redact
