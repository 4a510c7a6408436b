//! Due work while the gateway serves: handoffs expire, what is over is purged, plain files follow; that runs at the start
//! and every hour. Exhausted subscriptions are looked at again every ten minutes. Nothing here decides what is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::warn;

use crate::effects::Effects;
use crate::front::files;
use crate::handoffs::mirror::Mirror;
use crate::store::Lane;

/// Between two sweeps.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Between two looks for exhausted subscriptions that are due to be asked again.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Sweeps now and from then on every hour, and looks every minute whether an exhausted subscription is to be asked, until
/// aborted.
pub fn start(effects: &Arc<Effects>) -> JoinHandle<()> {
    let effects = Arc::downgrade(effects);
    tokio::spawn(async move {
        let mut due = tokio::time::interval(EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_look = tokio::select! {
                _ = due.tick() => false,
                _ = look.tick() => true,
            };
            let Some(effects) = effects.upgrade() else {
                return;
            };
            if is_look {
                effects.probes.sweep().await;
            } else {
                once(&effects).await;
            }
        }
    })
}

async fn once(effects: &Effects) {
    let now = effects.now();
    match effects.store.sweep(now).await {
        Ok(expired) => {
            for stored in expired {
                let (profile, session) = (stored.handoff.profile, stored.handoff.session);
                effects.mirror(&Lane { profile, session }).await;
            }
        }
        Err(fault) => warn!(%fault, "the store could not be swept"),
    }
    let homes: Vec<_> = effects
        .settings
        .profiles
        .values()
        .map(|profile| profile.home.clone())
        .collect();
    let folders = homes.clone();
    let old_files = move || {
        for home in &folders {
            if let Err(error) = files::sweep(home, now) {
                warn!(%error, home = %home.0.display(), "old attachments could not be swept");
            }
        }
    };
    if let Err(error) = tokio::task::spawn_blocking(old_files).await {
        warn!(%error, "old attachments could not be swept");
    }
    let swept = tokio::task::spawn_blocking(move || {
        homes
            .iter()
            .flat_map(|home| Mirror::new(home).sweep(now).warnings)
            .collect::<Vec<_>>()
    });
    for warning in swept.await.unwrap_or_default() {
        warn!(%warning, "the plain handoff files could not be swept");
    }
}
