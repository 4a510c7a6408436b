use gateway_core::route::Billing;

use super::*;
use crate::fixture::{at, entry, reading, view};

fn sheet<'a>(view: &'a View, width: Option<usize>) -> UsageSheet<'a> {
    UsageSheet {
        now: view.now,
        zone: &view.zone,
        entries: &view.chain,
        width,
        colour: false,
    }
}

#[test]
fn windows_resets_ages_and_the_unknown() {
    insta::assert_snapshot!(run("", &view()).text, @r"
    Usage at 09:00 UTC
    claude-work: spent until 15:00, in 6h (five_hour)
      five_hour  ██████████ 101% refused  resets 15:00, in 6h                read 3m ago by event
      seven_day  ███░░░░░░░  34%          resets Thu 24 Sep 18:36, in 3d 9h  read 3m ago by event
    gpt-plus: unknown, nothing was read yet, so it is tried
    fireworks: metered, passed over
    ");
}

#[test]
fn a_narrow_place_takes_more_lines_and_never_more_columns() {
    let mut view = view();
    view.chain.truncate(1);
    insta::assert_snapshot!(render(&sheet(&view, Some(70))), @r"
    Usage at 09:00 UTC
    claude-work: spent until 15:00, in 6h (five_hour)
      five_hour  ██████████ 101% refused
        resets 15:00, in 6h
        read 3m ago by event
      seven_day  ███░░░░░░░  34%
        resets Thu 24 Sep 18:36, in 3d 9h
        read 3m ago by event
    ");
    insta::assert_snapshot!(render(&sheet(&view, Some(40))), @r"
    Usage at 09:00 UTC
    claude-work: spent until 15:00, in 6h (five_hour)
      five_hour  █████ 101% refused
        resets 15:00, in 6h
        read 3m ago by event
      seven_day  ██░░░  34%
        resets Thu 24 Sep 18:36, in 3d 9h
        read 3m ago by event
    ");
    for width in 40..120 {
        let text = render(&sheet(&view, Some(width)));
        let windows = text.lines().filter(|line| line.starts_with(' '));
        for line in windows {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn a_reading_without_values_says_unknown_three_times() {
    let mut view = view();
    let mut bare = reading("solo", "primary", None, 0, WindowStatus::Unknown);
    (bare.resets_at, bare.observed_at) = (None, None);
    view.chain = vec![entry(
        "solo/m",
        Billing::Plan,
        Verdict::Eligible,
        vec![bare],
    )];
    insta::assert_snapshot!(run("", &view).text, @r"
    Usage at 09:00 UTC
    solo: unknown, nothing fresh was read, so it is tried
      primary  ░░░░░░░░░░ unknown  reset unknown  age unknown, by event
    ");
}

#[test]
fn logins_of_one_allowance_name_each_other() {
    let mut view = view();
    view.chain.truncate(1);
    view.chain[0].readings.clear();
    view.chain[0].shares = vec!["claude-home".into(), "hub-2".into()];
    assert!(
        run("", &view)
            .text
            .contains("\n  shares one allowance with claude-home, hub-2")
    );
}

#[test]
fn the_verdict_says_how_sure_it_is() {
    use WindowStatus::{Allowed, Rejected, Unknown, Warning};
    let w = |window: &str, used: Option<f64>, resets_in: i64, status| {
        reading("s", window, used, resets_in, status)
    };
    let mut resetless = w("five_hour", Some(100.0), 0, Unknown);
    resetless.resets_at = None;
    let mut stale = w("five_hour", Some(10.0), 3_600, Allowed);
    stale.observed_at = Some(at(-601));
    let mut rollout = w("primary", Some(99.0), 3_600, Unknown);
    rollout.source = ReadingSource::Rollout;
    let rows = [
        ("nothing", vec![], "unknown"),
        (
            "room",
            vec![w("five_hour", Some(79.9), 3_600, Allowed)],
            "has_room",
        ),
        (
            "nearly",
            vec![w("five_hour", Some(80.0), 3_600, Allowed)],
            "nearly_full",
        ),
        (
            "a warning",
            vec![w("five_hour", None, 3_600, Warning)],
            "nearly_full",
        ),
        ("full without a reset", vec![resetless], "full"),
        (
            "resets in a minute",
            vec![w("five_hour", Some(100.0), 60, Rejected)],
            "full",
        ),
        ("stale", vec![stale], "unknown"),
        (
            "rolled",
            vec![w("five_hour", Some(100.0), -60, Rejected)],
            "unknown",
        ),
        (
            "another model",
            vec![w("seven_day_sonnet", Some(99.0), 3_600, Allowed)],
            "unknown",
        ),
        (
            "its model",
            vec![w("seven_day_opus", Some(99.0), 3_600, Allowed)],
            "nearly_full",
        ),
        ("an old session", vec![rollout], "unknown"),
    ];
    for (name, readings, want) in rows {
        let entry = entry(
            "s/claude-opus-4-8",
            Billing::Plan,
            Verdict::Eligible,
            readings,
        );
        assert_eq!(room(&entry, at(0)).word(), want, "{name}");
    }
}

#[test]
fn two_models_of_one_subscription_share_a_block_and_keep_their_verdicts() {
    let mut view = view();
    let mut second = view.chain[0].clone();
    second.route = "Claude-Work/haiku".parse().unwrap();
    second.verdict = Verdict::Eligible;
    second.readings.remove(0);
    view.chain = vec![view.chain[0].clone(), second];
    let text = run("", &view).text;
    assert_eq!(text.matches("five_hour  ").count(), 1);
    assert!(
        text.contains("claude-work: opus spent until 15:00, in 6h (five_hour); haiku has room"),
        "{text}"
    );
}

#[test]
fn colours_are_wrapped_around_and_change_no_column() {
    let view = view();
    let coloured = render(&UsageSheet {
        colour: true,
        ..sheet(&view, None)
    });
    assert!(coloured.contains("\u{1b}[31mspent until"), "{coloured:?}");
    let mut plain = coloured;
    for code in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"] {
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, render(&sheet(&view, None)));
}

#[test]
fn lengths_of_time_have_two_units_at_most() {
    let rows = [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1m"),
        (3_599, "59m"),
        (3_600, "1h"),
        (7_980, "2h 13m"),
        (86_399, "23h 59m"),
        (86_400, "1d"),
        (273_600, "3d 4h"),
    ];
    for (seconds, text) in rows {
        assert_eq!(span(seconds), text, "{seconds} s");
    }
    let rows = [
        (0, "now"),
        (-40, "40 s ago"),
        (40, "in 40 s"),
        (61, "in 2m"),
        (7_980, "in 2h 13m"),
        (-7_999, "2h 13m ago"),
    ];
    for (offset, text) in rows {
        assert_eq!(distance(at(offset), at(0)), text, "{offset} s");
    }
}

#[test]
fn bars_have_their_cells_whatever_comes() {
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
        assert_eq!(bar(used, CELLS), text);
    }
    assert_eq!(bar(Some(50.0), FEW_CELLS), "███░░  50%");
}

#[test]
fn a_name_from_outside_steers_no_terminal_and_has_an_end() {
    let mut view = view();
    let evil = "five_hour\u{1b}[2J\u{1b}]0;x\u{7}\r\n\u{202e}";
    let long = "w".repeat(1_000);
    let row = |id: &str, used| reading("solo", id, Some(used), 60, WindowStatus::Allowed);
    let spent = Verdict::Spent {
        window: evil.to_owned(),
        until: at(3_600),
    };
    let readings = vec![row(evil, 5.0), row(&long, 1e300)];
    view.chain = vec![entry("solo/m", Billing::Plan, spent, readings)];
    for text in [run("", &view).text, verdict(&view.chain[0], &view)] {
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.chars().any(steers), "{text:?}");
        assert!(
            text.lines().all(|line| line.chars().count() < 140),
            "{text}"
        );
    }
    assert!(run("", &view).text.contains("█ >999%"));
}
