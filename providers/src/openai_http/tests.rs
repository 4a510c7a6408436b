//! chat/completions over real sockets.

use gateway_core::turn::AttemptEnd;
use gateway_core::usage::WindowScope;

use super::*;
use crate::http::testing::{NOW, attempt, clock, failure, limits as bounds, request, text};
use crate::loopback::{Cut, Loopback, Step, Wire};

async fn upstream(key: Option<&str>) -> (Loopback, OpenAiHttp) {
    crate::install_tls();
    let server = Loopback::start(Wire::OpenAi).await.unwrap();
    let provider = OpenAiHttp::new(OpenAiSettings {
        subscription: "fireworks".into(),
        base_url: format!("{}/v1/", server.base_url()),
        key: key.map(SecretString::from),
        max_tokens: None,
        client: crate::http::client().unwrap(),
        now: clock(),
    });
    (server, provider)
}

fn sse(body: &str) -> Step {
    Step::status_with(200, &[("content-type", "text/event-stream")], body)
}

#[tokio::test]
async fn the_request_is_what_the_api_wants() {
    let (server, provider) = upstream(Some("sk-secret")).await;
    attempt(&provider).await;
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-secret"));
    insta::assert_json_snapshot!(sent.body, @r#"
    {
      "model": "some/model",
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
      ],
      "stream": true,
      "stream_options": {
        "include_usage": true
      }
    }
    "#);
    let (local, provider) = upstream(None).await;
    attempt(&provider).await;
    assert_eq!(local.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn captured_and_played_streams_become_text_and_usage() {
    let (server, provider) = upstream(None).await;
    server.enqueue(sse(include_str!(
        "../../captures/http/chat-completions-text.sse"
    )));
    let (events, end) = attempt(&provider).await;
    let usage = TokenUsage {
        input: Some(176),
        output: Some(42),
        cache_read: Some(1024),
        cache_write: None,
    };
    assert_eq!(text(&events), "Hello from the mock.");
    assert_eq!(
        end,
        AttemptEnd::Answered(Answer {
            text: "Hello from the mock.".into(),
            usage
        })
    );

    // Usage in a chunk of its own, without choices.
    let (events, end) = attempt(&provider).await;
    assert_eq!(text(&events), "Hello from the loopback server.");
    let AttemptEnd::Answered(answer) = end else {
        panic!("{end:?}")
    };
    assert_eq!(answer.usage.output, Some(8));

    // An endpoint that answers whole although a stream was asked for.
    server.enqueue(Step::status(
        200,
        &json!({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}),
    ));
    assert_eq!(text(&attempt(&provider).await.0), "whole");
}

#[tokio::test]
async fn finish_reason_or_done_is_enough_and_thinking_is_activity() {
    let (server, provider) = upstream(None).await;
    server.script([
        sse(": OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n"),
        sse("data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n"),
    ]);
    let (events, end) = attempt(&provider).await;
    assert!(events.contains(&Event::Activity {
        what: "thinking".into()
    }));
    assert!(matches!(end, AttemptEnd::Answered(answer) if answer.text == "a"));
    assert!(
        matches!(attempt(&provider).await.1, AttemptEnd::Answered(answer) if answer.text == "b")
    );
}

#[tokio::test]
async fn every_bad_end_is_a_failure_of_its_kind() {
    let (server, provider) = upstream(Some("sk-secret")).await;
    let error =
        json!({"code": "server_is_overloaded", "message": "Our servers are currently overloaded."});
    let resets_at = Timestamp::from_second(NOW + 7_200).unwrap();
    let steps = [
        (
            "usage limit",
            Step::UnifiedRejected {
                window: "five_hour".into(),
                resets_at,
            },
            FailureKind::RateLimit,
        ),
        (
            "402",
            Step::status(
                402,
                &json!({"error": {"message": "Insufficient credits", "code": 402}}),
            ),
            FailureKind::Billing,
        ),
        (
            "401",
            Step::status(401, &json!({"error": {"message": "nope", "code": 401}})),
            FailureKind::Auth,
        ),
        (
            "500",
            Step::status(500, &json!({"error": {"message": "boom"}})),
            FailureKind::Overloaded,
        ),
        (
            "error in the stream",
            Step::StreamError {
                text: "a b".into(),
                deltas: 2,
                after: 1,
                error: error.clone(),
            },
            FailureKind::Overloaded,
        ),
        (
            "error under 200",
            Step::status(200, &json!({"error": error})),
            FailureKind::Overloaded,
        ),
        (
            "bare error under 200",
            Step::status(
                200,
                &json!({"code": "429", "message": "Error from provider (X): Too many requests"}),
            ),
            FailureKind::UpstreamRateLimit,
        ),
        (
            "connection cut",
            Step::cut_after("one two three", 2, Cut::Abrupt),
            FailureKind::Transport,
        ),
        (
            "clean end, nothing finished",
            Step::cut_after("one two three", 2, Cut::CleanEof),
            FailureKind::Transport,
        ),
        (
            "empty body",
            Step::status_with(200, &[], ""),
            FailureKind::Transport,
        ),
        (
            "empty stream",
            sse("data: [DONE]\n\n"),
            FailureKind::Transport,
        ),
        (
            "html",
            Step::status_with(200, &[("content-type", "text/html")], "<html>login"),
            FailureKind::Transport,
        ),
        (
            "filter",
            sse(
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"content_filter\"}]}\n\n",
            ),
            FailureKind::ContentFilter,
        ),
        (
            "refusal",
            sse(
                "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n",
            ),
            FailureKind::ContentFilter,
        ),
    ];
    let count = steps.len();
    for (name, step, kind) in steps {
        server.enqueue(step);
        let failure = failure(&provider).await;
        assert_eq!(failure.kind, kind, "{name}: {}", failure.detail);
        let stated = (name == "usage limit").then_some(resets_at);
        assert_eq!(failure.retry_at, stated, "{name}");
    }
    assert_eq!(server.count(), count, "no retry");
}

#[tokio::test]
async fn budget_headers_of_a_429_are_its_reset_and_no_reading() {
    let (server, provider) = upstream(None).await;
    let headers = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "20s"),
    ];
    let body = r#"{"error":{"message":"Rate limit reached: 3 requests per minute","code":"rate_limit_exceeded"}}"#;
    server.enqueue(Step::status_with(429, &headers, body));
    let (events, end) = attempt(&provider).await;
    assert_eq!(events, []);
    let AttemptEnd::Failed(failure) = end else {
        panic!("{end:?}")
    };
    assert_eq!(
        (failure.kind, failure.scope),
        (FailureKind::RateLimit, FailureScope::Burst)
    );
    assert_eq!(failure.retry_at.map(|at| at.as_second()), Some(NOW + 20));
}

#[tokio::test]
async fn headers_that_speak_of_a_quota_are_readings() {
    let (server, provider) = upstream(None).await;
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    server.enqueue(Step::Answer {
        text: "ok".into(),
        deltas: 1,
        headers: vec![
            header("x-codex-primary-used-percent", "42.5"),
            header("x-codex-primary-window-minutes", "10080"),
            header("x-ratelimit-limit-requests-day", "100"),
            header("x-ratelimit-remaining-requests-day", "0"),
            header("x-ratelimit-reset-requests-day", "3600"),
            header("x-ratelimit-remaining-tokens-minute", "0"),
        ],
    });
    let (events, _) = attempt(&provider).await;
    let limits: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Limit(reading) => Some((
                reading.window.as_str(),
                reading.used_pct,
                reading.scope.clone(),
            )),
            _ => None,
        })
        .collect();
    let asked = WindowScope::Model("some/model".into());
    assert_eq!(
        limits,
        [
            ("seven_day", Some(42.5), Some(WindowScope::Account)),
            ("ratelimit_requests_day", Some(100.0), Some(asked)),
        ]
    );
}

#[tokio::test]
async fn silence_and_stop_let_the_connection_go() {
    let (server, provider) = upstream(None).await;
    server.script([Step::stall_after("one two", 1), Step::hang()]);
    let (mut asked, fire) = request("x");
    asked.limits = bounds(60_000, 30);
    let handle = provider.start(asked);
    fire.send(()).unwrap();
    assert!(
        matches!(handle.end.await.unwrap(), AttemptEnd::Failed(failure) if failure.kind == FailureKind::Timeout)
    );
    server.hangups_reach(1).await;

    let (asked, fire) = request("x");
    let handle = provider.start(asked);
    fire.send(()).unwrap();
    server.requests_reach(2).await;
    handle.stop.stop();
    assert_eq!(handle.end.await.unwrap(), AttemptEnd::Stopped);
    server.hangups_reach(2).await;
}

#[tokio::test]
async fn health_spends_nothing_and_says_what_is_wrong() {
    let (server, provider) = upstream(None).await;
    assert_eq!(provider.health().await, Health::Ready { version: None });
    let (_, empty) = upstream(Some(" ")).await;
    assert!(matches!(empty.health().await, Health::Broken { .. }));
    assert_eq!(server.count(), 0);
}
