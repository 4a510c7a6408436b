//! What a turn has burnt: the readings at its start and at its end, window by window. A sample whose readings do not lie
//! at the turn's edges, or belong to different cycles, is discarded.

use gateway_core::ids::SubscriptionId;
use gateway_core::switch::facts::Burn;
use gateway_core::usage::{Reading, burn, merge};
use jiff::Timestamp;

use crate::effects::Effects;

/// More samples than a prediction ever looks at are not kept.
const KEPT: usize = 16;

/// The start of a turn on a subscription.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub subscription: SubscriptionId,
    pub at: Timestamp,
    readings: Vec<Reading>,
}

impl Start {
    /// What is known when the turn starts.
    pub(super) async fn now(subscription: &SubscriptionId, effects: &Effects) -> Self {
        let at = effects.now();
        Self {
            subscription: subscription.clone(),
            at,
            readings: readings(subscription, effects, at).await,
        }
    }

    /// Adds the turn's samples to those kept. A store that does not take them costs a prediction, nothing else.
    pub(super) async fn end(self, effects: &Effects) {
        effects.registry.settled().await;
        let now = effects.now();
        let ends = readings(&self.subscription, effects, now).await;
        let fresh: Vec<(String, f64)> = ends
            .iter()
            .filter_map(|end| {
                let start = self
                    .readings
                    .iter()
                    .find(|start| merge::same_window(start, end))?;
                // A reading from before the turn says nothing of what the turn has burnt.
                end.observed_at.filter(|at| *at > self.at)?;
                Some((end.window.clone(), burn::sample(start, end, self.at..=now)?))
            })
            .collect();
        if fresh.is_empty() {
            return;
        }
        let Ok(known) = effects.store.burn().await else {
            return;
        };
        let more: Vec<Burn> = fresh
            .into_iter()
            .map(|(window, sample)| self.with(&known, window, sample))
            .collect();
        if let Err(why) = effects.store.put_burn(&more).await {
            tracing::warn!(%why, "what the turn has burnt was not kept");
        }
    }

    fn with(&self, known: &[Burn], window: String, sample: f64) -> Burn {
        let old = known
            .iter()
            .find(|one| one.subscription == self.subscription && one.window == window);
        let mut samples = old.map_or(Vec::new(), |one| one.samples.clone());
        samples.push(Some(sample));
        samples.drain(..samples.len().saturating_sub(KEPT));
        Burn {
            subscription: self.subscription.clone(),
            window,
            samples,
        }
    }
}

async fn readings(subscription: &SubscriptionId, effects: &Effects, at: Timestamp) -> Vec<Reading> {
    let Some(settings) = effects.settings.subscriptions.get(subscription) else {
        return Vec::new();
    };
    let evidence = effects.registry.current(at).await;
    evidence.of(&settings.slug).cloned().collect()
}
