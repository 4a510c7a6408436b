//! Who the logins are, so that logins of one allowance count as one: what the providers tell, with a keyed hash in place of
//! the subject, which may be a secret.
//!
//! The key is made once per root and stays in `<root>/state/install-secret` (0600). It is never published: with it, and only
//! with it, somebody could try guesses of an API key against a fingerprint.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use gateway_core::ids::SubscriptionId;
use gateway_core::route::Billing;
use gateway_core::usage::identity::Login;
use hmac::{Hmac, KeyInit, Mac};
use providers::{LoginFacts, SharedProvider};
use sha2::Sha256;
use tokio::time::timeout;

use super::Registry;
use crate::config::{RootPath, Settings};

/// How long a provider may look at its own files.
const LOOK: Duration = Duration::from_secs(2);
const SECRET_BYTES: usize = 32;

/// The key of this root's fingerprints.
#[derive(Clone)]
pub struct InstallSecret([u8; SECRET_BYTES]);

impl std::fmt::Debug for InstallSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallSecret(…)")
    }
}

impl InstallSecret {
    /// The root's secret, made if there is none. Two processes that make it at once agree on one.
    pub fn of(root: &RootPath) -> io::Result<Self> {
        let file = place(root);
        match read(&file) {
            Err(why) if why.kind() == ErrorKind::NotFound => {
                make(&file)?;
                read(&file)
            }
            known => known,
        }
    }

    /// The fingerprint of a login: HMAC-SHA-256 over its company and what stays the same of it, in hex.
    pub fn fingerprint(&self, upstream: &str, subject: &str) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(upstream.as_bytes());
        mac.update(&[0x1f]); // keeps ("a", "bc") apart from ("ab", "c")
        mac.update(subject.as_bytes());
        let digest = mac.finalize().into_bytes();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn place(root: &RootPath) -> PathBuf {
    root.0.join("state").join("install-secret")
}

fn read(path: &Path) -> io::Result<InstallSecret> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(SECRET_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    let key = bytes.try_into().map_err(|_| {
        let why = format!(
            "{} is damaged; delete it, and a new one is made",
            path.display()
        );
        io::Error::new(ErrorKind::InvalidData, why)
    })?;
    Ok(InstallSecret(key))
}

/// Written whole beside its place, then given its name unless somebody was faster.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut key = [0; SECRET_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let mut file = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => File::open(folder)?.sync_all(),
        Err(lost) if lost.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(lost) => Err(lost.error),
    }
}

/// What is kept of a login. `secret` = `None`: no fingerprint can be made, and none is invented.
pub fn login(
    slug: &SubscriptionId,
    billing: Billing,
    facts: &LoginFacts,
    secret: Option<&InstallSecret>,
) -> Login {
    let fingerprint = match (secret, &facts.upstream, &facts.subject) {
        (Some(secret), Some(upstream), Some(subject)) => {
            Some(secret.fingerprint(upstream, subject.expose()))
        }
        _ => None,
    };
    Login {
        id: slug.clone(),
        upstream: facts.upstream.clone(),
        account_id: facts.account_id.clone(),
        fingerprint,
        email: facts.email.clone(),
        plan: facts.plan.clone(),
        metered: billing == Billing::Metered,
    }
}

/// What is known of a login after a new look: the new facts, and of the old ones what the new look did not tell, as long as
/// nothing speaks for another login.
pub fn renewed(old: Option<&Login>, new: Login) -> Login {
    let Some(old) = old else { return new };
    let differs = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
    let another = differs(&old.account_id, &new.account_id)
        || differs(&old.fingerprint, &new.fingerprint)
        || differs(&old.email, &new.email)
        || differs(&old.upstream, &new.upstream);
    // A look that tells less than before by a strong key may be at a folder somebody logged out of.
    let gone = (old.fingerprint.is_some() && new.fingerprint.is_none() && new.account_id.is_none())
        && new.email.is_none();
    if another || gone {
        return new;
    }
    Login {
        upstream: new.upstream.or_else(|| old.upstream.clone()),
        account_id: new.account_id.or_else(|| old.account_id.clone()),
        fingerprint: new.fingerprint.or_else(|| old.fingerprint.clone()),
        email: new.email.or_else(|| old.email.clone()),
        plan: new.plan.or_else(|| old.plan.clone()),
        ..new
    }
}

/// Asks every provider who its login is and tells the registry. Nothing is dialled; what cannot be read stays unknown.
pub async fn introduce(
    settings: &Settings,
    providers: &BTreeMap<SubscriptionId, SharedProvider>,
    registry: &Registry,
) {
    let looks = settings.subscriptions.values().filter_map(|subscription| {
        let provider = providers.get(&subscription.id)?.clone();
        Some(async move {
            let facts = timeout(LOOK, provider.login()).await.unwrap_or_default();
            (subscription, facts)
        })
    });
    let mut told = join_all(looks).await;
    told.retain(|(_, facts)| *facts != LoginFacts::default());
    if told.is_empty() {
        return;
    }
    let root = settings.root.clone();
    let secret = tokio::task::spawn_blocking(move || InstallSecret::of(&root)).await;
    let secret = match secret {
        Ok(Ok(secret)) => Some(secret),
        Ok(Err(why)) => {
            tracing::warn!(%why, "there is no install secret; logins of one allowance may count as several");
            None
        }
        Err(_) => None,
    };
    let known = registry.logins().await;
    let logins: Vec<Login> = told
        .into_iter()
        .map(|(subscription, facts)| {
            let new = login(
                &subscription.slug,
                subscription.billing,
                &facts,
                secret.as_ref(),
            );
            renewed(known.iter().find(|old| old.id == new.id), new)
        })
        .filter(|login| !known.contains(login))
        .collect();
    if !logins.is_empty() {
        registry.introduce(&logins).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use providers::LoginSubject;

    use super::*;

    fn facts(key: &str) -> LoginFacts {
        LoginFacts {
            upstream: Some("api.example.com".into()),
            subject: Some(LoginSubject::new(key)),
            ..LoginFacts::default()
        }
    }

    #[test]
    fn fingerprints_are_the_hmac_of_rfc_4231() {
        // Test case 2 of RFC 4231 has a short key; ours is padded with zeros to 32 bytes, which HMAC does as well.
        let mut key = [0; SECRET_BYTES];
        key[..4].copy_from_slice(b"Jefe");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(b"what do ya want for nothing?");
        let hex: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let secret = InstallSecret(key);
        assert_ne!(secret.fingerprint("a", "bc"), secret.fingerprint("ab", "c"));
        assert_ne!(
            secret.fingerprint("a", "b"),
            InstallSecret([7; SECRET_BYTES]).fingerprint("a", "b")
        );
    }

    #[test]
    fn the_secret_is_made_once_private_and_the_same_for_all() {
        let dir = tempfile::tempdir().unwrap();
        let root = Arc::new(RootPath(dir.path().join("root")));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let root = Arc::clone(&root);
                std::thread::spawn(move || InstallSecret::of(&root).unwrap().0)
            })
            .collect();
        let secrets: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(
            secrets
                .iter()
                .all(|secret| *secret == secrets[0] && *secret != [0; SECRET_BYTES])
        );
        let mode = std::fs::metadata(place(&root))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(root.0.join("state")).unwrap().count(),
            1,
            "nothing is left over"
        );
        assert_eq!(
            format!("{:?}", InstallSecret(secrets[0])),
            "InstallSecret(…)"
        );
    }

    #[test]
    fn a_damaged_secret_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = RootPath(dir.path().to_owned());
        InstallSecret::of(&root).unwrap();
        File::create(place(&root))
            .unwrap()
            .write_all(b"short")
            .unwrap();
        let why = InstallSecret::of(&root).unwrap_err().to_string();
        assert!(why.contains("install-secret is damaged"), "{why}");
    }

    #[test]
    fn a_key_is_hashed_and_nothing_is_made_up() {
        let secret = InstallSecret([7; SECRET_BYTES]);
        let known = login(&"s".into(), Billing::Metered, &facts("sk-1"), Some(&secret));
        assert!(known.metered && known.fingerprint.is_some());
        assert!(!format!("{known:?}").contains("sk-1"));
        assert_eq!(
            login(&"s".into(), Billing::Plan, &facts("sk-1"), None).fingerprint,
            None
        );
        let nobody = login(
            &"s".into(),
            Billing::Plan,
            &LoginFacts::default(),
            Some(&secret),
        );
        assert_eq!((nobody.fingerprint, nobody.upstream), (None, None));
    }

    #[test]
    fn a_new_look_adds_to_the_same_login_and_replaces_another() {
        let of = |account: Option<&str>, print: Option<&str>, plan: Option<&str>| Login {
            id: "s".into(),
            upstream: Some("anthropic".into()),
            account_id: account.map(str::to_owned),
            fingerprint: print.map(str::to_owned),
            email: None,
            plan: plan.map(str::to_owned),
            metered: false,
        };
        let old = of(Some("o"), Some("f"), Some("max"));
        let rows = [
            ("told less", of(None, Some("f"), None), old.clone()),
            (
                "another account",
                of(Some("p"), None, None),
                of(Some("p"), None, None),
            ),
            ("logged out", of(None, None, None), of(None, None, None)),
            (
                "a new plan",
                of(Some("o"), Some("f"), Some("pro")),
                of(Some("o"), Some("f"), Some("pro")),
            ),
        ];
        for (name, new, want) in rows {
            assert_eq!(renewed(Some(&old), new), want, "{name}");
        }
    }
}
