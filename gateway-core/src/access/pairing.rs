//! The owner's one-time code: shown on the gateway's own terminal, typed in a chat, and its sender becomes an operator.
//! Only a digest of it is kept, it is short-lived, works once, and ends after a few wrong tries by anybody.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How long a code is valid.
const VALID_FOR: SignedDuration = SignedDuration::from_mins(15);

/// Wrong tries after which it ends: with 40 bits, guessing is hopeless.
const TRIES: u8 = 5;

/// No `I L O U`: they are misread, or make words.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The code as it is shown, once: `ABCD-EFGH`.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode(String);

impl PairingCode {
    /// What the owner is to type.
    pub fn shown(&self) -> &str {
        &self.0
    }
}

/// Never the code: debug output ends in logs.
impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(…)")
    }
}

/// What is kept of an offered code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// SHA-256 of the code, in hexadecimal digits.
    digest: String,
    expires_at: Timestamp,
    tries_left: u8,
    used: bool,
}

/// What became of a typed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redeemed {
    /// Its sender is the owner. The code is used up.
    Paired,
    Wrong {
        tries_left: u8,
    },
    Expired,
    /// Used before.
    Used,
    /// Too many wrong tries; a new code is needed.
    Locked,
}

impl Pairing {
    /// Makes a code of `random`, which must come from the system's random source.
    pub fn offer(random: [u8; 8], now: Timestamp) -> (PairingCode, Self) {
        let symbols = random.map(|byte| {
            let at = usize::from(byte) % ALPHABET.len(); // 256 is a multiple of 32: every symbol is as likely
            ALPHABET.get(at).copied().map_or('0', char::from)
        });
        let code: String = symbols.iter().collect();
        let pairing = Self {
            digest: digest(&code),
            expires_at: now.saturating_add(VALID_FOR).unwrap_or(Timestamp::MAX),
            tries_left: TRIES,
            used: false,
        };
        let (head, tail) = code.split_at(code.len() / 2);
        (PairingCode(format!("{head}-{tail}")), pairing)
    }

    /// Tries a code somebody typed; case, spaces and dashes do not matter, and misread letters are forgiven.
    pub fn redeem(&mut self, typed: &str, now: Timestamp) -> Redeemed {
        if self.used {
            return Redeemed::Used;
        }
        if now >= self.expires_at {
            return Redeemed::Expired;
        }
        if self.tries_left == 0 {
            return Redeemed::Locked;
        }
        if digest(&read(typed)) == self.digest {
            self.used = true;
            return Redeemed::Paired;
        }
        self.tries_left -= 1;
        match self.tries_left {
            0 => Redeemed::Locked,
            tries_left => Redeemed::Wrong { tries_left },
        }
    }
}

fn read(typed: &str) -> String {
    typed
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(ALPHABET.len())
        .map(|c| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        })
        .collect()
}

fn digest(code: &str) -> String {
    let bytes = Sha256::digest(code.as_bytes());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
