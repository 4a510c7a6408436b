//! Digests of transcripts and identities: HMAC-SHA256 under a key of this installation, cut to 64 bits.
//!
//! Keyed, because a local caller who could compute digests could search for a transcript that lands in somebody else's
//! session. The encoding under it is unambiguous: every text is preceded by its length in bytes, eight bytes, little
//! endian, and a transcript by its number of messages. The tests pin the encoding with vectors that were computed
//! independently (under FNV-1a, which needs no key), and the keyed form with vectors of its own.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::Message;

/// The key of one profile's conversations. Never printed.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key of a profile, from the secret of the installation.
    pub fn of_profile(secret: &[u8], profile: &str) -> Self {
        let mut mac = Keyed::new(secret);
        field(&mut mac, b"session bridge");
        field(&mut mac, profile.as_bytes());
        Self(mac.0.finalize().into_bytes().to_vec())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A digest; shown as 16 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The digest of a transcript, or of a part of one.
pub fn transcript(key: &Key, messages: &[Message]) -> Digest {
    let mut mac = Keyed::new(&key.0);
    write_transcript(&mut mac, messages);
    mac.digest()
}

/// The digest of the name a client gives itself, as it stands.
pub fn identity(key: &Key, name: &str) -> Digest {
    let mut mac = Keyed::new(&key.0);
    write_identity(&mut mac, name);
    mac.digest()
}

/// What two requests must have in common to be one: who asks, the route asked for, and every message. `who` = a digest of
/// the identity or of the idempotency key.
pub fn flight(key: &Key, who: Digest, model: &str, messages: &[Message]) -> Digest {
    let mut mac = Keyed::new(&key.0);
    field(&mut mac, b"flight");
    mac.bytes(&who.0.to_le_bytes());
    field(&mut mac, model.as_bytes());
    write_transcript(&mut mac, messages);
    mac.digest()
}

/// Where an encoding goes.
trait Sink {
    fn bytes(&mut self, bytes: &[u8]);
}

fn write_transcript(sink: &mut impl Sink, messages: &[Message]) {
    length(sink, messages.len());
    for message in messages {
        field(sink, message.role.as_bytes());
        field(sink, message.text.as_bytes());
    }
}

fn write_identity(sink: &mut impl Sink, name: &str) {
    field(sink, b"identity");
    field(sink, name.as_bytes());
}

fn field(sink: &mut impl Sink, bytes: &[u8]) {
    length(sink, bytes.len());
    sink.bytes(bytes);
}

fn length(sink: &mut impl Sink, length: usize) {
    sink.bytes(&(length as u64).to_le_bytes());
}

struct Keyed(Hmac<Sha256>);

impl Keyed {
    fn new(key: &[u8]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    fn digest(self) -> Digest {
        let whole = self.0.finalize().into_bytes();
        let head = whole.iter().take(8);
        Digest(head.fold(0, |digest, byte| (digest << 8) | u64::from(*byte)))
    }
}

impl Sink for Keyed {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a, 64 bits: what the published vectors of the encoding were computed with.
    struct Fnv(u64);

    impl Default for Fnv {
        fn default() -> Self {
            Self(0xcbf2_9ce4_8422_2325)
        }
    }

    impl Sink for Fnv {
        fn bytes(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }

    fn fnv_transcript(messages: &[Message]) -> String {
        let mut fnv = Fnv::default();
        write_transcript(&mut fnv, messages);
        format!("{:016x}", fnv.0)
    }

    fn fnv_identity(name: &str) -> u64 {
        let mut fnv = Fnv::default();
        write_identity(&mut fnv, name);
        fnv.0
    }

    fn cat() -> Vec<Message> {
        vec![
            Message::new("system", "you are a cat"),
            Message::new("user", "poke"),
        ]
    }

    #[test]
    fn case_3_the_encoding_gives_the_published_vectors() {
        let one = |text: &str| fnv_transcript(&[Message::new("user", text)]);
        assert_eq!(fnv_transcript(&cat()[..1]), "5a36669b9a22d7cc");
        assert_eq!(fnv_transcript(&cat()), "1c70ab27b0c97047");
        assert_eq!(one("hi"), "0678ab96a0df9386");
        assert_eq!(one("äöü"), "82c2453c33962f18");
        assert_eq!(format!("{:016x}", fnv_identity("pet")), "fbbad4ae7d47bf01");
        assert_eq!(format!("{:016x}", fnv_identity("caw")), "8be4bcae3e275a4d");
        let mut whole = Fnv::default();
        write_transcript(&mut whole, &cat());
        let mut flight = Fnv(fnv_identity("pet"));
        flight.bytes(&whole.0.to_le_bytes());
        assert_eq!(format!("{:016x}", flight.0), "ae6821d96485504d");
    }

    #[test]
    fn the_keyed_form_is_pinned_too() {
        let key = Key::of_profile(&[7; 32], "default");
        // Computed with another implementation: HMAC-SHA256(HMAC-SHA256(secret, two fields), encoding), first 8 bytes.
        assert_eq!(transcript(&key, &cat()).to_string(), "009254e4fa516bd3");
        assert_eq!(identity(&key, "pet").to_string(), "9c22e5f15472bbbf");
    }

    #[test]
    fn case_4_no_shift_of_a_boundary_collides() {
        let key = Key::of_profile(&[7; 32], "default");
        let user = |text: &str| Message::new("user", text);
        let digests = [
            transcript(&key, &[user("ab"), user("c")]),
            transcript(&key, &[user("a"), user("bc")]),
            transcript(&key, &[user("abc")]),
            transcript(&key, &[Message::new("usera", "b"), user("c")]),
            transcript(&key, &[]),
        ];
        for (at, one) in digests.iter().enumerate() {
            assert!(!digests[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn a_key_is_of_its_installation_and_profile_and_says_nothing() {
        let of = |secret: &[u8], profile: &str| identity(&Key::of_profile(secret, profile), "pet");
        assert_ne!(of(&[1; 32], "a"), of(&[2; 32], "a"));
        assert_ne!(of(&[1; 32], "a"), of(&[1; 32], "b"));
        assert_eq!(format!("{:?}", Key::of_profile(&[1; 32], "a")), "Key(…)");
    }
}
