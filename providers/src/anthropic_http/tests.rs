//! The Messages API over real sockets.

use gateway_core::turn::AttemptEnd;
use gateway_core::usage::WindowStatus;

use super::*;
use crate::http::testing::{NOW, attempt, clock, failure, limits as bounds, request, text};
use crate::loopback::{Cut, Loopback, Step, Wire};

const KEY: &str = "sk-ant-very-secret-1";

async fn upstream() -> (Loopback, AnthropicHttp) {
    crate::install_tls();
    let server = Loopback::start(Wire::Anthropic).await.unwrap();
    let provider = at(server.base_url());
    (server, provider)
}

fn at(base_url: String) -> AnthropicHttp {
    crate::install_tls();
    AnthropicHttp::new(AnthropicSettings {
        subscription: "claude-api".into(),
        base_url,
        key: KEY.into(),
        max_tokens: 4096,
        client: crate::http::client().unwrap(),
        now: clock(),
    })
}

fn sse(body: &str) -> Step {
    Step::status_with(200, &[("content-type", "text/event-stream")], body)
}

#[tokio::test]
async fn the_request_is_what_the_api_wants() {
    let (server, provider) = upstream().await;
    attempt(&provider).await;
    let sent = &server.requests()[0];
    assert_eq!(sent.header("x-api-key"), Some(KEY));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    insta::assert_json_snapshot!(sent.body, @r#"
    {
      "model": "some/model",
      "max_tokens": 4096,
      "stream": true,
      "messages": [
        {
          "role": "user",
          "content": "First?"
        },
        {
          "role": "assistant",
          "content": "Yes."
        },
        {
          "role": "user",
          "content": "Cut?"
        },
        {
          "role": "user",
          "content": "And now?"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn captured_streams_become_text_and_usage() {
    let (server, provider) = upstream().await;
    server.script([
        sse(include_str!("../../captures/http/anthropic-text.sse")),
        sse(include_str!("../../captures/http/anthropic-thinking.sse")),
        Step::status_with(
            200,
            &[("content-type", "application/json")],
            include_str!("../../captures/http/anthropic-nonstream.json"),
        ),
    ]);
    let (events, end) = attempt(&provider).await;
    let usage = TokenUsage {
        input: Some(12),
        output: Some(42),
        cache_read: Some(6789),
        cache_write: Some(345),
    };
    assert_eq!(text(&events), "Hello from the mock.");
    assert_eq!(
        end,
        AttemptEnd::Answered(Answer {
            text: "Hello from the mock.".into(),
            usage
        })
    );

    let (events, end) = attempt(&provider).await;
    assert!(events.contains(&Event::Activity {
        what: "thinking".into()
    }));
    assert!(events.contains(&Event::Text {
        block: 1,
        delta: "42".into()
    }));
    assert_eq!(
        end,
        AttemptEnd::Answered(Answer {
            text: "42".into(),
            usage
        })
    );

    let (events, _) = attempt(&provider).await;
    assert_eq!(text(&events), "Hello from the mock.");
}

#[tokio::test]
async fn unified_headers_become_readings_and_name_the_refusing_window() {
    let (server, provider) = upstream().await;
    let headers: Vec<(String, String)> =
        include_str!("../../captures/http/anthropic-unified-headers.txt")
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    let body = include_str!("../../captures/http/anthropic-error-429.json");
    server.enqueue(Step::Status {
        code: 429,
        headers,
        body: body.into(),
    });
    let (events, end) = attempt(&provider).await;
    let readings: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Limit(reading) => Some((
                reading.window.as_str(),
                reading.status,
                reading.used_pct,
                reading.resets_at.map(|at| at.as_second() - NOW),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        readings,
        [
            (
                "five_hour",
                WindowStatus::Rejected,
                Some(102.0),
                Some(3_600)
            ),
            (
                "seven_day",
                WindowStatus::Allowed,
                Some(41.0),
                Some(259_200)
            ),
        ]
    );
    let AttemptEnd::Failed(failure) = end else {
        panic!("{end:?}")
    };
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!(failure.scope, FailureScope::Account);
    assert_eq!(failure.window.as_deref(), Some("five_hour"));
    assert_eq!(
        failure.retry_at.map(|at| at.as_second()),
        Some(1_796_001_127)
    );
}

#[tokio::test]
async fn readings_come_on_success_too_and_minute_budgets_are_none() {
    let (server, provider) = upstream().await;
    let header =
        |name: &str, value: &str| (format!("anthropic-ratelimit-{name}"), value.to_owned());
    server.enqueue(Step::Answer {
        text: "ok".into(),
        deltas: 1,
        headers: vec![
            header("unified-7d_opus-utilization", "1"),
            header("unified-7d_opus-status", "allowed_warning"),
            header("unified-overage-status", "rejected"),
            header("tokens-remaining", "0"),
            header("tokens-reset", "2026-11-30T00:00:00Z"),
        ],
    });
    let (events, end) = attempt(&provider).await;
    let limits: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, Event::Limit(_)))
        .collect();
    let [Event::Limit(reading)] = limits[..] else {
        panic!("{limits:?}")
    };
    assert_eq!(
        (reading.window.as_str(), reading.used_pct),
        ("seven_day_opus", Some(100.0))
    );
    assert_eq!(reading.status, WindowStatus::Warning);
    assert!(matches!(end, AttemptEnd::Answered(_)));
}

#[tokio::test]
async fn every_bad_end_is_a_failure_of_its_kind() {
    let (server, provider) = upstream().await;
    let overloaded = json!({"type": "overloaded_error", "message": "Overloaded"});
    let resets_at = Timestamp::from_second(NOW + 60).unwrap();
    let ended = |reason: &str| {
        sse(&include_str!("../../captures/http/anthropic-text.sse").replace("end_turn", reason))
    };
    for (name, step, kind) in [
        (
            "seven days",
            Step::UnifiedRejected {
                window: "seven_day".into(),
                resets_at,
            },
            FailureKind::RateLimit,
        ),
        (
            "401",
            Step::status(
                401,
                &json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
            ),
            FailureKind::Auth,
        ),
        (
            "529",
            Step::status(529, &json!({"type": "error", "error": overloaded})),
            FailureKind::Overloaded,
        ),
        (
            "404",
            Step::status(
                404,
                &json!({"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}),
            ),
            FailureKind::BadRequest,
        ),
        (
            "error event",
            Step::StreamError {
                text: "a b".into(),
                deltas: 2,
                after: 1,
                error: overloaded.clone(),
            },
            FailureKind::Overloaded,
        ),
        (
            "error under 200",
            Step::status(200, &json!({"type": "error", "error": overloaded})),
            FailureKind::Overloaded,
        ),
        (
            "connection cut",
            Step::cut_after("one two three", 2, Cut::Abrupt),
            FailureKind::Transport,
        ),
        (
            "clean end without message_stop",
            Step::cut_after("one two three", 2, Cut::CleanEof),
            FailureKind::Transport,
        ),
        (
            "empty body",
            Step::status_with(200, &[], ""),
            FailureKind::Transport,
        ),
        (
            "html",
            Step::status_with(
                200,
                &[("content-type", "text/html")],
                "<html><title>Welcome to the hotel</title>",
            ),
            FailureKind::Transport,
        ),
        (
            "redirect",
            Step::status_with(302, &[("location", "/elsewhere")], ""),
            FailureKind::Transport,
        ),
        ("refusal", ended("refusal"), FailureKind::ContentFilter),
        (
            "window full",
            ended("model_context_window_exceeded"),
            FailureKind::ContextOverflow,
        ),
    ] {
        server.enqueue(step);
        let failure = failure(&provider).await;
        assert_eq!(failure.kind, kind, "{name}: {}", failure.detail);
    }
    assert_eq!(server.count(), 13, "no retry, no redirect followed");
}

#[tokio::test]
async fn nobody_at_the_address_is_the_network_and_says_no_secret() {
    let gone = Loopback::start(Wire::Anthropic).await.unwrap();
    let provider = at(gone.base_url());
    drop(gone);
    let failure = failure(&provider).await;
    // The port may be closed or just closing.
    assert_eq!(failure.kind, FailureKind::Transport, "{}", failure.detail);
    assert!(!failure.detail.contains(KEY));
}

#[tokio::test]
async fn silence_and_deadline_are_kept_and_the_connection_let_go() {
    let (server, provider) = upstream().await;
    for (n, (step, limits)) in [
        (Step::hang(), bounds(60_000, 30)),
        (Step::stall_after("one two", 1), bounds(60_000, 30)),
        (Step::hang(), bounds(30, 60_000)),
    ]
    .into_iter()
    .enumerate()
    {
        server.enqueue(step);
        let (mut asked, fire) = request("x");
        asked.limits = limits;
        let handle = provider.start(asked);
        fire.send(()).unwrap();
        let AttemptEnd::Failed(failure) = handle.end.await.unwrap() else {
            panic!()
        };
        assert_eq!(failure.kind, FailureKind::Timeout);
        server.hangups_reach(n + 1).await;
    }
}

#[tokio::test]
async fn a_stop_ends_it_at_once_and_a_dropped_handle_too() {
    let (server, provider) = upstream().await;
    server.script([Step::stall_after("one two", 1), Step::hang()]);
    let (asked, fire) = request("x");
    let mut handle = provider.start(asked);
    fire.send(()).unwrap();
    while !matches!(handle.events.recv().await, Some(Event::Text { .. })) {}
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    server.hangups_reach(1).await;

    let (asked, fire) = request("x");
    let handle = provider.start(asked);
    fire.send(()).unwrap();
    server.requests_reach(2).await;
    drop(handle);
    server.hangups_reach(2).await;
}

#[tokio::test]
async fn nothing_is_sent_before_go() {
    let (server, provider) = upstream().await;
    let (asked, fire) = request("x");
    let handle = provider.start(asked);
    drop(fire);
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn health_spends_nothing_and_says_what_is_wrong() {
    let (server, provider) = upstream().await;
    assert_eq!(provider.health().await, Health::Ready { version: None });
    assert!(matches!(
        at("nonsense".into()).health().await,
        Health::Broken { .. }
    ));
    assert_eq!(
        failure(&at("nonsense".into())).await.kind,
        FailureKind::BadRequest
    );
    assert_eq!(server.count(), 0);
}
