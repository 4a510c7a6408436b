//! One request to Discord's REST interface, tried once. In production it passes serenity's rate limiter, which knows the
//! buckets; but where the limiter would sleep, for a bucket that is used up or after a 429, it is left at once and says so:
//! waiting is the outbox's, which lets newer texts replace older ones meanwhile. (Asked to sleep, serenity 0.12 holds the
//! bucket's lock and repeats without end.)

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use platforms::wire::Scope;
use reqwest_of_serenity::{Certificate, Client, Response, redirect};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serenity::Error;
use serenity::http::{Http, HttpBuilder, HttpError, RatelimitInfo, Ratelimiter, Request};
use tokio::time::{Instant, sleep, timeout};

use crate::refusal::{self, Headers, Trouble};
use crate::settings::{DiscordSettings, SettingsError};

/// How long one request may take; uploads too.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// Shorter sleeps are left to the limiter: they may be over before anybody looks.
const SLEEP_LEAST: Duration = Duration::from_millis(20);

/// What a 429 without a word asks for.
const UNSAID_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Rest {
    http: Http,
    client: Client,
}

/// The limiter would sleep.
#[derive(Clone, Copy)]
struct Asleep {
    wait: Duration,
    global: bool,
}

tokio::task_local! {
    /// Where the limiter's call-back leaves its word for the request of this task.
    static ASLEEP: Cell<Option<Asleep>>;
}

impl Rest {
    pub(crate) fn new(settings: &DiscordSettings) -> Result<Self, SettingsError> {
        let client = client(settings)?;
        let token = settings.token.expose_secret();
        let builder = HttpBuilder::new(token).client(client.clone());
        let http = match &settings.api_base {
            Some(base) => builder.proxy(base).ratelimiter_disabled(true).build(),
            None => {
                let mut limiter = Ratelimiter::new(client.clone(), format!("Bot {token}"));
                limiter.set_ratelimit_callback(Box::new(note));
                builder.ratelimiter(limiter).build()
            }
        };
        Ok(Self { http, client })
    }

    /// Makes the request; the body of a success.
    pub(crate) async fn once(&self, request: Request<'_>) -> Result<Vec<u8>, Trouble> {
        let made = async {
            let response = match &self.http.ratelimiter {
                Some(limiter) => unless_asleep(limiter.perform(request)).await?,
                None => {
                    let proxy = self.http.proxy.as_deref();
                    let built = request.build(&self.client, self.http.token(), proxy);
                    let built = built.map_err(|error| broken(&error))?;
                    built.send().await.map_err(|error| lost(&error))?
                }
            };
            finish(response).await
        };
        match timeout(REQUEST_DEADLINE, made).await {
            Ok(done) => done,
            Err(_) => Err(Trouble::Uncertain(format!(
                "no answer within {} s",
                REQUEST_DEADLINE.as_secs()
            ))),
        }
    }

    /// The same, and the body read.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        request: Request<'_>,
    ) -> Result<T, Trouble> {
        read(&self.once(request).await?)
    }

    /// Tries again what a limit or a lost connection prevented, until `until`; for what the outbox has no part in.
    pub(crate) async fn patiently(
        &self,
        request: Request<'_>,
        until: Instant,
    ) -> Result<Vec<u8>, Trouble> {
        let mut pause = Duration::from_millis(250);
        loop {
            let trouble = match self.once(request.clone()).await {
                Ok(body) => return Ok(body),
                Err(trouble) => trouble,
            };
            let wait = match &trouble {
                Trouble::Refused(_) => return Err(trouble),
                Trouble::Limited { after, .. } => after.unwrap_or(UNSAID_PAUSE),
                Trouble::NotDelivered(_) | Trouble::Uncertain(_) => pause,
            };
            if Instant::now() + wait >= until {
                return Err(trouble);
            }
            sleep(wait).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    /// [`Self::patiently`], and the body read.
    pub(crate) async fn ask_patiently<T: DeserializeOwned>(
        &self,
        request: Request<'_>,
        until: Instant,
    ) -> Result<T, Trouble> {
        read(&self.patiently(request, until).await?)
    }

    /// For what is no API request: files. It carries no token by itself.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

fn client(settings: &DiscordSettings) -> Result<Client, SettingsError> {
    let fault = |error: reqwest_of_serenity::Error| SettingsError::Client(error.to_string());
    let mut builder = Client::builder()
        .use_rustls_tls()
        .connect_timeout(Duration::from_secs(10))
        // The token must not follow a redirect to wherever it leads.
        .redirect(redirect::Policy::none());
    if settings.stays_here() {
        builder = builder.no_proxy();
    }
    if let Some(detour) = &settings.detour {
        let authority = Certificate::from_pem(detour.authority.as_bytes()).map_err(fault)?;
        builder = builder
            .resolve("discord.com", detour.discord_com)
            .add_root_certificate(authority);
    }
    builder.build().map_err(fault)
}

fn note(info: RatelimitInfo) {
    if info.timeout < SLEEP_LEAST {
        return;
    }
    let asleep = Asleep {
        wait: info.timeout,
        global: info.global,
    };
    // Outside of `unless_asleep` nobody asks.
    let _ = ASLEEP.try_with(|word| word.set(Some(asleep)));
}

/// Polls until the limiter goes to sleep: before it sends, or after a 429. Either way nothing was carried out.
async fn unless_asleep(
    performing: impl Future<Output = serenity::Result<Response>>,
) -> Result<Response, Trouble> {
    let polled = async {
        let mut performing = pin!(performing);
        poll_fn(|context| match performing.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done.map_err(|error| broken(&error))),
            Poll::Pending => match ASLEEP.with(Cell::take) {
                Some(asleep) => Poll::Ready(Err(Trouble::Limited {
                    after: Some(asleep.wait),
                    scope: match asleep.global {
                        true => Scope::Everything,
                        false => Scope::Channel,
                    },
                })),
                None => Poll::Pending,
            },
        })
        .await
    };
    ASLEEP.scope(Cell::new(None), polled).await
}

async fn finish(response: Response) -> Result<Vec<u8>, Trouble> {
    let status = response.status();
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let (retry_after, scope) = (header("retry-after"), header("x-ratelimit-scope"));
    let body = response.bytes().await;
    if status.is_success() {
        return body.map(Into::into).map_err(|error| lost(&error));
    }
    // The status alone says enough if the body is lost.
    let body = body.unwrap_or_default();
    let headers = Headers {
        retry_after: retry_after.as_deref(),
        scope: scope.as_deref(),
    };
    Err(refusal::read(status.as_u16(), &headers, &body))
}

pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(body)
        .map_err(|error| Trouble::Uncertain(format!("the answer cannot be read: {error}")))
}

fn broken(error: &Error) -> Trouble {
    match error {
        Error::Http(HttpError::Request(error)) => lost(error),
        other => Trouble::NotDelivered(other.to_string()),
    }
}

/// A request without an answer. Its address is left out: the token of an interaction stands in it.
fn lost(error: &reqwest_of_serenity::Error) -> Trouble {
    let mut why = match error.is_timeout() {
        true => "time ran out".to_owned(),
        false => "the connection failed".to_owned(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        why = format!("{why}: {source}");
        cause = source.source();
    }
    match error.is_connect() || error.is_builder() {
        true => Trouble::NotDelivered(why),
        false => Trouble::Uncertain(why),
    }
}
