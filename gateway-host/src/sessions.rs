//! One task per busy lane; an idle lane is a row in the store and nothing in memory. Turns of one lane never overlap; a
//! message that comes meanwhile is written down, queued, and told so.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::delivery;
use crate::effects::Effects;
use crate::store::{Lane, StoreError};
use crate::turn::{Request, TurnStop, run_turn};

/// The busy lanes.
#[derive(Default)]
pub struct Sessions {
    lanes: Mutex<HashMap<Lane, Busy>>,
    tasks: TaskTracker,
}

struct Busy {
    running: TurnStop,
    since: Timestamp,
    queue: VecDeque<Request>,
}

/// What a busy lane looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyView {
    pub since: Timestamp,
    pub waiting: usize,
}

/// What became of a submitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    Started,
    /// Behind this many others, the running one included.
    Queued(usize),
}

impl Sessions {
    /// Whether a turn runs on the lane, and how many wait.
    pub fn busy(&self, lane: &Lane) -> Option<BusyView> {
        self.lanes.lock().get(lane).map(|busy| BusyView {
            since: busy.since,
            waiting: busy.queue.len(),
        })
    }

    /// Starts the request if nothing runs on its lane; else hands it back, so that it can be written down first.
    pub fn start_if_idle(
        self: &Arc<Self>,
        request: Request,
        effects: &Arc<Effects>,
    ) -> Result<(), Box<Request>> {
        let lane = lane_of(&request);
        let mut lanes = self.lanes.lock();
        if lanes.contains_key(&lane) {
            return Err(Box::new(request));
        }
        self.begin(&mut lanes, lane, request, effects);
        Ok(())
    }

    /// Starts the request, or puts it behind the running one.
    pub fn submit(self: &Arc<Self>, request: Request, effects: &Arc<Effects>) -> Submitted {
        let lane = lane_of(&request);
        let mut lanes = self.lanes.lock();
        if let Some(busy) = lanes.get_mut(&lane) {
            busy.queue.push_back(request);
            return Submitted::Queued(busy.queue.len());
        }
        self.begin(&mut lanes, lane, request, effects);
        Submitted::Started
    }

    fn begin(
        self: &Arc<Self>,
        lanes: &mut HashMap<Lane, Busy>,
        lane: Lane,
        request: Request,
        effects: &Arc<Effects>,
    ) {
        let stop = TurnStop::default();
        lanes.insert(
            lane.clone(),
            Busy {
                running: stop.clone(),
                since: effects.now(),
                queue: VecDeque::new(),
            },
        );
        let (sessions, effects) = (Arc::clone(self), Arc::clone(effects));
        self.tasks
            .spawn(async move { sessions.work(lane, request, stop, &effects).await });
    }

    /// Asks the running turn of the lane to stop; `false` = none runs.
    pub fn stop(&self, lane: &Lane) -> bool {
        let lanes = self.lanes.lock();
        let running = lanes.get(lane).map(|busy| busy.running.stop.stop());
        running.is_some()
    }

    /// Lets the running turns come to their end; what waits behind them stays on disk for the next start.
    pub async fn wind_down(&self) {
        for busy in self.lanes.lock().values_mut() {
            busy.queue.clear();
        }
        self.idle().await;
    }

    /// Cuts every running turn and waits until all are sealed. Queued requests are on disk and sealed at the next start.
    pub async fn drain(&self) {
        for busy in self.lanes.lock().values_mut() {
            busy.queue.clear();
            busy.running.shutdown.stop();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Waits until no lane is busy.
    pub async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    async fn work(&self, lane: Lane, first: Request, stop: TurnStop, effects: &Effects) {
        let (mut request, mut stop) = (first, stop);
        loop {
            let target = request.inbound.target.clone();
            let queued = request.queued.as_ref().map(|row| row.turn.clone());
            // A panic is a fault of ours: it is said, and the lane goes on. What the turn left is sealed by the next one.
            let running =
                AssertUnwindSafe(Box::pin(run_turn(request, stop, effects))).catch_unwind();
            let fault = match running.await {
                // Another gateway of this root was faster: it answers.
                Ok(Ok(_) | Err(StoreError::SeenBefore(_))) => None,
                Ok(Err(fault)) => Some(fault.to_string()),
                Err(_) => Some("the gateway made a mistake; its log says where".to_owned()),
            };
            if let Some(turn) = queued {
                effects.queued.lock().remove(&turn); // from here on an open row of it is one left behind
            }
            if let Some(fault) = fault {
                error!(lane = ?lane, %fault, "a turn could not be kept");
                delivery::fault(effects, &target, &fault).await;
            }
            match self.next(&lane, effects.now()) {
                Some((next, token)) => (request, stop) = (next, token),
                None => return,
            }
        }
    }

    fn next(&self, lane: &Lane, now: Timestamp) -> Option<(Request, TurnStop)> {
        let mut lanes = self.lanes.lock();
        let busy = lanes.get_mut(lane)?;
        match busy.queue.pop_front() {
            Some(next) => {
                let shutdown = busy.running.shutdown.clone();
                busy.running = TurnStop {
                    shutdown,
                    ..TurnStop::default()
                };
                busy.since = now;
                Some((next, busy.running.clone()))
            }
            None => {
                lanes.remove(lane);
                None
            }
        }
    }
}

fn lane_of(request: &Request) -> Lane {
    Lane {
        profile: request.inbound.profile.clone(),
        session: request.inbound.session.clone(),
    }
}
