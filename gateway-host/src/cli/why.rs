//! `baton why [TURN]`: why a turn ran where it ran. Looking makes no store.

use anyhow::anyhow;
use gateway_core::ids::TurnId;
use jiff::tz::TimeZone;

use super::answer::Answer;
use super::outcome::{Exit, Failure};
use super::{Surroundings, block_on};
use crate::routing::why;
use crate::store::routing::RoutingStore;
use crate::store::sqlite::SqliteStore;

pub(crate) fn run(
    turn: Option<&str>,
    around: &Surroundings,
    answer: &mut Answer,
) -> Result<Exit, Failure> {
    let file = around.root()?.store_file();
    let turn = turn.map(TurnId::new);
    let rows = block_on(async {
        if !file.exists() {
            return Ok(Vec::new());
        }
        let store = SqliteStore::open(&file).await?;
        let rows = store.audit_of_turn(turn.as_ref()).await;
        store.close().await;
        rows
    })??;
    if rows.is_empty() {
        return Err(Failure::failed(anyhow!(nothing(turn.as_ref()))));
    }
    let zone = TimeZone::system();
    if !answer.is_json()
        && let Some(turn) = rows.first().and_then(|row| row.turn.as_ref())
    {
        answer.line(&format!("Turn {turn}"))?;
    }
    for row in &rows {
        if answer.is_json() {
            answer.json(&why::value(row))?;
            continue;
        }
        for line in why::lines(row, &zone) {
            answer.line(&line)?;
        }
    }
    Ok(Exit::Done)
}

fn nothing(turn: Option<&TurnId>) -> String {
    match turn {
        Some(turn) => format!(
            "nothing was decided about turn {turn}. `baton why` without an id shows the newest turn; only turns under routing (`routing.enabled`) are in the audit."
        ),
        None => "nothing was decided yet: the audit is empty. It fills with turns under routing (`routing.enabled`); /status says what serves a conversation.".to_owned(),
    }
}
