//! The rows behind buttons.

use gateway_core::action::{Action, ActionKind, ActionState, Offer, Undoes};
use gateway_core::route::Route;
use jiff::Timestamp;

use super::super::rules::in_ms;
use super::super::{Lane, StoreError};
use super::State;

impl State {
    /// Sets the choice and returns the former one; older undos of the lane are replaced.
    pub(super) fn choose(
        &mut self,
        lane: &Lane,
        route: Option<&Route>,
    ) -> Result<Option<Route>, StoreError> {
        let row = self
            .sessions
            .get_mut(lane)
            .ok_or_else(|| StoreError::NoSuchSession(lane.session.clone()))?;
        let former = std::mem::replace(&mut row.chosen, route.cloned());
        for action in self.actions.values_mut() {
            let is_of_lane = action.profile == lane.profile && action.session == lane.session;
            let is_undo = action.offer.id.kind() == ActionKind::UndoModel;
            if is_of_lane && is_undo && action.state == ActionState::Open {
                action.state = ActionState::Replaced;
            }
        }
        Ok(former)
    }

    pub(super) fn choose_undoably(
        &mut self,
        lane: &Lane,
        route: Option<&Route>,
        offer: &Offer,
    ) -> Result<(), StoreError> {
        let former = self.choose(lane, route)?;
        let conversation = self.sessions.get(lane).map(|row| row.conversation.clone());
        let Some(conversation) = conversation else {
            return Err(StoreError::NoSuchSession(lane.session.clone()));
        };
        let action = Action {
            offer: Offer {
                made_at: in_ms(offer.made_at),
                expires_at: in_ms(offer.expires_at),
                ..offer.clone()
            },
            profile: lane.profile.clone(),
            session: lane.session.clone(),
            conversation,
            undoes: Undoes::Choice {
                made: route.cloned(),
                former,
            },
            state: ActionState::Open,
        };
        self.actions.insert(offer.id.token().to_owned(), action);
        Ok(())
    }

    pub(super) fn use_action(&mut self, token: &str, now: Timestamp) -> bool {
        let Some(action) = self.actions.get_mut(token) else {
            return false;
        };
        if action.state != ActionState::Open || action.offer.expires_at <= now {
            return false;
        }
        let lane = Lane {
            profile: action.profile.clone(),
            session: action.session.clone(),
        };
        let Undoes::Choice { made, former } = &action.undoes;
        let standing = self
            .sessions
            .get_mut(&lane)
            .filter(|row| row.conversation == action.conversation && row.chosen == *made);
        match standing {
            Some(row) => {
                row.chosen.clone_from(former);
                action.state = ActionState::Used;
                true
            }
            None => {
                action.state = ActionState::Replaced;
                false
            }
        }
    }
}
