//! Routes of `opencode` that will not do what was meant: its models are named with the provider that serves them, and each
//! provider has a quota of its own, while readings and refusals are kept per subscription.

use std::collections::BTreeMap;

use gateway_core::ids::SubscriptionId;
use gateway_core::route::Route;

use super::{Program, ProviderSettings, SubscriptionSettings};

/// One warning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Which entry of the chain, from 0.
    pub(super) index: usize,
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// Looks through a chain.
pub(super) fn doubts(
    chain: &[Route],
    subscriptions: &BTreeMap<SubscriptionId, SubscriptionSettings>,
) -> Vec<Doubt> {
    let mut first: BTreeMap<&SubscriptionId, &str> = BTreeMap::new();
    let mut doubts = Vec::new();
    for (index, route) in chain.iter().enumerate() {
        if !subscriptions
            .get(&route.subscription)
            .is_some_and(is_opencode)
        {
            continue;
        }
        let named = route.model.as_str().split_once('/');
        let Some((provider, _)) =
            named.filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
        else {
            doubts.push(Doubt {
                index,
                message: format!(
                    "{route} names no provider of opencode, so no turn can start on it"
                ),
                hint: "write it as subscription/PROVIDER/MODEL; `opencode models` lists them",
            });
            continue;
        };
        let other = *first.entry(&route.subscription).or_insert(provider);
        if other != provider {
            doubts.push(Doubt {
                index,
                message: format!(
                    "{other} and {provider} are two quotas in one subscription: when one is spent or its login refused, both are left out"
                ),
                hint: "make a second subscription with provider = \"opencode\" and a home of its own that has that login alone",
            });
        }
    }
    doubts
}

fn is_opencode(subscription: &SubscriptionSettings) -> bool {
    matches!(
        subscription.provider,
        ProviderSettings::Cli {
            program: Program::OpenCode,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use gateway_core::route::Billing;

    use super::*;

    fn found(chain: &[(&str, &str)]) -> Vec<usize> {
        let subscription = |name: &str, program| {
            let id = SubscriptionId::new(name);
            let provider = ProviderSettings::Cli {
                program,
                home: None,
                binary: None,
                env: BTreeMap::new(),
            };
            let settings = SubscriptionSettings {
                slug: id.clone(),
                id: id.clone(),
                billing: Billing::Plan,
                provider,
            };
            (id, settings)
        };
        let subscriptions = BTreeMap::from([
            subscription("oc", Program::OpenCode),
            subscription("two", Program::OpenCode),
            subscription("cx", Program::Codex),
        ]);
        let chain: Vec<Route> = chain
            .iter()
            .map(|(name, model)| Route::new(name, model))
            .collect();
        let doubts = doubts(&chain, &subscriptions);
        doubts.into_iter().map(|doubt| doubt.index).collect()
    }

    #[test]
    fn a_model_without_its_provider_and_two_quotas_in_one_subscription() {
        type Row = (&'static [(&'static str, &'static str)], &'static [usize]);
        let rows: [Row; 5] = [
            (&[("cx", "gpt-5.5"), ("cx", "a/b"), ("cx", "c/d")], &[]),
            (&[("oc", "go/a"), ("oc", "go/b/c")], &[]),
            (&[("oc", "kimi"), ("oc", "/x"), ("oc", "x/")], &[0, 1, 2]),
            (&[("oc", "go/a"), ("cx", "m"), ("oc", "copilot/b")], &[2]),
            (&[("oc", "go/a"), ("two", "copilot/b")], &[]),
        ];
        for (chain, want) in rows {
            assert_eq!(found(chain), want, "{chain:?}");
        }
    }
}
