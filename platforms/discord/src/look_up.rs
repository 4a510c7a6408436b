//! Where the gateway is. Looked up by ourselves, and never guessed: serenity's client would dial the real one after a failed
//! look-up.

use std::time::Duration;

use platforms::adapter::Finding;
use serde::Deserialize;
use serenity::http::{LightMethod, Request, Route};
use tokio::time::sleep;
use tracing::warn;

use crate::Core;
use crate::finding::{bad_token, fatal};
use crate::refusal::Trouble;
use crate::settings;

#[derive(Deserialize)]
struct GatewayBot {
    url: String,
    #[serde(default)]
    shards: Option<u64>,
    #[serde(default)]
    session_start_limit: Option<SessionStarts>,
}

/// How many sessions may still be begun today.
#[derive(Deserialize)]
struct SessionStarts {
    remaining: u64,
    /// In milliseconds.
    reset_after: u64,
}

/// The address to connect to. With a server of the settings' own a failed look-up is final, with Discord it is tried again
/// until it succeeds.
pub(crate) async fn gateway_address(core: &Core) -> Result<String, Finding> {
    if let Some(url) = &core.settings.gateway_url {
        return Ok(url.clone());
    }
    let mut pause = Duration::from_secs(1);
    loop {
        let request = Request::new(Route::GatewayBot, LightMethod::Get);
        let why = match core.rest.ask::<GatewayBot>(request).await {
            Ok(answer) => {
                if answer.shards.is_some_and(|shards| shards > 1) {
                    warn!("Discord asks for several connections; the bot is in very many servers");
                }
                if let Some(starts) = answer
                    .session_start_limit
                    .filter(|starts| starts.remaining == 0)
                {
                    let wait = Duration::from_millis(starts.reset_after);
                    warn!(?wait, "Discord lets the bot begin no more sessions today");
                    sleep(wait).await;
                }
                let usable = settings::gateway(&answer.url, &core.settings);
                return usable.map(|_| answer.url).map_err(|error| {
                    fatal(
                        &error.to_string(),
                        "Set gateway_url, or an api_base whose gateway is in reach.",
                    )
                });
            }
            Err(Trouble::Refused(refusal)) if refusal.status == 401 => return Err(bad_token()),
            Err(trouble) => trouble,
        };
        if core.settings.has_own_base() {
            return Err(fatal(
                &format!("The gateway could not be looked up: {why}."),
                "Check api_base, or set gateway_url.",
            ));
        }
        warn!(%why, "the address of Discord's gateway could not be looked up");
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
}
