//! `baton handoff list | show KEY | discard KEY`. KEY is a handoff's id, the beginning of one, or a session key. The store
//! is the truth; looking makes no store.

use anyhow::anyhow;
use gateway_core::handoff::redact::Redactor;
use gateway_core::handoff::{HandoffState, StoredHandoff, render};
use gateway_core::ids::{HandoffId, SessionKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::Answer;
use super::args::HandoffTopic;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on};
use crate::clock::{Clock, SystemClock};
use crate::config::RootPath;
use crate::handoffs::mirror::Mirror;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

pub(crate) fn run(
    topic: HandoffTopic,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let root = around.root()?;
    let file = root.store_file();
    // Without a good configuration only the known shapes of secrets are taken out.
    let loaded = around.loaded().ok();
    let redactor = loaded.map_or_else(
        || Redactor::shapes().clone(),
        |loaded| crate::redactor(&loaded.settings),
    );
    let now = SystemClock.now();
    block_on(async {
        let store = match file.exists() {
            true => Some(SqliteStore::open(&file).await?),
            false => None,
        };
        let stored = match &store {
            Some(store) => store.handoffs().await?,
            None => Vec::new(),
        };
        let exit = match topic {
            HandoffTopic::List => list(&stored, now, answer),
            HandoffTopic::Show { key } => show(&chosen(&stored, &key)?, now, &redactor, answer),
            HandoffTopic::Discard { key } => {
                let chosen = chosen(&stored, &key)?;
                match &store {
                    Some(store) => discard(&chosen, store, &root, &redactor, answer).await,
                    None => Err(none(&key)),
                }
            }
        };
        if let Some(store) = store {
            store.close().await;
        }
        exit
    })?
}

fn list(stored: &[StoredHandoff], now: Timestamp, answer: &mut Answer) -> Result<Exit, Failure> {
    if answer.is_json() {
        for one in stored {
            answer.json(&short(one, now))?;
        }
    } else {
        answer.line(&render::list(stored, now))?;
    }
    Ok(Exit::Done)
}

fn show(
    chosen: &[&StoredHandoff],
    now: Timestamp,
    redactor: &Redactor,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    for (index, one) in chosen.iter().enumerate() {
        let clean = StoredHandoff {
            handoff: redactor.handoff(&one.handoff),
            ..(*one).clone()
        };
        let text = render::show(&clean, now);
        if answer.is_json() {
            answer.json(&json!({"handoff": short(one, now), "text": text}))?;
            continue;
        }
        if index > 0 {
            answer.line("")?;
        }
        answer.line(&text)?;
    }
    Ok(Exit::Done)
}

/// Drops them all, or says of the first that cannot be dropped why.
async fn discard(
    chosen: &[&StoredHandoff],
    store: &SqliteStore,
    root: &RootPath,
    redactor: &Redactor,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    if let Some(busy) = chosen.iter().find(|one| one.state == HandoffState::Claimed) {
        return Err(Failure::failed(anyhow!(
            "handoff {} is carried by a running turn. Stop the turn first, or try again when it has ended.",
            busy.handoff.id
        )));
    }
    for one in chosen {
        let id = &one.handoff.id;
        if !store
            .move_handoff(id, one.revision, HandoffState::Discarded)
            .await?
        {
            return Err(Failure::failed(anyhow!(
                "handoff {id} has just changed. Look at it with `baton handoff show {id}` and try again."
            )));
        }
        let over = StoredHandoff {
            state: HandoffState::Discarded,
            ..(*one).clone()
        };
        let mirror = Mirror::new(&root.profile(&one.handoff.profile));
        if let Some(trouble) = mirror.write(&over, redactor) {
            tracing::warn!(%trouble, "the plain file of a discarded handoff");
        }
        if answer.is_json() {
            answer.json(&json!({"id": id, "discarded": true}))?;
        } else {
            answer.line(&format!("Discarded handoff {id}"))?;
        }
    }
    Ok(Exit::Done)
}

/// What the key names: one handoff by its id or a beginning that fits no other, or all of a session.
fn chosen<'a>(stored: &'a [StoredHandoff], key: &str) -> Result<Vec<&'a StoredHandoff>, Failure> {
    let exact = |one: &&StoredHandoff| one.handoff.id == HandoffId::new(key);
    if let Some(one) = stored.iter().find(exact) {
        return Ok(vec![one]);
    }
    let of_session = |one: &&StoredHandoff| one.handoff.session == SessionKey::new(key);
    let session: Vec<_> = stored.iter().filter(of_session).collect();
    if !session.is_empty() {
        return Ok(session);
    }
    let begins = |one: &&StoredHandoff| !key.is_empty() && one.handoff.id.as_str().starts_with(key);
    let fitting: Vec<_> = stored.iter().filter(begins).collect();
    match fitting.len() {
        0 => Err(none(key)),
        1 => Ok(fitting),
        _ => {
            let ids: Vec<&str> = fitting.iter().map(|one| one.handoff.id.as_str()).collect();
            Err(Failure::failed(anyhow!(
                "{key:?} fits several handoffs; write more of the id: {}",
                ids.join(", ")
            )))
        }
    }
}

fn none(key: &str) -> Failure {
    Failure::failed(anyhow!(
        "there is no saved handoff {key:?}. `baton handoff list` shows those there are."
    ))
}

/// What a program needs to know of one; its texts are redacted, the request is not among them.
fn short(one: &StoredHandoff, now: Timestamp) -> Value {
    let handoff = &one.handoff;
    json!({
        "id": handoff.id,
        "profile": handoff.profile,
        "session": handoff.session,
        "state": one.standing(now),
        "reason": handoff.reason,
        "route": handoff.route,
        "created_at": handoff.created_at,
        "expires_at": handoff.expires_at,
        "next_reset": handoff.next_reset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(id: &str, session: &str) -> StoredHandoff {
        let handoff = serde_json::from_value(json!({
            "version": 1, "id": id, "turn": "t", "profile": "default", "session": session,
            "conversation": "c", "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
            "reason": "rate limit", "route": null, "request": "do it", "request_id": "1", "progress": "",
            "calls": [], "open_todos": [], "next_reset": null, "earlier_cuts": 0,
        }));
        StoredHandoff {
            handoff: handoff.unwrap(),
            state: HandoffState::Armed,
            revision: 1,
            claimed_by: None,
        }
    }

    #[test]
    fn a_key_is_an_id_a_beginning_or_a_session() {
        let all = [
            stored("aa1", "s"),
            stored("aa2", "s"),
            stored("b", "aa"),
            stored("bc", "t"),
        ];
        let ids = |key: &str| -> Result<Vec<String>, String> {
            let chosen = chosen(&all, key).map_err(|failure| failure.error.to_string())?;
            Ok(chosen
                .iter()
                .map(|one| one.handoff.id.to_string())
                .collect())
        };
        assert_eq!(ids("aa1").unwrap(), ["aa1"]);
        assert_eq!(ids("b").unwrap(), ["b"], "a whole id is not a beginning");
        assert_eq!(ids("bc").unwrap(), ["bc"]);
        assert_eq!(ids("s").unwrap(), ["aa1", "aa2"]);
        assert_eq!(ids("aa").unwrap(), ["b"], "a session wins over a beginning");
        assert!(ids("a").unwrap_err().contains("aa1, aa2"));
        assert!(ids("").unwrap_err().contains("no saved handoff"));
        assert!(ids("x").unwrap_err().contains("baton handoff list"));
    }
}
