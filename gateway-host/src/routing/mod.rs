//! Quota-aware continuation: where the pure machine of [`gateway_core::switch::machine`] meets the store, the registry, the
//! providers and the person. The machine decides; here its effects are carried out.
//!
//! * `facts`: everything a decision looks at, gathered anew for each step;
//! * `step`: one step, durable with its audit row before anything of it is done;
//! * `ride`: a turn under routing, from its request to its end; `running`: limits in its middle;
//! * `resume`: what goes on by itself: resets, early resets, restarts;
//! * `word`: the person's own word: choosing, pausing, taking back;
//! * `why`: one decision of the audit, replayed in words;
//! * `burn`: what a turn has burnt, for the next prediction.
//!
//! Where routing is off nothing of this is asked, and no row is written.

mod burn;
mod facts;
pub mod resume;
pub mod ride;
pub mod running;
mod step;
pub mod why;
pub mod word;

use gateway_core::route::Route;
use gateway_core::switch::Settings;
use gateway_core::switch::machine::Place;
use jiff::Timestamp;

/// A profile's routing as it was configured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoutingSettings {
    pub settings: Settings,
    /// Where the work may go, in this order; empty = the profile's chain.
    pub candidates: Vec<Route>,
}

/// What this process knows of routing beyond the store.
#[derive(Debug)]
pub struct Routing {
    /// Readings older than this process do not admit.
    pub started_at: Timestamp,
    /// The registry's revision the last sweep looked at.
    seen: parking_lot::Mutex<Option<u64>>,
}

impl Routing {
    /// Of a process that starts now.
    pub fn new(now: Timestamp) -> Self {
        Self {
            started_at: now,
            seen: parking_lot::Mutex::new(None),
        }
    }
}

/// A route as the machine calls it.
pub fn place_of(route: &Route) -> Place {
    Place {
        subscription: route.subscription.clone(),
        model: Some(route.model.as_str().to_owned()),
    }
}
