//! What every hook is told: whose turn it is, the chain with its windows, and the time. Borrowed for the call only.

use abi_stable::StableAbi;
use abi_stable::std_types::{RSlice, RStr};

use crate::records::{Attr, OriginCode, RouteRecord, WindowRecord};

/// The facts common to all hooks.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct TurnView<'a> {
    pub turn: RStr<'a>,
    pub profile: RStr<'a>,
    pub session: RStr<'a>,
    pub conversation: RStr<'a>,
    pub origin: OriginCode,
    /// The time, in milliseconds since 1970: plugins never read a clock.
    pub now_ms: i64,
    /// The whole chain in its configured order; a position in advice is an index into it.
    pub routes: RSlice<'a, RouteRecord>,
    /// The windows of all routes; see [`TurnView::windows_of`].
    pub windows: RSlice<'a, WindowRecord>,
    /// Facts added after 1.0.
    pub attrs: RSlice<'a, Attr>,
}

impl<'a> TurnView<'a> {
    /// Whether a person wrote the message; only such a turn may carry a saved handoff.
    pub fn is_human(&self) -> bool {
        self.origin == OriginCode::Human
    }

    /// The chain.
    pub fn routes(&self) -> &'a [RouteRecord] {
        self.routes.as_slice()
    }

    /// The windows known of a route's subscription; empty = nothing is known.
    pub fn windows_of(&self, route: &RouteRecord) -> &'a [WindowRecord] {
        let first = route.first_window as usize;
        let end = first.saturating_add(route.window_count as usize);
        self.windows.as_slice().get(first..end).unwrap_or(&[])
    }
}
