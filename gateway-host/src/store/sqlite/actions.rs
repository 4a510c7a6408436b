//! The rows behind buttons. A row is written in the transaction that does what it undoes, and used in the one that undoes
//! it: nothing is half done, and nothing twice.

use gateway_core::action::{Action, ActionId, ActionKind, ActionState, Offer, Undoes};
use gateway_core::ids::{ConversationId, ProfileId, SessionKey};
use gateway_core::route::Route;
use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteExecutor};

use super::super::rules::from_ms;
use super::super::{Lane, StoreError, document};
use super::fault::Fault;
use super::{SqliteStore, Tx, sessions};

pub(super) async fn choose_undoably(
    store: &SqliteStore,
    lane: &Lane,
    route: Option<&Route>,
    offer: &Offer,
) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    let Some(session) = sessions::find(&mut *tx, lane).await? else {
        return Err(StoreError::NoSuchSession(lane.session.clone()).into());
    };
    sessions::set_choice(&mut tx, lane, route).await?;
    let undoes = Undoes::Choice {
        made: route.cloned(),
        former: session.chosen,
    };
    sqlx::query(
        "insert into actions (token, kind, platform, profile, session, conversation, only_for, \
         undoes, made_at, expires_at, state) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'open')",
    )
    .bind(offer.id.token())
    .bind(offer.id.kind().word())
    .bind(&offer.platform)
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(session.conversation.as_str())
    .bind(offer.only_for.as_deref())
    .bind(document(&undoes))
    .bind(offer.made_at.as_millisecond())
    .bind(offer.expires_at.as_millisecond())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

/// A newer choice stands in the place of those that could still be undone.
pub(super) async fn replace(tx: &mut Tx, lane: &Lane, kind: ActionKind) -> Result<(), Fault> {
    sqlx::query(
        "update actions set state = 'replaced' \
         where profile = $1 and session = $2 and kind = $3 and state = 'open'",
    )
    .bind(lane.profile.as_str())
    .bind(lane.session.as_str())
    .bind(kind.word())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

pub(super) async fn one(store: &SqliteStore, token: &str) -> Result<Option<Action>, Fault> {
    find(&store.readers, token).await
}

async fn find(connection: impl SqliteExecutor<'_>, token: &str) -> Result<Option<Action>, Fault> {
    let row = sqlx::query("select * from actions where token = $1")
        .bind(token)
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let action = read(&row)?;
    if action.is_none() {
        tracing::warn!(
            "a button's row in the store is damaged or of a newer baton; it works no longer"
        );
    }
    Ok(action)
}

/// `None` = a row this version cannot understand.
fn read(row: &SqliteRow) -> Result<Option<Action>, sqlx::Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let kind = ActionKind::of_word(&text("kind")?);
    let id = kind.map(|kind| ActionId::new(kind, &text("token").unwrap_or_default()));
    let undoes: Option<Undoes> = serde_json::from_str(&text("undoes")?).ok();
    let (Some(Some(id)), Some(undoes)) = (id, undoes) else {
        return Ok(None);
    };
    Ok(Some(Action {
        offer: Offer {
            id,
            platform: text("platform")?,
            only_for: row.try_get("only_for")?,
            made_at: from_ms(row.try_get("made_at")?),
            expires_at: from_ms(row.try_get("expires_at")?),
        },
        profile: ProfileId::new(text("profile")?),
        session: SessionKey::new(text("session")?),
        conversation: ConversationId::new(text("conversation")?),
        undoes,
        state: match text("state")?.as_str() {
            "open" => ActionState::Open,
            "used" => ActionState::Used,
            _ => ActionState::Replaced, // a word of a newer baton is not ours to act on
        },
    }))
}

pub(super) async fn use_once(
    store: &SqliteStore,
    token: &str,
    now: Timestamp,
) -> Result<bool, Fault> {
    let mut tx = store.begin().await?;
    let Some(action) = find(&mut *tx, token).await? else {
        return Ok(false);
    };
    if action.state != ActionState::Open || action.offer.expires_at <= now {
        return Ok(false);
    }
    let done = undo(&mut tx, &action).await?;
    sqlx::query("update actions set state = $1 where token = $2")
        .bind(if done { "used" } else { "replaced" })
        .bind(token)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(done)
}

/// `false` = what it would undo does not stand any more.
async fn undo(tx: &mut Tx, action: &Action) -> Result<bool, Fault> {
    let Undoes::Choice { made, former } = &action.undoes;
    let done = sqlx::query(
        "update sessions set chosen = $1 where profile = $2 and session = $3 \
         and conversation = $4 and chosen is not distinct from $5",
    )
    .bind(former.as_ref().map(Route::to_string))
    .bind(action.profile.as_str())
    .bind(action.session.as_str())
    .bind(action.conversation.as_str())
    .bind(made.as_ref().map(Route::to_string))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}
