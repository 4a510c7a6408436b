//! Faults of the Web API, scripted per method and used up in order.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

/// What happens instead of the usual answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// 429 with `Retry-After` (whole seconds, rounded up).
    RateLimited { retry_after: Duration },
    /// 200 with `ok: false` and this word.
    Error(&'static str),
    /// 500; nothing happened.
    ServerError,
    /// The call is carried out, then 500.
    Lost,
    /// The connection breaks before an answer; nothing happened.
    Cut,
}

#[derive(Default)]
pub(crate) struct Faults(Mutex<VecDeque<(String, Fault)>>);

impl Faults {
    pub(crate) fn plan(&self, method: &str, fault: Fault) {
        self.0.lock().push_back((method.to_owned(), fault));
    }

    pub(crate) fn take(&self, method: &str) -> Option<Fault> {
        let mut planned = self.0.lock();
        let at = planned.iter().position(|(name, _)| name == method)?;
        planned.remove(at).map(|(_, fault)| fault)
    }

    pub(crate) fn left(&self) -> usize {
        self.0.lock().len()
    }
}
