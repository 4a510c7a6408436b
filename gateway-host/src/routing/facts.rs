//! The facts of a step. Gathered anew each time: nothing is decided on what an earlier step saw.

use gateway_core::handoff::carriage;
use gateway_core::ids::{ConversationId, SubscriptionId};
use gateway_core::route::{Billing, Chain, Route};
use gateway_core::switch::facts::{Burn, Class, Facts, LoginState, Reservation, Selection, Thread};
use gateway_core::switch::machine::Place;
use gateway_core::usage::identity::{Login, QuotaGroups};
use gateway_core::usage::{Reading, ReadingSource};
use jiff::{SignedDuration, Timestamp};
use providers::Permissions;

use crate::config::{ProfileSettings, Program, ProviderSettings, SubscriptionSettings};
use crate::cooling::Aside;
use crate::effects::Effects;
use crate::store::StoreError;
use crate::store::routing::Promise;
use crate::usage::Evidence;

/// An automatic switch counts for so long.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// The one ability every route must have: to keep the chat's permission level.
const KEEPS_PERMISSIONS: &str = "permissions";

/// Whose step it is.
#[derive(Debug, Clone)]
pub(super) struct Subject<'a> {
    pub profile: &'a ProfileSettings,
    pub conversation: &'a ConversationId,
    pub permissions: Permissions,
    /// The pending request; `None` = nothing to fit.
    pub request: Option<&'a str>,
    pub tool_open: bool,
}

/// The facts, and the revision of the promises they were gathered on.
pub(super) async fn gather(
    subject: &Subject<'_>,
    place: &Place,
    effects: &Effects,
) -> Result<(Facts, i64), StoreError> {
    let now = effects.now();
    let (promises, seen) = effects.store.promises().await?;
    effects.registry.settled().await;
    let evidence = effects.registry.current(now).await;
    let known = effects.registry.logins().await;
    let routes = candidates(subject.profile);
    let logins: Vec<LoginState> = effects
        .settings
        .subscriptions
        .values()
        .map(|subscription| {
            login(
                subscription,
                &known,
                subject.permissions,
                &routes,
                effects,
                now,
            )
        })
        .collect();
    let all: Vec<Login> = logins.iter().map(|state| state.login.clone()).collect();
    let groups = QuotaGroups::of(&all);
    let readings = readings(place, &routes, &evidence, effects);
    let mut environment_switches = effects
        .store
        .switches_since(now.checked_sub(DAY).unwrap_or(now))
        .await?;
    let in_flight = promises.iter().filter(|promise| promise.begun_at.is_none());
    environment_switches.extend(in_flight.map(|promise| promise.at));
    let burn = effects.store.burn().await?;
    let facts = Facts {
        settings: subject.profile.routing.settings.clone(),
        class: Class::Interactive,
        thread: Thread {
            tool_in_flight_ms: subject.tool_open.then_some(0),
            requires: vec![KEEPS_PERMISSIONS.to_owned()],
            request_tokens: subject.request.map(tokens),
            ..Thread::default()
        },
        environment_switches,
        restarted_at: Some(effects.routing.started_at),
        source: Some(selection(place)),
        chain: routes
            .iter()
            .map(|route| selection(&super::place_of(route)))
            .collect(),
        expected_burn_pct: expected(&burn, place, subject.profile),
        reservations: reservations(promises, &readings, &groups),
        spent: effects.store.spent(subject.conversation, now).await?,
        logins,
        groups,
        readings,
        burn,
    };
    Ok((facts, seen))
}

/// Where the work of a profile may go, in order.
pub(super) fn candidates(profile: &ProfileSettings) -> Vec<Route> {
    match profile.routing.candidates.as_slice() {
        [] => profile.chain.clone(),
        named => named.to_vec(),
    }
}

fn selection(place: &Place) -> Selection {
    Selection::new(place.subscription.as_str(), place.model.as_deref())
}

fn tokens(text: &str) -> u64 {
    carriage::tokens_of_bytes(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

/// Turns cost about the same wherever they run: what the source burns is expected of a candidate without samples.
fn expected(burn: &[Burn], place: &Place, profile: &ProfileSettings) -> Option<f64> {
    let guard = &profile.routing.settings.guard;
    let own = burn
        .iter()
        .filter(|one| one.subscription == place.subscription);
    let each = own.filter_map(|one| {
        gateway_core::usage::burn::expected(&one.samples, guard.samples, guard.min_samples)
    });
    each.reduce(f64::max)
}

/// Readings under the names the chain uses; of the subscriptions that matter here, which keeps the audit small.
fn readings(
    place: &Place,
    routes: &[Route],
    evidence: &Evidence,
    effects: &Effects,
) -> Vec<Reading> {
    let of_interest = |id: &SubscriptionId| {
        *id == place.subscription || routes.iter().any(|route| route.subscription == *id)
    };
    let subscriptions = effects.settings.subscriptions.values();
    let chosen = subscriptions.filter(|one| of_interest(&one.id));
    chosen
        .flat_map(|one| {
            evidence.of(&one.slug).map(|reading| Reading {
                subscription: one.id.clone(),
                ..reading.clone()
            })
        })
        .collect()
}

/// A promise counts while it is in flight, and after that until a newer reading shows what was burnt.
fn reservations(
    promises: Vec<Promise>,
    readings: &[Reading],
    groups: &QuotaGroups,
) -> Vec<Reservation> {
    let shown = |promise: &Promise| {
        let Some(begun_at) = promise.begun_at else {
            return false;
        };
        let head = groups.head(&promise.subscription);
        readings.iter().any(|reading| {
            reading.source != ReadingSource::Rollout
                && groups.head(&reading.subscription) == head
                && reading.observed_at.is_some_and(|at| at > begun_at)
        })
    };
    promises
        .into_iter()
        .filter(|promise| !shown(promise))
        .map(|promise| Reservation {
            subscription: promise.subscription,
            pct: promise.pct,
            at: Some(promise.at),
        })
        .collect()
}

fn login(
    subscription: &SubscriptionSettings,
    known: &[Login],
    permissions: Permissions,
    routes: &[Route],
    effects: &Effects,
    now: Timestamp,
) -> LoginState {
    let stored = known.iter().find(|login| login.id == subscription.slug);
    let login = identity(subscription, stored);
    let id = &subscription.id;
    let provider = effects.providers.get(id);
    let keeps = provider.is_some_and(|provider| provider.check_permissions(permissions).is_ok());
    let locked_out = effects.cooling.is_locked_out(id);
    let proven = login.account_id.is_some() || login.fingerprint.is_some() || login.email.is_some();
    let lacks = (!keeps).then(|| KEEPS_PERMISSIONS.to_owned());
    LoginState {
        provider: provider_word(subscription, routes),
        enabled: true,
        installed: provider.is_some(),
        authenticated: !locked_out && (proven || login.metered),
        available: true,
        hub: false,
        lacks: lacks.into_iter().collect(),
        last_start_failed_at: cools(subscription, routes, effects, now).then_some(now),
        login,
    }
}

/// Who the login is, under the name the chain uses. A script is a company of its own.
fn identity(subscription: &SubscriptionSettings, stored: Option<&Login>) -> Login {
    let id = subscription.id.clone();
    let metered = subscription.billing == Billing::Metered;
    match (stored, &subscription.provider) {
        (Some(stored), _) => Login {
            id,
            metered,
            ..stored.clone()
        },
        (None, ProviderSettings::Scripted) => Login {
            upstream: Some(format!("script of {id}")),
            account_id: Some(id.as_str().to_owned()),
            fingerprint: None,
            email: None,
            plan: None,
            metered,
            id,
        },
        (None, _) => Login {
            upstream: None,
            account_id: None,
            fingerprint: None,
            email: None,
            plan: None,
            metered,
            id,
        },
    }
}

/// The back end's word; OpenCode Go is told by its models.
fn provider_word(subscription: &SubscriptionSettings, routes: &[Route]) -> String {
    let go = |route: &&Route| {
        route.subscription == subscription.id && route.model.as_str().starts_with("opencode-go/")
    };
    let word = match &subscription.provider {
        ProviderSettings::Cli {
            program: Program::OpenCode,
            ..
        } if routes.iter().any(|route| go(&route)) => "opencode-go",
        ProviderSettings::Cli { program, .. } => program.word(),
        ProviderSettings::Anthropic { .. } => "anthropic",
        ProviderSettings::OpenAi { .. } => "openai",
        ProviderSettings::Scripted => "scripted",
    };
    word.to_owned()
}

/// Whether a start on it failed a moment ago.
fn cools(
    subscription: &SubscriptionSettings,
    routes: &[Route],
    effects: &Effects,
    now: Timestamp,
) -> bool {
    let entries = routes
        .iter()
        .filter(|route| route.subscription == subscription.id)
        .filter_map(|route| effects.settings.entry(route))
        .collect();
    let asides = effects.cooling.asides(&Chain { entries }, now);
    asides.contains(&Aside::Cooling)
}
