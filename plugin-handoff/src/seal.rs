//! A cut: the journal becomes a document to seal and the notice that says so. Whatever does not come across whole is an
//! error, never a smaller document: the gateway then seals from its own journal.

use gateway_core::handoff::assemble::{Cut, assemble};
use gateway_core::handoff::{Handoff, render};
use gateway_core::ids::HandoffId;
use gateway_core::journal::{JournalEntry, TurnRow};
use gateway_core::message::{Origin, ReplyTarget};
use jiff::Timestamp;
use plugin_api::prelude::*;

/// The document and its notice; no opinion if the turn left nothing worth saving.
pub(crate) fn advice(context: &TerminalContext<'_>) -> Answer<TerminalAdvice> {
    let id = HandoffId::new(context.handoff.as_str());
    let carried = carried(context)?;
    let row = row(context, &carried)?;
    let entries = entries(context)?;
    let cut = Cut {
        id: &id,
        turn: &row,
        entries: &entries,
        carried: &carried,
        reason: context.reason.as_str(),
        next_reset: match context.next_reset_ms.into_option() {
            Some(ms) => Some(instant(ms)?),
            None => None,
        },
        now: instant(context.turn.now_ms)?,
    };
    let Some(handoff) = assemble(&cut) else {
        return none();
    };
    let notice = render::notice(&handoff)
        .lines()
        .map(str::to_owned)
        .collect();
    let seal = serde_json::to_string(&handoff).map_err(|error| error.to_string())?;
    Ok(Some(TerminalAdvice {
        seal: Some(seal),
        notice,
        append: None,
    }))
}

fn carried(context: &TerminalContext<'_>) -> Result<Vec<Handoff>, String> {
    let documents = context.carried.iter().map(|document| {
        serde_json::from_str(&document.json).map_err(|error| {
            format!(
                "the carried handoff {} cannot be read: {error}",
                document.id
            )
        })
    });
    documents.collect()
}

fn entries(context: &TerminalContext<'_>) -> Result<Vec<JournalEntry>, String> {
    let entries = context.journal.iter().map(|record| {
        record
            .entry()
            .ok_or_else(|| format!("a journal record of an unknown kind ({})", record.kind.0))
    });
    entries.collect()
}

fn row(context: &TerminalContext<'_>, carried: &[Handoff]) -> Result<TurnRow, String> {
    let (turn, request) = (&context.turn, &context.request);
    Ok(TurnRow {
        turn: turn.turn.as_str().into(),
        profile: turn.profile.as_str().into(),
        session: turn.session.as_str().into(),
        conversation: turn.conversation.as_str().into(),
        inbound: request.inbound.as_str().into(),
        origin: turn.origin.known().unwrap_or(Origin::Synthetic),
        target: ReplyTarget {
            platform: request.platform.as_str().to_owned(),
            address: request.address.as_str().to_owned(),
        },
        request: request.text.as_str().to_owned(),
        started_at: instant(request.started_at_ms)?,
        owner: request.owner.as_str().to_owned(),
        carries: carried.iter().map(|handoff| handoff.id.clone()).collect(),
    })
}

fn instant(ms: i64) -> Result<Timestamp, String> {
    Timestamp::from_millisecond(ms).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use gateway_core::failure::{Failure, FailureKind, FailureScope};
    use plugin_api::records::JournalKind;
    use plugin_api::testing::Facts;

    use super::*;
    use crate::claim;

    fn cut() -> Facts {
        let at = Timestamp::from_millisecond(Facts::default().now_ms).unwrap();
        let failure = Failure::new(FailureKind::RateLimit, FailureScope::Account, "spent");
        let entries = [
            JournalEntry::Attempt {
                attempt: "a".into(),
                route: "sub-0/opus".parse().unwrap(),
                at,
            },
            JournalEntry::Text {
                block: 0,
                text: "Half of the answer".into(),
            },
            JournalEntry::ToolCall {
                id: "t1".into(),
                name: "Bash".into(),
                arguments: "{}".into(),
            },
            JournalEntry::Failed { failure, at },
        ];
        Facts {
            journal: entries.iter().map(JournalRecord::from).collect(),
            ..Facts::with_routes(1)
        }
    }

    #[test]
    fn a_cut_is_sealed_whole_and_the_next_human_turn_carries_it() {
        let facts = cut();
        let sealed = advice(&facts.terminal()).unwrap().unwrap();
        let json = sealed.seal.unwrap();
        let handoff: Handoff = serde_json::from_str(&json).unwrap();
        assert_eq!(handoff.id.as_str(), "handoff-1");
        assert_eq!(handoff.request, facts.request);
        assert_eq!(
            (handoff.progress.as_str(), handoff.calls.len()),
            ("Half of the answer", 1)
        );
        assert_eq!(sealed.notice.len(), 3, "{:?}", sealed.notice);

        let document = |state| DocumentRecord {
            id: "handoff-1".into(),
            state,
            json: json.as_str().into(),
        };
        let mut next = Facts {
            documents: vec![
                document(DocumentState::Armed),
                document(DocumentState::Acked),
            ],
            ..Facts::default()
        };
        let carried = claim::advice(&next.prologue()).unwrap();
        assert_eq!(carried.claims, ["handoff-1"]);
        let text = carried.inject.unwrap();
        assert_eq!(text.matches(render::REQUEST_PLACEHOLDER).count(), 1);

        next.origin = plugin_api::records::OriginCode::Synthetic;
        assert_eq!(
            claim::advice(&next.prologue()),
            None,
            "only people carry on"
        );
        next.origin = plugin_api::records::OriginCode::Human;
        next.now_ms += 30 * 86_400_000;
        assert_eq!(claim::advice(&next.prologue()), None, "expired");
    }

    #[test]
    fn a_record_of_an_unknown_kind_is_an_error_and_not_a_smaller_document() {
        let mut facts = cut();
        facts.journal[1].kind = JournalKind(200);
        assert!(advice(&facts.terminal()).unwrap_err().contains("200"));
    }

    #[test]
    fn a_damaged_document_is_left_where_it_is() {
        let facts = Facts {
            documents: vec![DocumentRecord {
                id: "x".into(),
                state: DocumentState::Armed,
                json: "{".into(),
            }],
            ..Facts::default()
        };
        assert_eq!(claim::advice(&facts.prologue()), None);
    }
}
