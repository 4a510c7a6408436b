//! What the operator says about one bot token, and what of it cannot be used.

use std::net::{IpAddr, SocketAddr};

use reqwest_of_serenity::Url;
use secrecy::{ExposeSecret, SecretString};

/// Everything about one bot.
#[derive(Debug, Clone)]
pub struct DiscordSettings {
    pub token: SecretString,
    /// What stands for `https://discord.com`; `None` = that. With it a failed look-up of the gateway is fatal, and our own
    /// pace is the only rate limiter: serenity's ignores such an address and would talk to Discord.
    pub api_base: Option<String>,
    /// The gateway's address, in place of what Discord answers.
    pub gateway_url: Option<String>,
    /// Servers the profiles of this token name; empty = any.
    pub guilds: Vec<String>,
    /// Channels the profiles of this token name; empty = any of the servers.
    pub channels: Vec<String>,
    pub commands: CommandScope,
    /// Stands before every command's name, for servers where another bot has the same ones; mostly empty.
    pub command_prefix: String,
    /// Whether messages that do not name the bot are read. Needs the privileged message content intent.
    pub message_content: bool,
    /// Whether tool activity is shown in channels; in direct messages it always is.
    pub tools_in_channels: bool,
    /// Where `discord.com` really is; `None` = where name resolution says.
    pub detour: Option<Detour>,
}

/// Where commands are registered; the other scope is emptied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandScope {
    /// Everywhere, direct messages too.
    Global,
    /// In these servers alone, for developers: a change shows at once.
    Guilds(Vec<String>),
}

/// Leads `https://discord.com` to an address of one's own, over TLS: the production path, in front of something else.
#[derive(Debug, Clone)]
pub struct Detour {
    pub discord_com: SocketAddr,
    /// PEM of the authority to trust beside the usual ones.
    pub authority: String,
}

impl DiscordSettings {
    /// The defaults: any server and channel, global commands, message texts read.
    pub fn new(token: SecretString) -> Self {
        Self {
            token,
            api_base: None,
            gateway_url: None,
            guilds: Vec::new(),
            channels: Vec::new(),
            commands: CommandScope::Global,
            command_prefix: String::new(),
            message_content: true,
            tools_in_channels: false,
            detour: None,
        }
    }

    /// Whether another server than Discord was named.
    pub(crate) fn has_own_base(&self) -> bool {
        self.api_base.is_some()
    }

    /// Whether REST goes to this machine, so that nothing else may leave it either.
    pub(crate) fn stays_here(&self) -> bool {
        match (&self.api_base, &self.detour) {
            (Some(base), _) => Url::parse(base).is_ok_and(|url| is_loopback(&url)),
            (None, Some(detour)) => detour.discord_com.ip().is_loopback(),
            (None, None) => false,
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "The Discord token is empty or has characters no token has. Copy it anew from the Bot page of the developer portal."
    )]
    Token,
    #[error(
        "api_base {0:?} is no http or https address without a path, for example http://127.0.0.1:8080."
    )]
    ApiBase(String),
    #[error("The gateway {url:?} cannot be used: {why}.")]
    Gateway { url: String, why: &'static str },
    #[error("{what} {id:?} is no Discord id: those are numbers, copied with developer mode on.")]
    Id { what: &'static str, id: String },
    #[error("The HTTP client cannot be built: {0}.")]
    Client(String),
}

pub(crate) fn check(settings: &DiscordSettings) -> Result<(), SettingsError> {
    let token = settings.token.expose_secret();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(SettingsError::Token);
    }
    if let Some(base) = &settings.api_base {
        api_base(base)?;
    }
    if let Some(url) = &settings.gateway_url {
        gateway(url, settings)?;
    }
    let scope: &[String] = match &settings.commands {
        CommandScope::Global => &[],
        CommandScope::Guilds(guilds) => guilds,
    };
    let named = [
        ("The server", settings.guilds.as_slice()),
        ("The channel", settings.channels.as_slice()),
        ("The server of commands", scope),
    ];
    for (what, ids) in named {
        for id in ids {
            snowflake(id).ok_or_else(|| SettingsError::Id {
                what,
                id: id.clone(),
            })?;
        }
    }
    Ok(())
}

fn api_base(base: &str) -> Result<(), SettingsError> {
    let fits = Url::parse(base).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none()
    });
    match fits {
        true => Ok(()),
        false => Err(SettingsError::ApiBase(base.to_owned())),
    }
}

/// Whether a gateway may be dialled: one named by REST on this machine has to be on this machine, and elsewhere it has to
/// be encrypted.
pub(crate) fn gateway(text: &str, settings: &DiscordSettings) -> Result<Url, SettingsError> {
    let refuse = |why| SettingsError::Gateway {
        url: text.to_owned(),
        why,
    };
    let url = Url::parse(text).map_err(|_| refuse("it is no address"))?;
    if !matches!(url.scheme(), "ws" | "wss") {
        return Err(refuse("it is neither ws:// nor wss://"));
    }
    let here = is_loopback(&url);
    if settings.stays_here() && !here {
        return Err(refuse(
            "REST is on this machine, so the gateway has to be here too",
        ));
    }
    if url.scheme() == "ws" && !here && !settings.has_own_base() {
        return Err(refuse("the token would travel unencrypted"));
    }
    Ok(url)
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A Discord id as a number; 0 is none.
pub(crate) fn snowflake(id: &str) -> Option<u64> {
    let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    plain
        .then(|| id.parse().ok())
        .flatten()
        .filter(|id| *id != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(base: Option<&str>) -> DiscordSettings {
        DiscordSettings {
            api_base: base.map(str::to_owned),
            ..DiscordSettings::new("a.b.c".into())
        }
    }

    #[test]
    fn a_gateway_is_only_dialled_where_rest_is() {
        let (discord, here) = (settings(None), settings(Some("http://127.0.0.1:1")));
        let elsewhere = settings(Some("https://proxy.example"));
        let rows = [
            (&discord, "wss://gateway.discord.gg", true),
            (&discord, "ws://gateway.discord.gg", false),
            (&discord, "ws://127.0.0.1:2", true),
            (&discord, "https://gateway.discord.gg", false),
            (&discord, "nonsense", false),
            (&here, "wss://gateway.discord.gg", false),
            (&here, "ws://127.0.0.1:2", true),
            (&here, "ws://[::1]:2", true),
            (&here, "ws://localhost:2", true),
            (&here, "ws://127.0.0.1.example:2", false),
            (&here, "ws://10.0.0.1:2", false),
            (&elsewhere, "ws://proxy.example", true),
        ];
        for (settings, url, fits) in rows {
            assert_eq!(gateway(url, settings).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let mut bad = settings(Some("127.0.0.1:1"));
        assert!(check(&bad).unwrap_err().to_string().contains("127.0.0.1:1"));
        bad.api_base = Some("http://127.0.0.1:1/api".to_owned());
        assert!(check(&bad).is_err());
        bad.api_base = None;
        bad.channels = vec!["#general".to_owned()];
        assert!(check(&bad).unwrap_err().to_string().contains("#general"));
        bad.channels = vec!["0".to_owned()];
        assert!(check(&bad).is_err());
        bad.channels = vec!["456".to_owned()];
        assert!(check(&bad).is_ok());
        bad.token = "to ken".into();
        assert!(matches!(check(&bad), Err(SettingsError::Token)));
    }
}
