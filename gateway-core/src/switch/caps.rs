//! How often work may move by itself: per thread and over the whole root, in any rolling 24 hours.

use jiff::Timestamp;

use super::facts::Facts;

/// A switch counts while it is younger than this, in milliseconds.
pub const CAP_PERIOD_MS: i64 = 24 * 60 * 60_000;

/// Whether no automatic switch is left. A stamp ahead of the clock counts: a clock that jumped back gives nothing away.
pub fn is_used_up(facts: &Facts, now: Timestamp) -> bool {
    let settings = &facts.settings;
    reaches(&facts.thread.auto_switches, settings.cap_thread, now)
        || reaches(&facts.environment_switches, settings.cap_environment, now)
}

/// How many of these switches still count.
pub fn counted(switches: &[Timestamp], now: Timestamp) -> usize {
    let now = now.as_millisecond();
    let young = |at: &&Timestamp| now.saturating_sub(at.as_millisecond()) < CAP_PERIOD_MS;
    switches.iter().filter(young).count()
}

fn reaches(switches: &[Timestamp], cap: u32, now: Timestamp) -> bool {
    counted(switches, now) >= usize::try_from(cap).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n19_a_switch_counts_for_less_than_a_day() {
        let now = Timestamp::from_second(1_789_981_200).unwrap();
        let ago = |s: i64| Timestamp::from_second(now.as_second() - s).unwrap();
        let rows: [(&[i64], u32, bool); 6] = [
            (&[], 3, false),
            (&[], 0, true),
            (&[0, 60, 86_399], 3, true),
            (&[0, 60, 86_400], 3, false),
            (&[-3_600, -900_000, 5], 3, true),
            (&[0, 1], 3, false),
        ];
        for (switches, cap, want) in rows {
            let mut facts = Facts::default();
            facts.settings.cap_thread = cap;
            facts.thread.auto_switches = switches.iter().map(|s| ago(*s)).collect();
            assert_eq!(is_used_up(&facts, now), want, "{switches:?} of {cap}");
            facts.settings.cap_thread = 100;
            facts.settings.cap_environment = cap;
            facts.environment_switches = std::mem::take(&mut facts.thread.auto_switches);
            assert_eq!(is_used_up(&facts, now), want, "root: {switches:?} of {cap}");
        }
    }
}
