//! What the plain file of a handoff is called: readable, safe in any folder, and one of its own for each session key.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::ids::SessionKey;

/// The folder below a profile's home.
pub const FOLDER: &str = "state/turn-handoff";

/// Characters of the readable part.
const READABLE: usize = 80;

/// Stands for a run of unsafe characters until the name is whole, so that an underscore of the key itself does not join one.
const RUN: char = '\u{1}';

/// Bytes of the digest; each is two hexadecimal digits.
const DIGEST: usize = 6;

/// `<safe>.<digest>.json`: the key with every run of other characters than `A-Za-z0-9._-` as one `_`, and the beginning of
/// the SHA-256 of the whole key, which keeps keys apart that look alike.
pub fn file_name(session: &SessionKey) -> String {
    let key = session.as_str();
    format!("{}.{}.json", readable(key), digest(key))
}

fn readable(key: &str) -> String {
    let mut safe = String::new();
    for c in key.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            safe.push(c);
        } else if !safe.ends_with(RUN) {
            safe.push(RUN);
        }
    }
    let safe: String = safe.chars().take(READABLE).collect();
    let safe = safe.replace(RUN, "_");
    if safe.is_empty() {
        "unknown".to_owned()
    } else {
        safe
    }
}

fn digest(key: &str) -> String {
    let mut hex = String::with_capacity(2 * DIGEST);
    for byte in Sha256::digest(key.as_bytes()).iter().take(DIGEST) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
