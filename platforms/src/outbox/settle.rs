//! What a request's result means for its slot.

use tokio::time::Instant;

use super::pace::Uncertain;
use super::slot::Busy;
use super::{Done, Outbox, Report, Request, Slot, SlotId, Stage, Worth};
use crate::wire::{MessageId, WireError};

impl Outbox {
    /// Takes the result of the slot's work.
    pub fn done(&mut self, id: SlotId, result: Done, now: Instant) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        let Some(busy) = slot.busy.take() else {
            return;
        };
        self.busy.remove(&slot.place.channel);
        match result {
            Ok(message) => self.worked(id, busy, message, now),
            Err(error) => self.failed(id, busy, error, now),
        }
        self.conclude(id);
        if self.slots.get(&id).is_some_and(Slot::is_over) {
            self.slots.remove(&id);
        }
        self.gate.tidy(now);
    }

    fn worked(&mut self, id: SlotId, busy: Busy, message: Option<MessageId>, now: Instant) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.worked();
        match (busy.request, message) {
            (Request::Post { body, .. }, Some(message)) => {
                self.posted(id, Some(body), message, now)
            }
            (Request::LookUp { .. }, Some(message)) => {
                let body = slot.limbo.clone();
                self.posted(id, body, message, now);
            }
            (Request::LookUp { .. }, None) => slot.was_not_found(),
            // A post without an id cannot be edited; adapters never answer so.
            (Request::Post { body, .. }, None) => {
                self.posted(id, Some(body), MessageId(String::new()), now);
            }
            (Request::Edit { body, .. }, _) => {
                slot.shown = Some(body);
                slot.edited_at = Some(busy.began);
            }
            (Request::Delete { message }, _) => slot.forget(&message),
        }
    }

    fn posted(
        &mut self,
        id: SlotId,
        body: Option<crate::wire::Body>,
        message: MessageId,
        now: Instant,
    ) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.limbo = None;
        slot.shown = body;
        slot.posted_at = Some(now);
        slot.deleted = false;
        slot.message = Some(message.clone());
        self.reports.push(Report::Posted { slot: id, message });
    }

    fn failed(&mut self, id: SlotId, busy: Busy, error: WireError, now: Instant) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        let deletes = matches!(busy.request, Request::Delete { .. });
        match error {
            WireError::RateLimited { after, scope } => {
                let until = now + after.unwrap_or(self.pace.unsaid_pause);
                let channel = slot.place.channel.clone();
                self.gate.pause(&channel, busy.request.kind(), scope, until);
            }
            WireError::NotDelivered(_) | WireError::Uncertain(_) => {
                self.undelivered(id, busy.request, error, now);
            }
            WireError::PlaceGone(_) => {
                let place = slot.place.clone();
                self.drop_place(&place, &error);
            }
            // What cannot be deleted stays.
            _ if deletes => {
                if let Request::Delete { message } = busy.request {
                    slot.forget(&message);
                }
            }
            WireError::TooLong => {
                slot.too_long = true;
                slot.limbo = None;
                self.reports.push(Report::TooLong { slot: id });
            }
            WireError::EditTooOld if slot.message.is_some() => slot.post_anew(),
            WireError::MessageGone if slot.message.is_some() && slot.worth == Worth::Must => {
                slot.message = None;
                slot.post_anew();
                slot.deleted = true;
            }
            WireError::EditTooOld | WireError::MessageGone | WireError::Refused(_) => {
                self.drop_slot(id, error)
            }
        }
    }

    /// Nothing came back, or nothing arrived: later again, and not for ever.
    fn undelivered(&mut self, id: SlotId, request: Request, error: WireError, now: Instant) {
        let give_up_after = self.pace.give_up_after;
        let looks_up = self.pace.uncertain == Uncertain::LookUp;
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if let (Request::Post { body, .. }, WireError::Uncertain(_)) = (&request, &error) {
            slot.limbo = Some(body.clone());
            slot.not_found = false;
        } else if matches!(request, Request::Post { .. }) && looks_up {
            slot.limbo = None; // looked for, not there, and this try did not arrive either: the newest text may go
        }
        slot.back_off(now);
        let failing = slot
            .failing_since
            .map(|since| now.saturating_duration_since(since));
        if failing.is_some_and(|failing| failing >= give_up_after) {
            self.drop_slot(id, error);
        }
    }

    /// Closes the slot if its final text stands, and forgets a wish that is fulfilled.
    pub(super) fn conclude(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        let stands = match &slot.want {
            Some(want) => slot.busy.is_none() && slot.shown.as_ref() == Some(&want.body),
            None => false,
        };
        if !stands {
            return;
        }
        let last = slot.want.take().map(|want| want.stage);
        if let (Some(Stage::Final), Some(message)) = (last, slot.message.clone()) {
            self.reports.push(Report::Finished { slot: id, message });
            match slot.stale.is_empty() {
                // The messages it replaced go too; nothing more is shown here.
                false => slot.keep_only_stale(),
                true => {
                    self.slots.remove(&id);
                }
            }
        }
    }

    fn drop_slot(&mut self, id: SlotId, why: WireError) {
        if let Some(slot) = self.slots.remove(&id) {
            let unsent = slot.want.map(|want| want.body);
            self.reports.push(Report::Dropped {
                slot: id,
                why,
                unsent,
            });
        }
    }

    fn drop_place(&mut self, place: &crate::wire::Place, why: &WireError) {
        let gone: Vec<SlotId> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.place == *place)
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.drop_slot(id, why.clone());
        }
    }
}

impl Slot {
    /// A post of unknown fate is not there: it is posted again, unless nobody wants it any more.
    fn was_not_found(&mut self) {
        self.not_found = true;
        if self.is_removed() {
            self.limbo = None;
        }
    }

    /// Forgets a message that is deleted.
    fn forget(&mut self, message: &MessageId) {
        self.stale.retain(|one| one != message);
        self.message.take_if(|one| one == message);
    }

    /// Lets the message stand; only those it replaced are still to be deleted.
    pub(super) fn keep_only_stale(&mut self) {
        self.message = None;
        self.remove();
    }
}
