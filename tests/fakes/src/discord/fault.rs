//! Faults of the REST side, scripted per route and used up in order.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// What happens instead of the usual answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// 429 for the route's bucket, with body and headers.
    BucketLimit { retry_after: Duration },
    /// 429 for the whole bot.
    GlobalLimit { retry_after: Duration },
    /// 429 from the front door: no JSON, no headers, no Retry-After.
    BareLimit,
    /// 500; nothing happened.
    ServerError,
    /// The request is carried out, then 500: the caller cannot know.
    Lost,
    /// 400 with code 50035.
    InvalidForm,
    /// The connection breaks before an answer; nothing happened.
    Cut,
    /// Any other answer.
    Answer { status: u16, body: Value },
}

/// What was scripted and not used yet.
#[derive(Default)]
pub(crate) struct Faults(Mutex<VecDeque<Planned>>);

struct Planned {
    method: String,
    template: String,
    fault: Fault,
}

impl Faults {
    pub(crate) fn plan(&self, method: &str, template: &str, fault: Fault) {
        let planned = Planned {
            method: method.to_owned(),
            template: template.to_owned(),
            fault,
        };
        self.0.lock().push_back(planned);
    }

    /// Takes the oldest one for this route.
    pub(crate) fn take(&self, method: &str, template: &str) -> Option<Fault> {
        let mut planned = self.0.lock();
        let at = planned
            .iter()
            .position(|plan| plan.method == method && plan.template == template)?;
        planned.remove(at).map(|plan| plan.fault)
    }

    /// How many were never met.
    pub(crate) fn left(&self) -> usize {
        self.0.lock().len()
    }
}

/// The 429 body of topics/rate-limits; `retry_after` in seconds.
pub(crate) fn limited(retry_after: Duration, global: bool) -> Value {
    json!({ "message": "You are being rate limited.", "retry_after": retry_after.as_secs_f64(), "global": global })
}
