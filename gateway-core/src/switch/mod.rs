//! Quota-aware routing: when a conversation moves to another subscription, and when it does not (sections 1.5 to 1.8 and 3
//! of the routing contract).
//!
//! The gate in [`plan`](crate::plan) skips a route only on proof that it is spent; this is the opposite policy: work moves
//! only on proof that there is room elsewhere. Missing, stale, contradictory or unattributable numbers are never room. What
//! "spent", "until when" and "whose quota" mean is the same for both and lives in [`usage`](crate::usage).
//!
//! Everything here is a plain function of [`Facts`] and an instant. A decision carries its reason, and every entry of the
//! chain that was not taken carries its own: "why not Codex?" has an answer.

pub mod admission;
pub mod caps;
pub mod decide;
pub mod eligibility;
pub mod evidence;
pub mod facts;
pub mod look;
pub mod machine;
pub mod recovery;
pub mod room;
pub mod settings;
pub mod wait;

#[cfg(test)]
mod invariants;
#[cfg(test)]
pub(crate) mod testing;

pub use decide::{Decision, Verdict};
pub use eligibility::{RejectReason, Rejection};
pub use evidence::Board;
pub use facts::Facts;
pub use settings::Settings;
