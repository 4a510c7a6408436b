//! Files people send, downloaded from where Discord keeps them and from nowhere else: the address comes from outside.

use std::time::Duration;

use platforms::adapter::File;
use platforms::wire::WireError;
use reqwest_of_serenity::{Response, Url};
use tokio::time::timeout;

use crate::Core;
use crate::settings::DiscordSettings;

/// Where attachments lie.
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

const DOWNLOAD_DEADLINE: Duration = Duration::from_secs(60);

impl Core {
    pub(crate) async fn fetch(&self, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError> {
        let url = allowed(&file.source, &self.settings).ok_or_else(|| {
            WireError::Refused(format!(
                "{} does not lie where Discord keeps files",
                file.name
            ))
        })?;
        let downloaded = async {
            let sent = self.rest.client().get(url).send().await;
            let response = sent.map_err(|error| undelivered(&error))?;
            body(response, file, max_bytes).await
        };
        match timeout(DOWNLOAD_DEADLINE, downloaded).await {
            Ok(done) => done,
            Err(_) => Err(WireError::NotDelivered(format!(
                "{} did not come within {} s",
                file.name,
                DOWNLOAD_DEADLINE.as_secs()
            ))),
        }
    }
}

async fn body(mut response: Response, file: &File, max_bytes: u64) -> Result<Vec<u8>, WireError> {
    let status = response.status();
    if status.is_server_error() || status.as_u16() == 429 {
        return Err(WireError::NotDelivered(format!("{}: {status}", file.name)));
    }
    if !status.is_success() {
        // Addresses of files expire after about a day.
        return Err(WireError::Refused(format!(
            "{} is no longer there: {status}",
            file.name
        )));
    }
    let announced = response.content_length();
    if announced.is_some_and(|bytes| bytes > max_bytes) {
        return Err(WireError::TooLong);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| undelivered(&error))?
    {
        let length = bytes.len() as u64 + chunk.len() as u64;
        if length > max_bytes {
            return Err(WireError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn undelivered(error: &reqwest_of_serenity::Error) -> WireError {
    let why = match error.is_timeout() {
        true => "time ran out",
        false => "the connection failed",
    };
    WireError::NotDelivered(why.to_owned())
}

/// The address, if it is one of Discord's files; with another `api_base`, also one of that server.
fn allowed(source: &str, settings: &DiscordSettings) -> Option<Url> {
    let url = Url::parse(source).ok()?;
    let plain = url.username().is_empty() && url.password().is_none();
    let discord = url.scheme() == "https"
        && url.port().is_none()
        && url.host_str().is_some_and(|host| HOSTS.contains(&host))
        && !settings.stays_here();
    let base = settings
        .api_base
        .as_deref()
        .and_then(|base| Url::parse(base).ok());
    let own = base.is_some_and(|base| base.origin() == url.origin());
    (plain && (discord || own)).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_discords_files_are_fetched() {
        let discord = DiscordSettings::new("t".into());
        let mut here = discord.clone();
        here.api_base = Some("http://127.0.0.1:80".to_owned());
        let rows = [
            (
                &discord,
                "https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1",
                true,
            ),
            (
                &discord,
                "https://media.discordapp.net/attachments/1/2/a.png",
                true,
            ),
            (&discord, "http://cdn.discordapp.com/a", false),
            (&discord, "https://cdn.discordapp.com:8443/a", false),
            (&discord, "https://u:p@cdn.discordapp.com/a", false),
            (&discord, "https://cdn.discordapp.com.example/a", false),
            (&discord, "https://cdn.discordapp.com@example/a", false),
            (&discord, "https://169.254.169.254/latest", false),
            (&discord, "file:///etc/passwd", false),
            (&discord, "http://127.0.0.1/attachments/1", false),
            (&here, "http://127.0.0.1/attachments/1", true),
            (&here, "http://127.0.0.1:81/attachments/1", false),
            (&here, "https://cdn.discordapp.com/attachments/1", false),
        ];
        for (settings, source, fits) in rows {
            assert_eq!(allowed(source, settings).is_some(), fits, "{source}");
        }
    }
}
