//! Routing in memory: the same rules as on disk, behind one lock of its own.

use std::collections::BTreeMap;

use async_trait::async_trait;
use gateway_core::ids::{ConversationId, TurnId};
use gateway_core::spend::{Overspend, SpendCaps, Spent, Usd};
use gateway_core::switch::facts::Burn;
use gateway_core::switch::machine::AuditKind;
use jiff::Timestamp;

use super::StoreError;
use super::memory::MemoryStore;
use super::routing::{
    AuditRow, Promise, RoutingRow, RoutingStep, RoutingStore, day_of, is_settled,
};

#[derive(Debug, Default)]
pub(super) struct RoutingState {
    rows: BTreeMap<ConversationId, RoutingRow>,
    audit: Vec<AuditRow>,
    promises: BTreeMap<String, Promise>,
    promises_revision: i64,
    burn: BTreeMap<(String, String), Burn>,
    spend: BTreeMap<String, Spending>,
}

#[derive(Debug)]
struct Spending {
    conversation: ConversationId,
    day: i64,
    worst: Usd,
    cost: Option<Usd>,
}

impl RoutingState {
    fn spent(&self, conversation: &ConversationId, day: i64) -> Spent {
        let mut spent = Spent::default();
        for one in self.spend.values().filter(|one| one.day == day) {
            let amount = one.cost.unwrap_or(one.worst);
            spent.day = spent.day.plus(amount);
            if one.conversation == *conversation {
                spent.thread = spent.thread.plus(amount);
            }
        }
        spent
    }

    fn record(&mut self, step: &RoutingStep) -> bool {
        let known = self.rows.get(&step.row.conversation);
        let current = known.map_or(0, |row| row.revision);
        let stale = !step.reserve.is_empty() && step.promises_seen != self.promises_revision;
        if current != step.row.revision || stale {
            return false;
        }
        let row = RoutingRow {
            revision: current + 1,
            ..step.row.clone()
        };
        self.rows.insert(row.conversation.clone(), row);
        self.promises_revision += i64::from(!step.reserve.is_empty());
        for promise in &step.reserve {
            let free = self.promises.entry(promise.id.clone());
            free.or_insert_with(|| promise.clone());
        }
        for id in &step.release {
            self.promises.remove(id);
        }
        for id in &step.begun {
            if let Some(promise) = self.promises.get_mut(id) {
                promise.begun_at = Some(step.at);
            }
        }
        for row in &step.audit {
            let seq = i64::try_from(self.audit.len()).unwrap_or(i64::MAX - 1) + 1;
            self.audit.push(AuditRow { seq, ..row.clone() });
        }
        true
    }
}

#[async_trait]
impl RoutingStore for MemoryStore {
    async fn routing(
        &self,
        conversation: &ConversationId,
    ) -> Result<Option<RoutingRow>, StoreError> {
        Ok(self.routing_state().rows.get(conversation).cloned())
    }

    async fn record_step(&self, step: &RoutingStep) -> Result<bool, StoreError> {
        Ok(self.routing_state().record(step))
    }

    async fn unsettled_routing(&self) -> Result<Vec<RoutingRow>, StoreError> {
        let state = self.routing_state();
        let unsettled = state.rows.values().filter(|row| !is_settled(&row.machine));
        Ok(unsettled.cloned().collect())
    }

    async fn audit_of(&self, conversation: &ConversationId) -> Result<Vec<AuditRow>, StoreError> {
        let state = self.routing_state();
        let rows = state.audit.iter();
        Ok(rows
            .filter(|row| row.conversation == *conversation)
            .cloned()
            .collect())
    }

    async fn audit_of_turn(&self, turn: Option<&TurnId>) -> Result<Vec<AuditRow>, StoreError> {
        let state = self.routing_state();
        let newest = || state.audit.iter().rev().find_map(|row| row.turn.as_ref());
        let Some(turn) = turn.or_else(newest) else {
            return Ok(Vec::new());
        };
        let about = |row: &&AuditRow| row.turn.as_ref() == Some(turn);
        Ok(state.audit.iter().filter(about).cloned().collect())
    }

    async fn switches_since(&self, from: Timestamp) -> Result<Vec<Timestamp>, StoreError> {
        let state = self.routing_state();
        let switched = |row: &&AuditRow| row.kind == AuditKind::Switched && row.at >= from;
        let rows = state.audit.iter().filter(switched);
        Ok(rows.map(|row| super::rules::in_ms(row.at)).collect())
    }

    async fn promises(&self) -> Result<(Vec<Promise>, i64), StoreError> {
        let state = self.routing_state();
        let promises = state.promises.values().cloned().collect();
        Ok((promises, state.promises_revision))
    }

    async fn burn(&self) -> Result<Vec<Burn>, StoreError> {
        Ok(self.routing_state().burn.values().cloned().collect())
    }

    async fn put_burn(&self, burn: &[Burn]) -> Result<(), StoreError> {
        let mut state = self.routing_state();
        for one in burn {
            let key = (one.subscription.key().to_owned(), one.window.clone());
            state.burn.insert(key, one.clone());
        }
        Ok(())
    }

    async fn reserve_spend(
        &self,
        attempt: &str,
        conversation: &ConversationId,
        worst: Option<Usd>,
        caps: &SpendCaps,
        at: Timestamp,
    ) -> Result<Result<Usd, Overspend>, StoreError> {
        let mut state = self.routing_state();
        if let Some(known) = state.spend.get(attempt) {
            return Ok(Ok(known.worst));
        }
        let day = day_of(at);
        let admitted = caps.admit(state.spent(conversation, day), worst);
        if let Ok(worst) = admitted {
            let spending = Spending {
                conversation: conversation.clone(),
                day,
                worst,
                cost: None,
            };
            state.spend.insert(attempt.to_owned(), spending);
        }
        Ok(admitted)
    }

    async fn settle_spend(
        &self,
        attempt: &str,
        cost: Option<Usd>,
        _at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut state = self.routing_state();
        let open = state.spend.get_mut(attempt);
        let Some(open) = open.filter(|open| open.cost.is_none()) else {
            return Ok(());
        };
        open.cost = cost;
        if cost.is_none() {
            state.spend.remove(attempt);
        }
        Ok(())
    }

    async fn spent(
        &self,
        conversation: &ConversationId,
        at: Timestamp,
    ) -> Result<Spent, StoreError> {
        Ok(self.routing_state().spent(conversation, day_of(at)))
    }
}
