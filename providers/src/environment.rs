//! The environment a child program gets: an allow-list of what the gateway itself has, then what its provider fixes, then
//! what the settings name.
//!
//! Billing guard: API keys and cloud switches of the gateway's own environment never pass, because a CLI that finds one
//! bills it instead of the plan the person is logged in with. They can only be named in the settings. Proxies and
//! certificate files pass: without them a CLI behind a proxy cannot reach its service at all.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables passed on when the gateway has them.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Variables that make a model CLI bill a key or a cloud account instead of the login.
const BILLING: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "OPENAI_API_KEY",
];

/// Builds a child's environment. Later sources win: `inherited` (filtered), `fixed`, `named` (from the settings).
pub fn child_environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    fixed: &[(&str, &OsStr)],
    named: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let mut built: BTreeMap<OsString, OsString> = inherited
        .into_iter()
        .filter(|(name, _)| is_allowed(name))
        .collect();
    built.extend(
        fixed
            .iter()
            .map(|(name, value)| (name.into(), (*value).to_owned())),
    );
    built.extend(
        named
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    built.into_iter().collect()
}

/// The first variable of the settings that bills something other than the login; `None` = the login pays.
pub fn billing_variable(named: &BTreeMap<String, String>) -> Option<&'static str> {
    BILLING
        .iter()
        .copied()
        .find(|name| named.contains_key(*name))
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(n, v)| (n.into(), v.into())).collect()
    }

    #[test]
    fn only_listed_variables_pass() {
        let own = os(&[
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "sk"),
            ("ANTHROPIC_AUTH_TOKEN", "t"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("IS_SANDBOX", "1"),
            ("BATON_SECRET", "x"),
            ("NODE_OPTIONS", "--require evil"),
            ("LD_PRELOAD", "evil.so"),
            ("https_proxy", "http://proxy"),
        ]);
        let built = child_environment(own, &[], &BTreeMap::new());
        assert_eq!(
            built,
            os(&[("PATH", "/bin"), ("https_proxy", "http://proxy")])
        );
    }

    #[test]
    fn the_settings_win_over_what_is_fixed_and_inherited() {
        let named = BTreeMap::from([("HOME".to_owned(), "/c".to_owned())]);
        let built = child_environment(os(&[("HOME", "/a")]), &[("HOME", OsStr::new("/b"))], &named);
        assert_eq!(built, os(&[("HOME", "/c")]));
    }

    #[test]
    fn a_key_named_in_the_settings_is_found() {
        let named = BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "k".to_owned())]);
        assert_eq!(billing_variable(&named), Some("ANTHROPIC_API_KEY"));
        assert_eq!(billing_variable(&BTreeMap::new()), None);
    }
}
