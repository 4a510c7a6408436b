//! The prologue: which saved handoffs the next human turn carries. Oldest first, so that the newest facts stand last.
//! A document that is expired, unreadable or empty is left where it is: the gateway says what became of it.

use gateway_core::handoff::{Handoff, render};
use plugin_api::prelude::*;

/// Advice for a human turn of a conversation with armed handoffs; `None` otherwise.
pub(crate) fn advice(context: &PrologueContext<'_>) -> Option<PrologueAdvice> {
    if !context.turn.is_human() {
        return None;
    }
    let mut texts = Vec::new();
    let mut claims = Vec::new();
    for document in context.documents.iter().rev() {
        if document.state != DocumentState::Armed {
            continue;
        }
        if let Some(text) = text(document, context.turn.now_ms) {
            texts.push(text);
            claims.push(document.id.as_str().to_owned());
        }
    }
    (!claims.is_empty()).then(|| PrologueAdvice {
        inject: Some(texts.join("\n\n")),
        claims,
        ..PrologueAdvice::default()
    })
}

fn text(document: &DocumentRecord, now_ms: i64) -> Option<String> {
    let handoff: Handoff = serde_json::from_str(&document.json).ok()?;
    if handoff.expires_at.as_millisecond() <= now_ms {
        return None;
    }
    Some(render::context(&handoff)).filter(|text| !text.is_empty())
}
