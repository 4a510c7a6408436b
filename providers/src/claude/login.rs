//! Who the login is, from the program's own files: the account in its settings file, the plan beside its credentials. The
//! tokens in the credentials are passed over while parsing and never kept.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use gateway_core::usage::source::login;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ClaudeSettings;
use crate::environment::billing_variable;
use crate::{LoginFacts, LoginSubject};

/// The company that meters every login of this program.
const UPSTREAM: &str = "anthropic";
/// The settings file also holds histories; a larger one is not read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The settings file, as of 2.1.332; everything else in it is passed over.
#[derive(Deserialize)]
struct SettingsFile {
    #[serde(rename = "oauthAccount", default)]
    account: Option<Value>,
}

#[derive(Deserialize)]
struct CredentialsFile {
    #[serde(rename = "claudeAiOauth", default)]
    login: Option<Credentials>,
}

#[derive(Deserialize)]
struct Credentials {
    #[serde(rename = "subscriptionType", default)]
    plan: Option<String>,
}

/// Reads the two files. Blocks on the disk.
pub(super) fn facts(settings: &ClaudeSettings) -> LoginFacts {
    let unknown = LoginFacts {
        upstream: Some(UPSTREAM.to_owned()),
        ..LoginFacts::default()
    };
    if let Some(key) = billing_variable(&settings.env).and_then(|name| settings.env.get(name)) {
        return LoginFacts {
            subject: Some(LoginSubject::new(key)),
            ..unknown
        };
    }
    // A token in the environment is another login than the folder's, and the token itself rotates.
    if settings.env.contains_key("CLAUDE_CODE_OAUTH_TOKEN") {
        return unknown;
    }
    let account = settings
        .account_file()
        .and_then(|file| read::<SettingsFile>(&file)?.account);
    let Some(account) = account else {
        return unknown;
    };
    let known = login::claude(&account, &settings.subscription);
    let plan = settings.folder().and_then(|folder| {
        read::<CredentialsFile>(&folder.join(".credentials.json"))?
            .login?
            .plan
    });
    LoginFacts {
        subject: known.account_id.clone().map(LoginSubject::new),
        account_id: known.account_id,
        email: known.email,
        plan: plan.or(known.plan),
        ..unknown
    }
}

/// A missing or strange file tells nothing.
fn read<T: DeserializeOwned>(file: &Path) -> Option<T> {
    let file = File::open(file).ok()?;
    let is_small = file.metadata().ok()?.is_file() && file.metadata().ok()?.len() <= MAX_BYTES;
    is_small.then(|| serde_json::from_reader(BufReader::new(file.take(MAX_BYTES))).ok())?
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;

    fn write(file: &Path, text: &str) {
        File::create(file)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn settings(home: &Path) -> ClaudeSettings {
        ClaudeSettings {
            binary: None,
            home: Some(home.to_owned()),
            env: BTreeMap::new(),
            subscription: "one".into(),
            hidden: Vec::new(),
            now: Arc::new(|| Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn account_organisation_mail_and_plan_and_never_a_token() {
        let home = tempfile::tempdir().unwrap();
        write(
            &home.path().join(".claude.json"),
            r#"{"numStartups":3,"oauthAccount":{"accountUuid":"a-1","organizationUuid":"o-1","emailAddress":"Ann@example.com"}}"#,
        );
        write(
            &home.path().join(".credentials.json"),
            r#"{"claudeAiOauth":{"accessToken":"SECRET","refreshToken":"SECRET","expiresAt":1,"scopes":["x"],"subscriptionType":"max"}}"#,
        );
        let facts = facts(&settings(home.path()));
        assert_eq!(
            (
                facts.upstream.as_deref(),
                facts.account_id.as_deref(),
                facts.email.as_deref(),
                facts.plan.as_deref()
            ),
            (
                Some("anthropic"),
                Some("o-1/a-1"),
                Some("Ann@example.com"),
                Some("max")
            )
        );
        assert!(!format!("{facts:?}").contains("SECRET"));
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let home = tempfile::tempdir().unwrap();
        let unknown = LoginFacts {
            upstream: Some("anthropic".into()),
            ..LoginFacts::default()
        };
        assert_eq!(facts(&settings(home.path())), unknown);
        for text in [
            "",
            "{half",
            "[]",
            r#"{"oauthAccount":null}"#,
            r#"{"oauthAccount":7}"#,
        ] {
            write(&home.path().join(".claude.json"), text);
            assert_eq!(facts(&settings(home.path())), unknown, "{text}");
        }
    }

    #[test]
    fn a_key_or_a_token_named_in_the_settings_is_another_login_than_the_folders() {
        let home = tempfile::tempdir().unwrap();
        write(
            &home.path().join(".claude.json"),
            r#"{"oauthAccount":{"accountUuid":"a-1","organizationUuid":"o-1"}}"#,
        );
        let with = |name: &str| {
            let mut settings = settings(home.path());
            settings.env.insert(name.to_owned(), "value".to_owned());
            facts(&settings)
        };
        let key = with("ANTHROPIC_API_KEY");
        assert_eq!(
            (key.account_id, key.subject),
            (None, Some(LoginSubject::new("value")))
        );
        let token = with("CLAUDE_CODE_OAUTH_TOKEN");
        assert_eq!((token.account_id, token.subject), (None, None));
    }
}
