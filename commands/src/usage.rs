//! `/usage`: every subscription's windows as they were last read. What is unknown is called unknown; a reading always
//! carries its age and its source, because an old one may be wrong.

use gateway_core::command::{CommandReply, CommandSpec};
use gateway_core::message::Audience;
use gateway_core::usage::{Reading, ReadingSource, WindowStatus};

use crate::view::{EntryState, Verdict, View};
use crate::when::{clock, distance};
use crate::{Command, to_asker};

/// Cells of a bar.
const CELLS: usize = 10;

pub(crate) const COMMAND: Command = Command {
    spec: CommandSpec {
        name: "usage",
        aliases: &[],
        summary: "Shows the windows and resets of the subscriptions, with the age of each reading.",
        argument: "",
        audience: Audience::Asker,
        operators_only: false,
        while_busy: true,
    },
    run,
};

fn run(_args: &str, view: &View) -> CommandReply {
    if view.chain.is_empty() {
        return to_asker(format!(
            "The chain of profile {} is empty: there is no subscription to show.",
            view.profile
        ));
    }
    let blocks: Vec<String> = subscriptions(&view.chain)
        .map(|entry| block(entry, view))
        .collect();
    let zone = view
        .now
        .to_zoned_datetime(view.zone.clone())
        .strftime("%H:%M %Z");
    to_asker(format!("Usage at {zone}\n{}", blocks.join("\n")))
}

/// The first entry of each subscription; further models of one show the same windows.
fn subscriptions(chain: &[EntryState]) -> impl Iterator<Item = &EntryState> {
    chain.iter().enumerate().filter_map(|(position, entry)| {
        let seen = chain
            .iter()
            .take(position)
            .any(|earlier| earlier.route.subscription == entry.route.subscription);
        (!seen).then_some(entry)
    })
}

fn block(entry: &EntryState, view: &View) -> String {
    let head = format!("{}: {}", entry.route.subscription, verdicts(entry, view));
    let width = entry
        .readings
        .iter()
        .map(|reading| reading.window.chars().count())
        .max()
        .unwrap_or(0);
    let lines = entry
        .readings
        .iter()
        .map(|reading| window(reading, width, view));
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The subscription's verdict; one per model where its models differ.
fn verdicts(entry: &EntryState, view: &View) -> String {
    let models: Vec<&EntryState> = view
        .chain
        .iter()
        .filter(|other| other.route.subscription == entry.route.subscription)
        .collect();
    if models.iter().all(|model| model.verdict == entry.verdict) {
        return verdict(entry, view);
    }
    models
        .into_iter()
        .map(|model| format!("{} {}", model.route.model, verdict(model, view)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// `eligible`, `spent until 15:00 (in 6h)`, `metered, passed over`, with "unknown" where nothing was read.
pub(crate) fn verdict(entry: &EntryState, view: &View) -> String {
    match &entry.verdict {
        Verdict::Spent { window, until } => {
            format!("spent until {} by {window}", clock(*until, view))
        }
        Verdict::PassedOver => "metered, passed over".to_owned(),
        Verdict::LockedOut => "its login is refused, left out; see `baton doctor`".to_owned(),
        Verdict::Eligible if entry.readings.is_empty() => "unknown, so it is tried".to_owned(),
        Verdict::Eligible => "eligible".to_owned(),
    }
}

fn window(reading: &Reading, width: usize, view: &View) -> String {
    format!(
        "  {:width$}  {}{} · {} · {}",
        reading.window,
        bar(reading.used_pct),
        status(reading.status),
        reset(reading, view),
        provenance(reading, view),
    )
}

/// `███░░░░░░░  34%`, or an empty bar and `unknown`. More than all is shown as it is, on a full bar.
fn bar(used_pct: Option<f64>) -> String {
    let Some(used) = used_pct.filter(|used| used.is_finite()) else {
        return format!("{} unknown", "░".repeat(CELLS));
    };
    let full = (1..=CELLS)
        .filter(|cell| used >= 100.0 / CELLS as f64 * (*cell as f64 - 0.5))
        .count();
    format!(
        "{}{} {used:>3.0}%",
        "█".repeat(full),
        "░".repeat(CELLS - full)
    )
}

fn status(status: WindowStatus) -> &'static str {
    match status {
        WindowStatus::Unknown | WindowStatus::Allowed => "",
        WindowStatus::Warning => " warning",
        WindowStatus::Rejected => " refused",
    }
}

fn reset(reading: &Reading, view: &View) -> String {
    match reading.resets_at {
        None => "reset unknown".to_owned(),
        Some(at) if at <= view.now => format!("reset was due {}", clock(at, view)),
        Some(at) => format!("resets {}", clock(at, view)),
    }
}

fn provenance(reading: &Reading, view: &View) -> String {
    let source = match reading.source {
        ReadingSource::Failure => "from a refusal",
        ReadingSource::Event => "from the CLI",
        ReadingSource::Header => "from a response header",
        ReadingSource::Probe => "from a probe",
        ReadingSource::Hub => "from the usage registry",
        ReadingSource::Rollout => "from an old session, display only",
    };
    match reading.observed_at {
        None => format!("age unknown, {source}"),
        Some(at) => format!("read {}, {source}", distance(at, view.now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{entry, reading, view};

    #[test]
    fn windows_resets_ages_and_the_unknown() {
        insta::assert_snapshot!(run("", &view()).text, @r"
        Usage at 09:00 UTC
        claude-work: spent until 15:00 (in 6h) by five_hour
          five_hour  ██████████ 101% refused · resets 15:00 (in 6h) · read 3m ago, from the CLI
          seven_day  ███░░░░░░░  34% · resets Thu 24 Sep 18:36 (in 3.4d) · read 3m ago, from the CLI
        gpt-plus: unknown, so it is tried
        fireworks: metered, passed over
        ");
    }

    #[test]
    fn a_reading_without_values_says_unknown_three_times() {
        let mut view = view();
        let mut bare = reading("solo", "primary", None, 0, WindowStatus::Unknown);
        (bare.resets_at, bare.observed_at) = (None, None);
        view.chain = vec![entry(
            "solo/m",
            gateway_core::route::Billing::Plan,
            Verdict::Eligible,
            vec![bare],
        )];
        insta::assert_snapshot!(run("", &view).text, @r"
        Usage at 09:00 UTC
        solo: eligible
          primary  ░░░░░░░░░░ unknown · reset unknown · age unknown, from the CLI
        ");
    }

    #[test]
    fn a_reset_that_has_passed_is_not_called_coming() {
        let view = view();
        let due = reading("solo", "primary", Some(100.0), -60, WindowStatus::Rejected);
        assert_eq!(reset(&due, &view), "reset was due 08:59 (60s ago)");
    }

    #[test]
    fn two_models_of_one_subscription_share_a_block_and_keep_their_verdicts() {
        let mut view = view();
        let mut second = view.chain[0].clone();
        second.route = "Claude-Work/haiku".parse().unwrap();
        second.verdict = Verdict::Eligible;
        view.chain = vec![view.chain[0].clone(), second];
        let text = run("", &view).text;
        assert_eq!(text.matches("five_hour  ").count(), 1);
        assert!(
            text.contains(
                "claude-work: opus spent until 15:00 (in 6h) by five_hour; haiku eligible"
            )
        );
    }

    #[test]
    fn bars_are_ten_cells_whatever_comes() {
        let rows = [
            (Some(0.0), "░░░░░░░░░░   0%"),
            (Some(4.9), "░░░░░░░░░░   5%"),
            (Some(5.0), "█░░░░░░░░░   5%"),
            (Some(96.0), "██████████  96%"),
            (Some(250.0), "██████████ 250%"),
            (Some(-3.0), "░░░░░░░░░░  -3%"),
            (Some(f64::NAN), "░░░░░░░░░░ unknown"),
            (None, "░░░░░░░░░░ unknown"),
        ];
        for (used, text) in rows {
            assert_eq!(bar(used), text);
        }
    }
}
