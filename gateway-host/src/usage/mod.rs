//! The usage registry of a root: the published snapshot, our own readings, and the one view of both that decisions take.
//!
//! Readings go through one writer ([`ingest`]); everything else is asked and answered in place ([`registry`]).
//! Everything here fails open. A snapshot that cannot be read, a store or a disk that refuses: the turn goes on with what is
//! still known, and the reason is logged and kept for people to see. Nothing here decides; the arithmetic is
//! [`gateway_core::usage`] and [`gateway_core::plan`].

pub mod identity;
mod ingest;
pub mod probes;
pub mod publish;
pub mod registry;
pub mod snapshot;

pub use registry::{Evidence, Registry};
