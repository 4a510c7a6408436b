//! A button was pressed. Its row in the store says what it does, who may press it and whether it was pressed before, so it
//! works after a restart and in any gateway of the root, and twice is once.

use gateway_core::action::{self, Action, ActionId, NOT_YOURS, Presser, Stale, Undoes, Verdict};
use gateway_core::message::{Audience, Inbound, Standing};
use gateway_core::route::{Billing, Route};

use crate::delivery;
use crate::effects::Effects;
use crate::routing;
use crate::store::{Lane, StoreError};

/// Said to a member whose press would bring back a route that costs money.
const COSTS_MONEY: &str = "This would go back to a metered route: each turn on it costs money. Only an operator may do that.";

/// Answers one press. The message loses its buttons once they can do nothing any more; words go to whoever pressed.
pub async fn run(inbound: &Inbound, custom_id: &str, effects: &Effects) -> Result<(), StoreError> {
    let id = ActionId::decode(custom_id).ok();
    let found = match &id {
        Some(id) => find(id, effects).await?,
        None => None,
    };
    let said = match (judge(found.as_ref(), inbound, effects), &found) {
        (Verdict::NotYours, _) => Said::Only(NOT_YOURS.to_owned()),
        (Verdict::Act, Some(action)) => act(action, inbound, effects).await?,
        (Verdict::Act, None) => stale(Stale::Unknown, id.as_ref()),
        (Verdict::Stale(why), _) => stale(why, id.as_ref()),
    };
    if let Said::AndSettle(_) = &said {
        delivery::settle(effects, &inbound.target).await;
    }
    let (Said::Only(text) | Said::AndSettle(text)) = said;
    delivery::reply(effects, &inbound.target, &text, Audience::Asker).await;
    Ok(())
}

/// What is said, and whether the buttons come off.
enum Said {
    Only(String),
    AndSettle(String),
}

fn stale(why: Stale, id: Option<&ActionId>) -> Said {
    Said::AndSettle(action::stale(why, id.map(ActionId::kind)))
}

/// The row of an id; an id that claims another kind than its row is nobody's.
async fn find(id: &ActionId, effects: &Effects) -> Result<Option<Action>, StoreError> {
    let found = effects.store.action(id.token()).await?;
    Ok(found.filter(|action| action.offer.id == *id))
}

fn judge(action: Option<&Action>, inbound: &Inbound, effects: &Effects) -> Verdict {
    let presser = Presser {
        platform: &inbound.target.platform,
        profile: &inbound.profile,
        id: &inbound.sender.id,
        standing: inbound.sender.standing,
    };
    action::judge(action, presser, effects.now())
}

async fn act(action: &Action, inbound: &Inbound, effects: &Effects) -> Result<Said, StoreError> {
    let Undoes::Choice { former, .. } = &action.undoes;
    let is_metered = former
        .as_ref()
        .is_some_and(|former| costs_money(former, effects));
    if is_metered && inbound.sender.standing < Standing::Operator {
        return Ok(Said::Only(COSTS_MONEY.to_owned()));
    }
    let id = &action.offer.id;
    if effects.store.use_action(id.token(), effects.now()).await? {
        let lane = Lane {
            profile: inbound.profile.clone(),
            session: inbound.session.clone(),
        };
        routing::word::chose(&lane, inbound, effects).await?;
        return Ok(Said::AndSettle(undone(former.as_ref())));
    }
    // Somebody was faster, or what it would undo has changed by other means: the row says which.
    let now = find(id, effects).await?;
    Ok(match judge(now.as_ref(), inbound, effects) {
        Verdict::Stale(why) => stale(why, Some(id)),
        Verdict::Act | Verdict::NotYours => stale(Stale::Replaced, Some(id)),
    })
}

/// A route that is no longer configured costs nothing: it serves nobody.
fn costs_money(route: &Route, effects: &Effects) -> bool {
    let entry = effects.settings.entry(route);
    entry.is_some_and(|entry| entry.billing == Billing::Metered)
}

fn undone(former: Option<&Route>) -> String {
    match former {
        Some(route) => format!("Undone: {route} is chosen for this conversation again."),
        None => "Undone: the chain decides again.".to_owned(),
    }
}
