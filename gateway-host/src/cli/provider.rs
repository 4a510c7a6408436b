//! The provider behind a subscription, for looks that run no turn.

use std::sync::Arc;

use providers::SharedProvider;
use providers::claude::{Claude, ClaudeSettings};

use crate::config::{ProviderSettings, Settings, SubscriptionSettings};

/// Builds the provider as the settings say. `Ok(None)` = there is nothing to look at beyond its key.
pub(crate) fn of(
    subscription: &SubscriptionSettings,
    settings: &Settings,
) -> Result<Option<SharedProvider>, String> {
    match &subscription.provider {
        ProviderSettings::Claude { home, binary, env } => {
            Ok(Some(Arc::new(Claude::new(ClaudeSettings {
                binary: binary.clone(),
                home: home.clone(),
                env: env.clone(),
                subscription: subscription.slug.clone(),
                hidden: vec![settings.root.0.clone()],
                now: Arc::new(super::now),
            }))))
        }
        ProviderSettings::Anthropic { .. }
        | ProviderSettings::OpenAi { .. }
        | ProviderSettings::Scripted => Ok(None),
    }
}
