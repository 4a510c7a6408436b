//! What to do about a session before it is full: at the wall it can neither be compacted (it would have to be loaded
//! first) nor go on.

/// How full a session is after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// Tokens of the last request: uncached, read from the cache and written to it together.
    pub context: u64,
    /// The window the provider reported for the model that answered; `None` = it reported none.
    pub window: Option<u64>,
}

/// What is done between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    Nothing,
    /// The provider shortens its own session.
    Compact,
    /// The session is retired while it still works.
    Retire,
}

/// From here on a session is compacted, in percent of the window.
const COMPACT_AT: u64 = 80;
/// From here on it is retired: a compaction that leaves it here took no effect.
const RETIRE_AT: u64 = 92;

/// What a session needs. `compacts` = the backend can be asked to compact; `compacted` = it was asked since the session last
/// stood below the mark, so that a compaction without effect is not asked for again and again.
pub fn care(filling: Filling, compacts: bool, compacted: bool) -> Care {
    let Some(window) = filling.window.filter(|window| *window > 0) else {
        return Care::Nothing; // nothing is known, nothing is guessed
    };
    let percent = filling.context.saturating_mul(100) / window;
    match percent {
        RETIRE_AT.. if compacts && !compacted => Care::Compact,
        RETIRE_AT.. => Care::Retire,
        COMPACT_AT.. if compacts && !compacted => Care::Compact,
        _ => Care::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn care_follows_the_marks() {
        let rows = [
            ("below_the_marks", 79, Some(100), true, false, Care::Nothing),
            (
                "at_the_first_mark",
                80,
                Some(100),
                true,
                false,
                Care::Compact,
            ),
            (
                "compacted_already_and_still_above",
                85,
                Some(100),
                true,
                true,
                Care::Nothing,
            ),
            (
                "cannot_compact_and_not_yet_full",
                91,
                Some(100),
                false,
                false,
                Care::Nothing,
            ),
            (
                "cannot_compact_and_nearly_full",
                92,
                Some(100),
                false,
                false,
                Care::Retire,
            ),
            (
                "a_compaction_without_effect",
                95,
                Some(100),
                true,
                true,
                Care::Retire,
            ),
            (
                "one_try_before_the_last",
                99,
                Some(100),
                true,
                false,
                Care::Compact,
            ),
            (
                "no_window_was_reported",
                1_000_000,
                None,
                true,
                false,
                Care::Nothing,
            ),
            (
                "a_window_of_zero_is_none",
                10,
                Some(0),
                true,
                false,
                Care::Nothing,
            ),
            (
                "more_than_any_window",
                u64::MAX,
                Some(200_000),
                false,
                false,
                Care::Retire,
            ),
        ];
        for (name, context, window, compacts, compacted, want) in rows {
            let filling = Filling { context, window };
            assert_eq!(care(filling, compacts, compacted), want, "{name}");
        }
    }
}
