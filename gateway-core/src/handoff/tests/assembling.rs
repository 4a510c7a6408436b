use proptest::prelude::*;

use crate::handoff::assemble::{LATER_REQUEST, PREVIEW, PROGRESS};
use crate::handoff::merge::merge;

use super::*;

/// B1: what a turn leaves; older turns are not in its journal.
#[test]
fn a_turn_leaves_its_request_progress_and_calls() {
    let handoff = cut(
        "list the jobs",
        &[
            attempt("claude-work/opus"),
            text(0, "Looking."),
            call("call_1", "terminal", "{\"cmd\":\"jobs\"}"),
            result("call_1", CallOutcome::Completed, "job-a\njob-b"),
            text(1, "Two jobs."),
            failed(),
        ],
    );
    assert_eq!(handoff.request, "list the jobs");
    assert_eq!(handoff.request_id.as_str(), "inbound-42");
    assert_eq!(handoff.progress, "Looking.\n\nTwo jobs.");
    assert_eq!(handoff.route, Some(Route::new("claude-work", "opus")));
    assert_eq!(
        handoff.calls,
        [CallRecord {
            id: "call_1".into(),
            name: "terminal".into(),
            arguments: "{\"cmd\":\"jobs\"}".into(),
            outcome: CallOutcome::Completed,
            result: Some("job-a\njob-b".into()),
        }]
    );
}

/// B2, B3, and the same for arguments.
#[test]
fn bodies_are_cut_at_500_characters() {
    let rows = [
        (
            "B2 long",
            5_000,
            format!("{}… [truncated, 5000 chars total]", "x".repeat(500)),
        ),
        ("B3 exactly", 500, "x".repeat(500)),
        (
            "B3 one more",
            501,
            format!("{}… [truncated, 501 chars total]", "x".repeat(500)),
        ),
    ];
    for (rule, length, expected) in rows {
        let body = "x".repeat(length);
        let handoff = cut(
            "r",
            &[
                call("1", "t", &body),
                result("1", CallOutcome::Completed, &body),
            ],
        );
        assert_eq!(handoff.calls[0].arguments, expected, "{rule}");
        assert_eq!(
            handoff.calls[0].result.as_deref(),
            Some(expected.as_str()),
            "{rule}"
        );
    }
    assert_eq!(rows_two_is_531(), 531);
}

fn rows_two_is_531() -> usize {
    let handoff = cut(
        "r",
        &[
            call("1", "t", ""),
            result("1", CallOutcome::Failed, &"x".repeat(5_000)),
        ],
    );
    handoff.calls[0].result.as_deref().unwrap().chars().count()
}

/// B4, B5, and that the other outcomes are told apart.
#[test]
fn outcomes_table() {
    use CallOutcome::{Cancelled, Completed, Denied, Failed, Unknown};
    let rows: [(&str, Vec<JournalEntry>, Vec<CallOutcome>); 8] = [
        ("B4 no result", vec![call("1", "t", "")], vec![Unknown]),
        (
            "B5 only the second of two parallel calls answered",
            vec![
                call("1", "t", ""),
                call("2", "t", ""),
                result("2", Completed, "ok"),
            ],
            vec![Unknown, Completed],
        ),
        (
            "failed",
            vec![call("1", "t", ""), result("1", Failed, "no")],
            vec![Failed],
        ),
        (
            "denied",
            vec![call("1", "t", ""), result("1", Denied, "no")],
            vec![Denied],
        ),
        (
            "cancelled",
            vec![call("1", "t", ""), result("1", Cancelled, "")],
            vec![Cancelled],
        ),
        (
            "a call without an id is never completed",
            vec![call("", "t", ""), result("", Completed, "")],
            vec![Unknown],
        ),
        (
            "ids count within one attempt only",
            vec![
                attempt("a/m"),
                call("1", "t", ""),
                failed(),
                attempt("b/m"),
                call("1", "t", ""),
                result("1", Completed, ""),
            ],
            vec![Unknown, Completed],
        ),
        (
            "a result of nothing",
            vec![result("1", Completed, "")],
            vec![],
        ),
    ];
    for (rule, entries, expected) in rows {
        let outcomes: Vec<_> = cut("r", &entries)
            .calls
            .into_iter()
            .map(|call| call.outcome)
            .collect();
        assert_eq!(outcomes, expected, "{rule}");
    }
}

#[test]
fn a_call_reported_again_with_more_arguments_is_one_call() {
    let handoff = cut(
        "r",
        &[
            call("1", "t", ""),
            call("1", "t", "{}"),
            result("1", CallOutcome::Completed, ""),
        ],
    );
    assert_eq!(handoff.calls.len(), 1);
    assert_eq!(handoff.calls[0].arguments, "{}");
}

/// B6, B7.
#[test]
fn open_todos_of_the_last_list_in_order() {
    use TodoStatus::{Cancelled, Completed, InProgress, Pending};
    let handoff = cut(
        "r",
        &[
            todos(&[("old", Pending)]),
            todos(&[
                ("a", Completed),
                ("b", InProgress),
                ("c", Pending),
                ("d", Cancelled),
            ]),
        ],
    );
    assert_eq!(
        handoff.open_todos,
        [todo("b", InProgress), todo("c", Pending)]
    );
    let without = cut("r", &[text(0, "told"), call("1", "t", "")]);
    assert_eq!(
        (
            without.open_todos.len(),
            without.calls.len(),
            without.progress.as_str()
        ),
        (0, 1, "told"),
        "B7"
    );
}

/// B8, B9, and 5B10: every text is stripped, in whatever pieces it came.
#[test]
fn reasoning_never_enters_progress() {
    let rows = [
        (
            "B8",
            vec![text(0, "<think>secret</think>Half-written answer")],
            "Half-written answer",
        ),
        ("B9", vec![text(0, "<think>secret</think>")], ""),
        (
            "over chunks",
            vec![
                text(0, "<thi"),
                text(0, "nk>secret</th"),
                text(0, "ink>Half"),
            ],
            "Half",
        ),
        (
            "over blocks",
            vec![text(0, "a\n<think>secret"), text(1, "more</think>b")],
            "a\nb",
        ),
        (
            "of an earlier attempt",
            vec![
                attempt("a/m"),
                text(0, "a<思考>s</思考>"),
                attempt("b/m"),
                text(0, "b"),
            ],
            "a\n\nb",
        ),
    ];
    for (rule, entries, expected) in rows {
        let handoff = cut("r", &entries);
        assert_eq!(handoff.progress, expected, "{rule}");
        assert_eq!(handoff.request, "r", "{rule}");
    }
}

/// B10 to B13.
#[test]
fn merging_table() {
    let rows = [
        (
            "B10 repeated and continued",
            "Earlier completed progress.",
            "Earlier completed progress.\n\nNew.",
            "Earlier completed progress.\n\nNew.",
        ),
        (
            "B11 overlap",
            "Two jobs. Now reading job-a.",
            "Now reading job-a. It runs nightly.",
            "Two jobs. Now reading job-a. It runs nightly.",
        ),
        (
            "B12 seven",
            "xx ABCDEFG",
            "ABCDEFG tail",
            "xx ABCDEFG\n\nABCDEFG tail",
        ),
        (
            "B12 eight",
            "xx ABCDEFGH",
            "ABCDEFGH tail",
            "xx ABCDEFGH tail",
        ),
        ("B13 part of it", "done", "one", "done"),
        ("first empty", "", "b", "b"),
        ("second empty", "a", "", "a"),
    ];
    for (rule, earlier, later, expected) in rows {
        assert_eq!(merge(earlier, later), expected, "{rule}");
        let handoff = cut(
            "r",
            &[
                attempt("a/m"),
                text(0, earlier),
                failed(),
                attempt("b/m"),
                text(0, later),
            ],
        );
        assert_eq!(handoff.progress, expected, "{rule}, over two attempts");
    }
}

/// 5B10, 5B11: blocks of one attempt are all its own words, and the words of every attempt stay.
#[test]
fn short_blocks_and_earlier_attempts_stay() {
    let handoff = cut(
        "r",
        &[
            attempt("a/m"),
            text(0, "It is done."),
            text(2, "done"),
            failed(),
            attempt("b/m"),
            text(0, "Next."),
        ],
    );
    assert_eq!(handoff.progress, "It is done.\n\ndone\n\nNext.");
}

#[test]
fn retracted_blocks_of_the_current_attempt_are_gone() {
    let handoff = cut(
        "r",
        &[
            attempt("a/m"),
            text(0, "kept 1"),
            text(1, "kept 2"),
            attempt("b/m"),
            text(0, "first"),
            text(1, "broken"),
            text(2, "broken too"),
            JournalEntry::Retract { from_block: 1 },
            text(1, "sent again"),
        ],
    );
    assert_eq!(handoff.progress, "kept 1\n\nkept 2\n\nfirst\n\nsent again");
}

/// B14.
#[test]
fn progress_keeps_its_end() {
    let live = "Half-written LIVE answer at the cut";
    let handoff = cut(
        "r",
        &[
            attempt("a/m"),
            text(0, &"old words. ".repeat(1_200)),
            text(1, live),
        ],
    );
    let (marker, kept) = handoff.progress.split_once(" …").unwrap();
    assert!(marker.starts_with("[truncated, 132"), "{marker}");
    assert!(kept.ends_with(live));
    assert_eq!(kept.chars().count(), PROGRESS);
}

/// B15, B16 (an empty journal is a cut before the first attempt), B17 (the stored request is whole), B18 (a request of
/// nothing but white space has nothing to save by itself, but hides nothing else), B38.
#[test]
fn what_is_worth_saving_table() {
    let whole = "ä".repeat(2_001);
    let open = todos(&[("x", TodoStatus::Pending)]);
    let rows = [
        ("B15 the request alone", whole.as_str(), vec![], true),
        ("B16 nothing at all", "", vec![], false),
        (
            "B16 nothing but the attempt",
            " \n",
            vec![attempt("a/m"), failed()],
            false,
        ),
        ("B18 a todo alone", "", vec![open], true),
        ("a call alone", "", vec![call("1", "t", "")], true),
        ("text alone", "", vec![text(0, "a")], true),
        (
            "reasoning alone",
            "",
            vec![text(0, "<think>a</think>")],
            false,
        ),
    ];
    for (rule, request, entries, saved) in rows {
        let handoff = cut_again(request, &entries, &[]);
        assert_eq!(handoff.is_some(), saved, "{rule}");
        assert!(
            handoff.is_none_or(|handoff| handoff.request == request),
            "B17 {rule}"
        );
    }
    let mut nobody = turn("r");
    nobody.session = SessionKey::new("");
    let cut = Cut {
        id: &HandoffId::new("h"),
        turn: &nobody,
        entries: &[],
        carried: &[],
        reason: "",
        next_reset: None,
        now: now(),
    };
    assert_eq!(assemble(&cut), None, "B38");
}

/// B50, 5B3: a second cut loses nothing of the first, a third nothing of both.
#[test]
fn cuts_in_a_row_chain() {
    use TodoStatus::{Completed, Pending};
    let first = cut(
        "refactor it",
        &[
            attempt("a/m"),
            text(0, "Began."),
            call("1", "edit", "a.rs"),
            todos(&[("tests", Pending), ("docs", Pending)]),
        ],
    );
    let second = cut_again(
        "and hurry",
        &[
            attempt("b/m"),
            text(0, "Went on."),
            call("1", "edit", "b.rs"),
            todos(&[("docs", Completed), ("lint", Pending)]),
        ],
        std::slice::from_ref(&first),
    )
    .unwrap();
    assert_eq!(
        second.request,
        format!("refactor it{LATER_REQUEST}and hurry")
    );
    assert_eq!(second.progress, "Began.\n\nWent on.");
    let calls: Vec<_> = second
        .calls
        .iter()
        .map(|call| (call.arguments.as_str(), call.outcome))
        .collect();
    assert_eq!(
        calls,
        [
            ("a.rs", CallOutcome::Unknown),
            ("b.rs", CallOutcome::Unknown)
        ]
    );
    assert_eq!(
        second.open_todos,
        [todo("tests", Pending), todo("lint", Pending)]
    );
    assert_eq!(
        (second.earlier_cuts, second.route.clone()),
        (1, Some(Route::new("b", "m")))
    );

    let third = cut_again("and hurry", &[], std::slice::from_ref(&second)).unwrap();
    assert_eq!(
        third.request, second.request,
        "the same words again are the same request"
    );
    assert_eq!(
        (&third.progress, &third.calls),
        (&second.progress, &second.calls)
    );
    assert_eq!(third.earlier_cuts, 2);
}

#[test]
fn a_long_second_turn_does_not_push_out_the_progress_of_the_first() {
    let first = cut("r", &[attempt("a/m"), text(0, "FIRST WORDS")]);
    let second = cut_again(
        "s",
        &[attempt("b/m"), text(0, &"z".repeat(9_000))],
        &[first],
    )
    .unwrap();
    assert!(
        second
            .progress
            .starts_with("FIRST WORDS\n\n[truncated, 9000 chars total] …zzz")
    );
}

#[test]
fn secrets_split_over_pieces_do_not_survive_the_cut() {
    let (a, b) = ("xoxb-0000000", "000-FAKEfakeFAKE");
    let handoff = cut(
        "r",
        &[text(0, a), text(0, b), call("1", "t", &format!("{a}{b}"))],
    );
    assert_eq!(handoff.progress, "[redacted]");
    assert_eq!(handoff.calls[0].arguments, "[redacted]");
}

#[test]
fn many_calls_are_bounded_and_no_unfinished_one_is_dropped() {
    let mut entries = vec![call("open", "t", "")];
    for n in 0..700 {
        entries.push(call(&n.to_string(), "t", ""));
        entries.push(result(&n.to_string(), CallOutcome::Completed, ""));
    }
    let handoff = cut("r", &entries);
    assert_eq!(handoff.calls.len(), 500);
    assert_eq!(handoff.calls[0].id, "open");
    assert_eq!(handoff.calls[499].id, "699");
}

fn any_entry() -> impl Strategy<Value = JournalEntry> {
    let outcome = prop::sample::select(vec![
        CallOutcome::Completed,
        CallOutcome::Failed,
        CallOutcome::Denied,
        CallOutcome::Cancelled,
        CallOutcome::Unknown,
    ]);
    prop_oneof![
        Just(attempt("a/m")),
        Just(failed()),
        (0u32..4, "\\PC{0,40}").prop_map(|(block, body)| text(block, &body)),
        (0u32..4).prop_map(|from_block| JournalEntry::Retract { from_block }),
        ("[0-3]?", "\\PC{0,600}").prop_map(|(id, body)| call(&id, "tool", &body)),
        ("[0-3]?", outcome, "\\PC{0,600}")
            .prop_map(|(id, outcome, body)| result(&id, outcome, &body)),
        "[a-c]{1,3}".prop_map(|content| todos(&[(content.as_str(), TodoStatus::Pending)])),
    ]
}

proptest! {
    #[test]
    fn any_journal_gives_a_bounded_payload_with_the_whole_request(
        request in "\\PC{1,60}x",
        entries in prop::collection::vec(any_entry(), 0..40),
    ) {
        let handoff = cut(&request, &entries);
        prop_assert_eq!(&handoff.request, &request);
        let marker = 40;
        prop_assert!(handoff.progress.chars().count() <= PROGRESS + marker);
        for call in &handoff.calls {
            prop_assert!(call.arguments.chars().count() <= PREVIEW + marker);
        }
    }

    #[test]
    fn a_chain_of_cuts_keeps_every_request_and_every_unfinished_call(
        requests in prop::collection::vec("[a-z]{3,12}", 1..6),
    ) {
        let mut carried: Vec<Handoff> = vec![];
        for (n, request) in requests.iter().enumerate() {
            let name = format!("call-of-{n}");
            carried = vec![cut_again(request, &[attempt("a/m"), call("1", &name, "")], &carried).unwrap()];
        }
        let last = &carried[0];
        prop_assert!(requests.iter().all(|request| last.request.contains(request.as_str())));
        prop_assert_eq!(last.calls.len(), requests.len());
        prop_assert_eq!(usize::try_from(last.earlier_cuts).unwrap(), requests.len() - 1);
    }
}
