//! What `model` in a request means, and the list of what it may be: a profile (its chain), or one route of a profile.

use gateway_core::ids::ProfileId;
use gateway_core::route::Route;
use serde_json::{Value, json};

use super::error::ApiError;
use crate::config::{DEFAULT_PROFILE, Settings};

/// Where a request goes: a profile, and the route of its chain that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) profile: ProfileId,
    /// `None` = the chain.
    pub(super) route: Option<Route>,
}

/// Resolves `model`. The default profile is looked at first where several hold a route.
pub(super) fn resolve(model: Option<&str>, settings: &Settings) -> Result<Target, ApiError> {
    let name = model.unwrap_or(DEFAULT_PROFILE);
    let profile = ProfileId::new(name);
    if settings.profiles.contains_key(&profile) {
        return Ok(Target {
            profile,
            route: None,
        });
    }
    let wanted: Option<Route> = name.parse().ok();
    let default = ProfileId::new(DEFAULT_PROFILE);
    let mut profiles: Vec<&ProfileId> = settings.profiles.keys().collect();
    profiles.sort_by_key(|profile| **profile != default);
    for profile in profiles {
        let chain = settings.profiles.get(profile).map(|found| &found.chain);
        let found = chain
            .into_iter()
            .flatten()
            .find(|route| Some(*route) == wanted.as_ref());
        if let Some(route) = found {
            return Ok(Target {
                profile: profile.clone(),
                route: Some(route.clone()),
            });
        }
    }
    let why = match model {
        Some(model) => format!(
            "there is no model {model:?}: name a profile, or a route of one as subscription/model; GET /v1/models lists them."
        ),
        None => format!(
            "there is no profile {DEFAULT_PROFILE:?}; name one in `model`. GET /v1/models lists them."
        ),
    };
    Err(ApiError {
        param: Some("model".to_owned()),
        ..ApiError::new(404, "model_not_found", why)
    })
}

/// The list of models.
pub(super) fn list(settings: &Settings) -> Value {
    let mut names: Vec<String> = settings.profiles.keys().map(ToString::to_string).collect();
    for profile in settings.profiles.values() {
        names.extend(profile.chain.iter().map(ToString::to_string));
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let model =
        |name: &String| json!({ "id": name, "object": "model", "created": 0, "owned_by": "baton" });
    let data: Vec<Value> = names.iter().map(model).collect();
    json!({ "object": "list", "data": data })
}

/// One model of the list; `None` = there is none of this name.
pub(super) fn one(name: &str, settings: &Settings) -> Option<Value> {
    resolve(Some(name), settings).ok()?;
    Some(json!({ "id": name, "object": "model", "created": 0, "owned_by": "baton" }))
}
