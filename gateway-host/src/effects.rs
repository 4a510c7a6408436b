//! Every door to the world in one place. A function that needs the world takes `&Effects` and says so in its signature.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::handoff::redact::Redactor;
use gateway_core::ids::{ProfileId, SubscriptionId};
use jiff::Timestamp;
use platforms::Platform;
use providers::SharedProvider;

use crate::clock::Clock;
use crate::config::{ProfileSettings, Settings};
use crate::handoffs::mirror::Mirrors;
use crate::plugins::PluginSet;
use crate::store::{Lane, Store};
use crate::turn::prologue::Sheets;
use crate::usage::Registry;

/// The doors.
pub struct Effects {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub registry: Registry,
    pub plugins: PluginSet,
    pub providers: BTreeMap<SubscriptionId, SharedProvider>,
    pub platforms: BTreeMap<&'static str, Arc<dyn Platform>>,
    pub redactor: Redactor,
    pub mirrors: Mirrors,
    pub sheets: Sheets,
    /// The id under which this process owns open turns.
    pub instance: String,
}

impl Effects {
    /// The time at the edge; everything inward gets it as an argument.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A profile's settings; one that is not configured has an empty chain and says so when asked.
    pub fn profile(&self, id: &ProfileId) -> Arc<ProfileSettings> {
        self.settings.profile(id)
    }

    /// Brings the plain files of a lane in line with the store. The store is the truth; a file that cannot be written is
    /// a warning.
    pub async fn mirror(&self, lane: &Lane) {
        match self.store.handoffs_of(lane).await {
            Ok(stored) => self.mirrors.show(lane, &stored, &self.redactor),
            Err(error) => tracing::warn!(%error, "the plain handoff files could not be refreshed"),
        }
    }
}
