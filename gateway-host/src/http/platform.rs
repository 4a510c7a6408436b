//! The surface as a platform: what a turn shows goes to the request that waits for it.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use gateway_core::ids::TurnId;
use gateway_core::message::{ReplyOp, ReplyTarget};
use parking_lot::Mutex;
use platforms::{DeliveryError, Limits, Platform, Receipt};
use tokio::sync::watch;

use super::flight::Progress;

/// The platform's name.
pub const NAME: &str = "http";

/// The requests that wait, by address.
#[derive(Debug, Default)]
pub struct HttpPlatform(Mutex<HashMap<String, watch::Sender<Progress>>>);

impl HttpPlatform {
    /// A surface nobody waits at yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn expect(&self, address: &str, progress: watch::Sender<Progress>) {
        self.0.lock().insert(address.to_owned(), progress);
    }

    pub(super) fn forget(&self, address: &str) {
        self.0.lock().remove(address);
    }
}

#[async_trait]
impl Platform for HttpPlatform {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        Limits {
            message_chars: None,
            edits: false,
            edit_interval: Duration::ZERO,
            private_replies: true,
        }
    }

    async fn deliver(
        &self,
        to: &ReplyTarget,
        _: Option<&TurnId>,
        op: &ReplyOp,
    ) -> Result<Receipt, DeliveryError> {
        let waiting = self.0.lock().get(&to.address).cloned();
        let Some(progress) = waiting else {
            return Err(DeliveryError::Gone {
                place: format!("request {}", to.address),
                why: "nobody waits for it any more".to_owned(),
            });
        };
        progress.send_modify(|progress| progress.take(op));
        Ok(Receipt(to.address.clone()))
    }
}
