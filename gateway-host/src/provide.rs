//! One provider per subscription, built from its settings. One that cannot be built is left out and said by name: the
//! rest serves on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gateway_core::ids::SubscriptionId;
use gateway_core::route::Billing;
use jiff::Timestamp;
use providers::SharedProvider;
use providers::anthropic_http::{AnthropicHttp, AnthropicSettings};
use providers::claude::{Claude, ClaudeSettings};
use providers::codex::{Codex, CodexSettings};
use providers::openai_http::{OpenAiHttp, OpenAiSettings};
use providers::opencode::{OpenCode, OpenCodeSettings};
use tracing::warn;

use crate::StartError;
use crate::clock::Clock;
use crate::config::{Program, ProviderSettings, SecretError, Settings, SubscriptionSettings};
use crate::instance::leftovers::MARK;

/// Why one subscription has no provider.
#[derive(Debug, thiserror::Error)]
pub enum ProvideError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(
        "the HTTP client cannot be set up: {0}. Check that CA certificates are installed and the proxy variables"
    )]
    Client(#[from] reqwest::Error),
    #[error("it plays a script, and none was given")]
    NoScript,
}

/// Builds what the settings name; `given` stands in for some of it. Programs carry the id of this `instance`.
pub fn all(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    instance: &str,
    mut given: BTreeMap<SubscriptionId, SharedProvider>,
) -> Result<BTreeMap<SubscriptionId, SharedProvider>, StartError> {
    let mut built = BTreeMap::new();
    let mut client = None;
    for (id, subscription) in &settings.subscriptions {
        let provider = match given.remove(id) {
            Some(provider) => Ok(provider),
            None => one(settings, subscription, clock, Some(instance), &mut client),
        };
        match provider {
            Ok(provider) => drop(built.insert(id.clone(), provider)),
            Err(problem) => warn!(subscription = %id, %problem, "a subscription cannot be used"),
        }
    }
    refuse_what_cannot_be_enforced(settings, &built)?;
    Ok(built)
}

/// Builds one. The HTTP client is shared, and made only if somebody needs it. `instance` = the gateway whose turns it will
/// run; `None` = it is only looked at.
pub fn one(
    settings: &Settings,
    subscription: &SubscriptionSettings,
    clock: &Arc<dyn Clock>,
    instance: Option<&str>,
    client: &mut Option<reqwest::Client>,
) -> Result<SharedProvider, ProvideError> {
    let slug = subscription.slug.clone();
    let now = now(clock);
    Ok(match &subscription.provider {
        ProviderSettings::Cli {
            program,
            home,
            binary,
            env,
        } => match program {
            Program::Claude => Arc::new(Claude::new(ClaudeSettings {
                binary: binary.clone(),
                home: home.clone(),
                env: marked(env, instance),
                subscription: slug,
                hidden: hidden(settings, home.as_ref()),
                now,
            })),
            Program::Codex => Arc::new(Codex::new(CodexSettings {
                binary: binary.clone(),
                home: home.clone(),
                env: marked(env, instance),
                subscription: slug,
                billing: subscription.billing,
                hidden: hidden(settings, home.as_ref()),
                now,
            })),
            Program::OpenCode => Arc::new(OpenCode::new(OpenCodeSettings {
                binary: binary.clone(),
                home: home.clone(),
                env: marked(env, instance),
                subscription: slug,
                metered: subscription.billing == Billing::Metered,
                hidden: hidden(settings, home.as_ref()),
                usage_base: None,
                now,
            })),
        },
        ProviderSettings::Anthropic {
            base_url,
            key,
            max_tokens,
            ..
        } => Arc::new(AnthropicHttp::new(AnthropicSettings {
            subscription: slug,
            base_url: base_url.clone(),
            key: key.resolve()?,
            max_tokens: *max_tokens,
            client: shared(client)?,
            now,
        })),
        ProviderSettings::OpenAi { base_url, key, .. } => {
            Arc::new(OpenAiHttp::new(OpenAiSettings {
                subscription: slug,
                base_url: base_url.clone(),
                key: key.as_ref().map(|key| key.resolve()).transpose()?,
                max_tokens: None,
                client: shared(client)?,
                now,
            }))
        }
        ProviderSettings::Scripted => return Err(ProvideError::NoScript),
    })
}

/// The program's variables, with the one by which a later gateway finds what this one left running.
fn marked(env: &BTreeMap<String, String>, instance: Option<&str>) -> BTreeMap<String, String> {
    let mut env = env.clone();
    env.extend(instance.map(|id| (MARK.to_owned(), id.to_owned())));
    env
}

/// What the file tools of one login must never reach: the gateway's root and every other login's folder.
fn hidden(settings: &Settings, own: Option<&PathBuf>) -> Vec<PathBuf> {
    let homes =
        settings
            .subscriptions
            .values()
            .filter_map(|subscription| match &subscription.provider {
                ProviderSettings::Cli { home, .. } => home.as_ref(),
                _ => None,
            });
    let others = homes.filter(|home| Some(*home) != own).cloned();
    std::iter::once(settings.root.0.clone())
        .chain(others)
        .collect()
}

fn shared(client: &mut Option<reqwest::Client>) -> Result<reqwest::Client, reqwest::Error> {
    if let Some(client) = client {
        return Ok(client.clone());
    }
    Ok(client.insert(providers::http::client()?).clone())
}

fn now(clock: &Arc<dyn Clock>) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    let clock = Arc::clone(clock);
    Arc::new(move || clock.now())
}

/// A permission level that a route's provider cannot enforce is refused at start, by name.
fn refuse_what_cannot_be_enforced(
    settings: &Settings,
    providers: &BTreeMap<SubscriptionId, SharedProvider>,
) -> Result<(), StartError> {
    for profile in settings.profiles.values() {
        let Some(level) = profile.permissions else {
            continue;
        };
        for route in &profile.chain {
            let provider = providers.get(&route.subscription);
            if let Some(Err(why)) = provider.map(|provider| provider.check_permissions(level)) {
                return Err(StartError::Permission(format!(
                    "profiles.{}.permissions: {why}",
                    profile.id
                )));
            }
        }
    }
    Ok(())
}
