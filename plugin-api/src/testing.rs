//! For an author's unit tests: a host that records what it is told, and facts to build contexts from. No gateway needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use abi_stable::erased_types::TD_Opaque;
use abi_stable::external_types::RMutex;
use abi_stable::std_types::{RArc, ROption, RSlice, RStr};

use crate::context::TurnView;
use crate::prologue::PrologueContext;
use crate::records::{
    DocumentRecord, JournalRecord, OriginCode, ReasonCode, RouteRecord, ScopeCode, SourceCode,
    StatusCode, WindowRecord,
};
use crate::services::{Host, HostServices, HostServices_TO, Level, MetricKind};
use crate::terminal::{RequestView, TerminalContext};
use crate::walk::WalkContext;

/// What a fake host was told.
pub struct Recorded {
    lines: RMutex<Vec<(Level, String)>>,
    /// Names by id (from 1), and values.
    metrics: RMutex<(Vec<String>, BTreeMap<u32, f64>)>,
}

impl Recorded {
    /// The log lines so far.
    pub fn lines(&self) -> Vec<(Level, String)> {
        self.lines.lock().clone()
    }

    /// The value of a metric; `None` = never defined or never set.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.metrics.lock();
        let index = metrics.0.iter().position(|known| known == name)?;
        metrics.1.get(&(u32::try_from(index).ok()? + 1)).copied()
    }
}

/// Makes a host that records.
pub fn host() -> (Host, Arc<Recorded>) {
    let recorded = Arc::new(Recorded {
        lines: RMutex::new(Vec::new()),
        metrics: RMutex::new((Vec::new(), BTreeMap::new())),
    });
    let services = RArc::new(FakeHost(recorded.clone()));
    (
        Host::new(HostServices_TO::from_ptr(services, TD_Opaque)),
        recorded,
    )
}

#[derive(Clone)]
struct FakeHost(Arc<Recorded>);

impl HostServices for FakeHost {
    fn log(&self, level: Level, line: RStr<'_>) {
        self.0.lines.lock().push((level, line.as_str().to_owned()));
    }

    fn metric(&self, _kind: MetricKind, name: RStr<'_>) -> u32 {
        let names = &mut self.0.metrics.lock().0;
        let index = names.iter().position(|known| known == name.as_str());
        let index = index.unwrap_or_else(|| {
            names.push(name.as_str().to_owned());
            names.len() - 1
        });
        u32::try_from(index + 1).unwrap_or(0)
    }

    fn counter_add(&self, metric: u32, by: u64) {
        *self.0.metrics.lock().1.entry(metric).or_default() += by as f64;
    }

    fn gauge_set(&self, metric: u32, to: f64) {
        self.0.metrics.lock().1.insert(metric, to);
    }

    fn extension(&self, _name: RStr<'_>) -> u32 {
        0
    }
}

/// Facts of a turn; change the fields, then lend a context.
#[derive(Debug, Clone)]
pub struct Facts {
    pub turn: String,
    pub profile: String,
    pub session: String,
    pub conversation: String,
    pub origin: OriginCode,
    pub now_ms: i64,
    pub routes: Vec<RouteRecord>,
    pub windows: Vec<WindowRecord>,
    pub documents: Vec<DocumentRecord>,
    pub failed: u32,
    pub cursor: u32,
    pub reason: ReasonCode,
    pub already_gated: bool,
    pub line_shown: bool,
    pub memo: Vec<u32>,
    pub request: String,
    pub journal: Vec<JournalRecord>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            turn: "turn-1".into(),
            profile: "default".into(),
            session: "agent:default:console:local".into(),
            conversation: "conversation-1".into(),
            origin: OriginCode::Human,
            now_ms: 1_789_981_200_000,
            routes: Vec::new(),
            windows: Vec::new(),
            documents: Vec::new(),
            failed: 0,
            cursor: 1,
            reason: ReasonCode::RateLimit,
            already_gated: false,
            line_shown: false,
            memo: Vec::new(),
            request: "Please go on.".into(),
            journal: Vec::new(),
        }
    }
}

impl Facts {
    /// Facts with a chain of `count` subscriptions `sub-0`, `sub-1`, … on model `opus`, and nothing known of them.
    pub fn with_routes(count: u32) -> Self {
        let routes = (0..count).map(|index| {
            let name = format!("sub-{index}");
            RouteRecord {
                subscription: name.as_str().into(),
                model: "opus".into(),
                slug: name.as_str().into(),
                counts_as: name.into(),
                metered: false,
                usable: true,
                first_window: 0,
                window_count: 0,
            }
        });
        Self {
            routes: routes.collect(),
            ..Self::default()
        }
    }

    /// Adds a five-hour window to every route: rejected, observed a minute ago, reset in `resets_in_ms`.
    pub fn all_spent(mut self, resets_in_ms: i64) -> Self {
        for route in &mut self.routes {
            route.first_window = u32::try_from(self.windows.len()).unwrap_or(u32::MAX);
            route.window_count = 1;
            self.windows.push(WindowRecord {
                id: "five_hour".into(),
                scope: ScopeCode::Account,
                scope_name: "".into(),
                status: StatusCode::Rejected,
                used_pct: ROption::RSome(100.0),
                resets_at_ms: ROption::RSome(self.now_ms.saturating_add(resets_in_ms)),
                observed_at_ms: ROption::RSome(self.now_ms.saturating_sub(60_000)),
                source: SourceCode::Probe,
            });
        }
        self
    }

    fn view(&self) -> TurnView<'_> {
        TurnView {
            turn: self.turn.as_str().into(),
            profile: self.profile.as_str().into(),
            session: self.session.as_str().into(),
            conversation: self.conversation.as_str().into(),
            origin: self.origin,
            now_ms: self.now_ms,
            routes: RSlice::from_slice(&self.routes),
            windows: RSlice::from_slice(&self.windows),
            attrs: RSlice::EMPTY,
        }
    }

    /// The context of `prologue`.
    pub fn prologue(&self) -> PrologueContext<'_> {
        PrologueContext {
            turn: self.view(),
            documents: RSlice::from_slice(&self.documents),
        }
    }

    /// The context of `before_walk`.
    pub fn walk(&self) -> WalkContext<'_> {
        WalkContext {
            turn: self.view(),
            failed: self.failed,
            reason: self.reason,
            cursor: self.cursor,
            already_gated: self.already_gated,
            line_shown: self.line_shown,
            memo: RSlice::from_slice(&self.memo),
        }
    }

    /// The context of `on_terminal`.
    pub fn terminal(&self) -> TerminalContext<'_> {
        TerminalContext {
            turn: self.view(),
            request: RequestView {
                inbound: "inbound-1".into(),
                platform: "console".into(),
                address: "local".into(),
                text: self.request.as_str().into(),
                started_at_ms: self.now_ms,
                owner: "owner".into(),
            },
            journal: RSlice::from_slice(&self.journal),
            carried: RSlice::EMPTY,
            reason: "rate limit".into(),
            next_reset_ms: ROption::RNone,
            handoff: "handoff-1".into(),
        }
    }
}
