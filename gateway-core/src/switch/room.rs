//! Is there room? Every window that limits a subscription must prove it: known, recent, of the running cycle, and below the
//! reserve with everything promised and expected on top.

use jiff::Timestamp;

use super::RejectReason;
use super::evidence::Board;
use super::facts::{Class, LoginState, Selection};
use super::look::Look;
use crate::usage::burn::{is_above, projected};
use crate::usage::freshness::{RESETLESS_MS, RESETLESS_USED};

/// The room a subscription's windows prove, for one class of work.
pub struct Room<'f> {
    metered: bool,
    ambiguous: bool,
    windows: Vec<Space<'f>>,
    /// Points a window may be at after the turn.
    limit: f64,
    /// Points a candidate must be emptier than the source before work moves on a prediction.
    hysteresis: f64,
}

/// One window with what is promised and expected on it.
struct Space<'f> {
    look: Look<'f>,
    reserved: f64,
    after_turn: Option<f64>,
}

impl<'f> Room<'f> {
    /// Looks at every window that limits the selection.
    pub fn of(board: &Board<'f>, entry: &Selection, state: &LoginState) -> Self {
        let settings = &board.facts.settings;
        let reserve = match board.facts.class {
            Class::Interactive => settings.reserve_interactive_pct,
            Class::Background => settings.reserve_background_pct,
        };
        let reserved = board.reserved(&entry.subscription);
        let space = |look: Look<'f>| {
            let own = board.expected_burn(&entry.subscription, look.window);
            let expected = own.or(board.facts.expected_burn_pct).unwrap_or(0.0);
            let after = |level| projected(level + reserved, expected, settings.guard.safety);
            Space {
                look,
                reserved,
                after_turn: look.level.map(after),
            }
        };
        Self {
            metered: state.login.metered,
            ambiguous: board.is_ambiguous(state),
            windows: board.looks(entry).into_iter().map(space).collect(),
            limit: 100.0 - reserve,
            hysteresis: settings.guard.hysteresis_pct,
        }
    }

    /// Every window is proven to have room. A metered login needs no proof, but a proven end counts.
    pub fn has_any(&self) -> Result<(), RejectReason> {
        if self.metered {
            let out =
                |space: &Space<'_>| space.look.fresh && !space.look.rolled && space.look.exhausted;
            return self.fails_if(out, RejectReason::Exhausted);
        }
        if self.windows.is_empty() {
            return Err(RejectReason::NoData);
        }
        if self.ambiguous {
            return Err(RejectReason::Ambiguous);
        }
        self.fails_if(|space| space.look.is_vague(), RejectReason::Ambiguous)?;
        self.fails_if(Space::is_stale, RejectReason::Stale)?;
        self.fails_if(|space| space.look.rolled, RejectReason::WindowRolled)?;
        self.fails_if(|space| space.look.exhausted, RejectReason::Exhausted)?;
        self.fails_if(
            |space| space.is_too_full(self.limit),
            RejectReason::Headroom,
        )
    }

    /// The resets of the windows that are proven to be out or too full.
    pub fn resets_in_the_way(&self) -> impl Iterator<Item = Option<Timestamp>> {
        let in_the_way = |space: &&Space<'_>| {
            space.look.is_usable()
                && (space.look.exhausted || (!self.metered && space.is_too_full(self.limit)))
        };
        let windows = self.windows.iter().filter(in_the_way);
        windows.map(|space| space.look.resets_at)
    }

    /// It is enough emptier than the source to move on a mere prediction.
    pub fn is_worth_it(&self, source_level: f64) -> Result<(), RejectReason> {
        let levels = self.windows.iter();
        let fullest = levels.filter_map(|space| Some(space.look.level? + space.reserved));
        match fullest.reduce(f64::max) {
            Some(fullest) if is_above(self.hysteresis, source_level - fullest) => {
                Err(RejectReason::Hysteresis)
            }
            _ => Ok(()),
        }
    }

    fn fails_if(
        &self,
        test: impl Fn(&Space<'f>) -> bool,
        reason: RejectReason,
    ) -> Result<(), RejectReason> {
        if self.windows.iter().any(test) {
            Err(reason)
        } else {
            Ok(())
        }
    }
}

impl Space<'_> {
    /// Too old to admit; a window without a reset ages faster, because nobody knows when it begins anew.
    fn is_stale(&self) -> bool {
        let aged = self.look.age_ms.is_none_or(|age| age > RESETLESS_MS);
        !self.look.fresh || (self.look.resets_at.is_none() && aged)
    }

    fn is_too_full(&self, limit: f64) -> bool {
        let resetless = self.look.resets_at.is_none();
        let level = self.look.level.unwrap_or(100.0);
        self.after_turn.is_none_or(|after| is_above(after, limit))
            || (resetless && is_above(level, RESETLESS_USED))
    }
}
