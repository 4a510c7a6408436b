//! The Web API. Requests are slack-morphism's types where it has them; of answers only what is needed is read, so that
//! a field Slack adds or changes never turns a message that was posted into one of unknown fate.

mod connector;
pub(crate) mod refusal;

use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slack_morphism::errors::SlackClientError;
use slack_morphism::{SlackApiToken, SlackApiTokenValue, SlackClient};

use crate::settings::SlackSettings;
use connector::Connector;

/// Where Slack is.
pub(crate) const API_URL: &str = "https://slack.com/api";

/// Calls of one app, with both of its tokens.
pub(crate) struct Api {
    client: SlackClient<Connector>,
    bot: SlackApiToken,
    app: SlackApiToken,
}

/// Who the bot is, as `auth.test` says.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Who {
    pub(crate) user_id: String,
    /// Missing for user tokens.
    #[serde(default)]
    pub(crate) bot_id: String,
    pub(crate) team_id: String,
    #[serde(default)]
    pub(crate) team: String,
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) is_enterprise_install: bool,
}

impl Api {
    /// # Errors
    /// When the address is no URL, or the system's TLS roots cannot be read.
    pub(crate) fn new(settings: &SlackSettings) -> Result<Self, String> {
        // `Err` says that a TLS provider is installed already, which is what is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = settings.api_url.as_deref().unwrap_or(API_URL);
        let token = |secret: &secrecy::SecretString| {
            SlackApiToken::new(SlackApiTokenValue(secret.expose_secret().trim().to_owned()))
        };
        Ok(Self {
            client: SlackClient::new(Connector::new(base)?),
            bot: token(&settings.bot_token),
            app: token(&settings.app_token),
        })
    }

    /// Calls a method with a JSON body and the bot's token.
    pub(crate) async fn post<Q, A>(&self, method: &str, request: &Q) -> Result<A, SlackClientError>
    where
        Q: Serialize + Send + Sync,
        A: DeserializeOwned + Send,
    {
        let session = self.client.open_session(&self.bot);
        session
            .http_session_api
            .http_post(method, request, None)
            .await
    }

    /// Calls a method that reads, with parameters in the query and the bot's token.
    pub(crate) async fn get<A>(
        &self,
        method: &str,
        parameters: &[(&str, Option<String>)],
    ) -> Result<A, SlackClientError>
    where
        A: DeserializeOwned + Send,
    {
        let session = self.client.open_session(&self.bot);
        let parameters: Vec<(&str, Option<String>)> = parameters.to_vec();
        session
            .http_session_api
            .http_get(method, &parameters, None)
            .await
    }

    /// `auth.test`: who the bot is, and the scopes its token was granted (`None` = Slack did not say).
    pub(crate) async fn who(&self) -> Result<(Who, Option<Vec<String>>), SlackClientError> {
        let connector = self.connector();
        let answer = connector
            .post(
                &connector.method("auth.test")?,
                b"{}".to_vec(),
                Some(&self.bot),
            )
            .await?;
        let scopes = answer.scopes.as_deref().map(|scopes| {
            let names = scopes.split(',').map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        });
        Ok((answer.read()?, scopes))
    }

    /// `apps.connections.open`: the address of a socket, good for one connection within about half a minute.
    pub(crate) async fn socket_address(&self) -> Result<String, SlackClientError> {
        #[derive(Deserialize)]
        struct Opened {
            url: String,
        }
        let session = self.client.open_session(&self.app);
        let opened: Opened = session
            .http_session_api
            .http_post(
                "apps.connections.open",
                &serde_json::Value::Object(serde_json::Map::new()),
                None,
            )
            .await?;
        Ok(opened.url)
    }

    /// Posts to an address that needs no token: a `response_url`.
    pub(crate) async fn post_to<Q: Serialize + Sync>(
        &self,
        url: &str,
        request: &Q,
    ) -> Result<(), SlackClientError> {
        let connector = self.connector();
        let body = connector::json(request)?;
        connector.post(&url.parse()?, body, None).await.map(drop)
    }

    /// Uploads bytes to the address `files.getUploadURLExternal` gave.
    pub(crate) async fn upload(&self, url: &str, bytes: Vec<u8>) -> Result<(), SlackClientError> {
        self.connector().upload(&url.parse()?, bytes).await
    }

    /// Begins a download with the bot's token; follows no redirect.
    pub(crate) async fn download(
        &self,
        url: reqwest::Url,
    ) -> Result<reqwest::Response, SlackClientError> {
        self.connector().download(url, &self.bot).await
    }

    /// Whether the bot's token may be sent there: Slack's own hosts over TLS, or the host of the configured Web API.
    pub(crate) fn is_ours(&self, url: &reqwest::Url) -> bool {
        self.connector().is_ours(url)
    }

    fn connector(&self) -> &Connector {
        &self.client.http_api.connector
    }
}
