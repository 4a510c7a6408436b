//! Subscriptions whose login was refused: one small file each below `<root>/state/lockouts/`, so that every process of the
//! root sees it in its next turn and it outlives them all. No time ends it. It ends with a login that is not the refused one
//! any more, with a `baton doctor` that finds the login ready, or with a turn that is served.
//!
//! A record that cannot be read locks nobody out, and one that cannot be written is a warning: either way the subscription
//! is tried, which costs one refused request.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use gateway_core::ids::SubscriptionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::config::RootPath;

/// The records of a root.
#[derive(Debug, Clone)]
pub struct Lockouts {
    folder: PathBuf,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lockout {
    pub subscription: SubscriptionId,
    pub since: Timestamp,
    /// Drawn anew for each record, so that the digest tells nothing about a key.
    salt: String,
    /// SHA-256 over the salt and what the login looked like when it was refused.
    login: String,
}

impl Lockout {
    /// Whether the refused login is the one that looks like this.
    pub fn is_of(&self, login: &str) -> bool {
        self.login == digest(&self.salt, login)
    }
}

impl Lockouts {
    /// Of this root. Nothing is created before the first record.
    pub fn of(root: &RootPath) -> Self {
        Self {
            folder: root.0.join("state").join("lockouts"),
        }
    }

    /// Whether there may be any; the usual answer costs one look.
    pub fn any(&self) -> bool {
        self.folder.is_dir()
    }

    /// The subscription's record; `None` = it is not locked out.
    pub fn of_subscription(&self, subscription: &SubscriptionId) -> Option<Lockout> {
        let file = self.file(subscription);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return None,
            Err(why) => {
                warn!(file = %file.display(), %why, "a record of a refused login cannot be read; the subscription is tried");
                return None;
            }
        };
        match serde_json::from_slice(&text) {
            Ok(lockout) => Some(lockout),
            Err(why) => {
                warn!(file = %file.display(), %why, "a record of a refused login is damaged; the subscription is tried");
                None
            }
        }
    }

    /// Locks the subscription out with the login it has now. `false` = it was locked out already, or it could not be
    /// recorded.
    pub fn record(&self, subscription: &SubscriptionId, login: &str, now: Timestamp) -> bool {
        if let Some(known) = self.of_subscription(subscription)
            && known.is_of(login)
        {
            return false;
        }
        let salt = uuid::Uuid::new_v4().to_string();
        let lockout = Lockout {
            subscription: subscription.clone(),
            since: now,
            login: digest(&salt, login),
            salt,
        };
        match self.write(&lockout) {
            Ok(()) => true,
            Err(why) => {
                warn!(%subscription, %why, "a refused login could not be recorded; the subscription is tried again");
                false
            }
        }
    }

    /// Forgets the subscription's record. `true` = there was one.
    pub fn clear(&self, subscription: &SubscriptionId) -> bool {
        let file = self.file(subscription);
        match fs::remove_file(&file) {
            Ok(()) => {
                let _ = fs::remove_dir(&self.folder); // not while others are in it
                true
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => false,
            Err(why) => {
                warn!(file = %file.display(), %why, "a record of a refused login cannot be removed");
                false
            }
        }
    }

    fn write(&self, lockout: &Lockout) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // Another process may have cleared the folder away since; then there is nothing to lose but this record.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?; // 0600
        file.write_all(&serde_json::to_vec(lockout)?)?;
        file.as_file().sync_all()?;
        file.persist(self.file(&lockout.subscription))
            .map_err(|error| error.error)?;
        Ok(())
    }

    /// A name may hold anything; its digest does not.
    fn file(&self, subscription: &SubscriptionId) -> PathBuf {
        let name = hex(&Sha256::digest(subscription.key().as_bytes()));
        let name: String = name.chars().take(32).collect();
        self.folder.join(format!("{name}.json"))
    }
}

fn digest(salt: &str, login: &str) -> String {
    hex(&Sha256::digest(format!("{salt}\n{login}").as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_stays_refused_until_it_is_another_one() {
        let root = tempfile::tempdir().unwrap();
        let lockouts = Lockouts::of(&RootPath(root.path().to_owned()));
        let (a, b) = (SubscriptionId::new("a/../b"), SubscriptionId::new("b"));
        assert!(!lockouts.any() && lockouts.of_subscription(&a).is_none());
        assert!(lockouts.record(&a, "key one", Timestamp::UNIX_EPOCH));
        assert!(!lockouts.record(&a, "key one", Timestamp::UNIX_EPOCH));
        let again = Lockouts::of(&RootPath(root.path().to_owned()));
        let lockout = again.of_subscription(&a).unwrap();
        assert!(lockout.is_of("key one") && !lockout.is_of("key two"));
        assert!(again.of_subscription(&b).is_none());
        assert!(lockouts.record(&a, "key two", Timestamp::UNIX_EPOCH));
        assert!(again.clear(&a) && !again.clear(&a));
        assert!(!lockouts.any());
    }

    #[test]
    fn a_damaged_record_locks_nobody_out() {
        let root = tempfile::tempdir().unwrap();
        let lockouts = Lockouts::of(&RootPath(root.path().to_owned()));
        let a = SubscriptionId::new("a");
        assert!(lockouts.record(&a, "key", Timestamp::UNIX_EPOCH));
        let mut file = fs::File::create(lockouts.file(&a)).unwrap();
        file.write_all(b"{\"subscription\": \"a\", ").unwrap();
        assert_eq!(lockouts.of_subscription(&a), None);
    }

    #[test]
    fn no_secret_stands_in_a_record() {
        let root = tempfile::tempdir().unwrap();
        let lockouts = Lockouts::of(&RootPath(root.path().to_owned()));
        let a = SubscriptionId::new("a");
        lockouts.record(&a, "sk-secret", Timestamp::UNIX_EPOCH);
        let text = fs::read_to_string(lockouts.file(&a)).unwrap();
        assert!(!text.contains("secret"), "{text}");
    }
}
