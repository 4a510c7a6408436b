//! Every door to the world in one place. A function that needs the world takes `&Effects` and says so in its signature.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use gateway_core::handoff::redact::Redactor;
use gateway_core::handoff::{HandoffState, StoredHandoff};
use gateway_core::ids::{ProfileId, SubscriptionId, TurnId};
use jiff::Timestamp;
use platforms::Platform;
use providers::SharedProvider;

use crate::clock::Clock;
use crate::config::{ProfileSettings, Settings};
use crate::cooling::Cooling;
use crate::handoffs::mirror::Mirror;
use crate::plugins::PluginSet;
use crate::store::{Lane, Store};
use crate::turn::prologue::Sheets;
use crate::usage::Registry;
use crate::usage::probes::Probes;

/// The doors.
pub struct Effects {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub registry: Arc<Registry>,
    pub probes: Arc<Probes>,
    pub cooling: Cooling,
    pub plugins: PluginSet,
    pub providers: BTreeMap<SubscriptionId, SharedProvider>,
    pub platforms: BTreeMap<&'static str, Arc<dyn Platform>>,
    pub redactor: Redactor,
    pub sheets: Sheets,
    pub routing: crate::routing::Routing,
    /// Rows of messages that were written down and still wait in a queue of this process.
    pub queued: parking_lot::Mutex<HashSet<TurnId>>,
    /// What came in lately, until its first row tells: platforms deliver at least once.
    pub arrivals: parking_lot::Mutex<platforms::dedupe::Dedupe>,
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

    /// Brings the plain file of a lane in line with the store: the newest handoff that is still of use, or none. The store
    /// is the truth; a file that cannot be written is a warning.
    pub async fn mirror(&self, lane: &Lane) {
        let stored = match self.store.handoffs_of(lane).await {
            Ok(stored) => stored,
            Err(error) => {
                return tracing::warn!(%error, "the plain handoff file could not be refreshed");
            }
        };
        let mirror = Mirror::new(&self.profile(&lane.profile).home);
        let of_use = |stored: &&StoredHandoff| {
            matches!(
                stored.state,
                HandoffState::Armed | HandoffState::Claimed | HandoffState::Stopped
            )
        };
        let over =
            |stored: &&StoredHandoff| !of_use(stored) && stored.state != HandoffState::Corrupt;
        for over in stored.iter().filter(over) {
            if let Some(trouble) = mirror.write(over, &self.redactor) {
                tracing::warn!(%trouble, "the plain file of a handoff that is over");
            }
        }
        let trouble = match stored.iter().find(of_use) {
            Some(stored) => mirror.write(stored, &self.redactor),
            None => mirror.remove(&lane.session),
        };
        if let Some(trouble) = trouble {
            tracing::warn!(%trouble, "the plain handoff file is not up to date; the store is");
        }
    }
}
