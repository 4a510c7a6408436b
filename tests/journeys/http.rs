//! Programs over the OpenAI API: one conversation is one session, a full one is retired, and errors have codes.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::event::TokenUsage;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_host::http::{Listen, Options, Server};
use providers::scripted::{Act, SeenAttempt};
use serde_json::{Value, json};
use support::{World, says};
use tokio::sync::Notify;

pub(crate) const TOKEN: &str = "a token of this test";

/// A program that talks to the gateway.
pub(crate) struct Program {
    pub(crate) server: Server,
    client: reqwest::Client,
}

impl Program {
    pub(crate) async fn of(world: &World, options: Options) -> Self {
        let listen = Listen::Tcp {
            address: "127.0.0.1:0".parse().unwrap(),
            token: TOKEN.into(),
        };
        Self {
            server: world.serve(listen, options).await,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address().unwrap())
    }

    pub(crate) fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        let request = self.client.post(self.url("/v1/chat/completions"));
        request.bearer_auth(TOKEN).body(body.to_string())
    }

    pub(crate) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(self.url(path)).bearer_auth(TOKEN)
    }

    /// Asks and returns status, headers and object.
    async fn ask(&self, body: &Value) -> Reply {
        reply(self.post(body)).await
    }
}

struct Reply {
    status: u16,
    headers: reqwest::header::HeaderMap,
    object: Value,
}

impl Reply {
    fn text(&self) -> &str {
        self.object["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default()
    }

    fn code(&self) -> &str {
        self.object["error"]["code"].as_str().unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.unwrap();
    Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        object: serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    }
}

fn chat(messages: &[(&str, &str)]) -> Value {
    let message = |(role, content): &(&str, &str)| json!({ "role": role, "content": content });
    json!({ "messages": messages.iter().map(message).collect::<Vec<_>>() })
}

fn named(user: &str, messages: &[(&str, &str)]) -> Value {
    let mut body = chat(messages);
    body["user"] = json!(user);
    body
}

fn overflow() -> Vec<Act> {
    vec![Act::Fail(Failure::new(
        FailureKind::ContextOverflow,
        FailureScope::Session,
        "Prompt is too long",
    ))]
}

fn last(world: &World) -> SeenAttempt {
    world.sub("one").attempts().pop().unwrap()
}

const S: (&str, &str) = ("system", "you are a cat");

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_of_thirty_turns_is_one_session_and_each_turn_sends_what_is_new() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    let mut transcript = vec![("system".to_owned(), "you are a cat".to_owned())];
    let mut titles = Vec::new();
    for n in 0..30 {
        transcript.push(("user".to_owned(), format!("question {n}")));
        world.sub("one").play(says(&format!("answer {n}")));
        let messages: Vec<(&str, &str)> = transcript
            .iter()
            .map(|(role, text)| (role.as_str(), text.as_str()))
            .collect();
        let reply = program.ask(&chat(&messages)).await;
        assert_eq!(
            (reply.status, reply.text()),
            (200, format!("answer {n}").as_str())
        );
        titles.push(reply.header("x-baton-session").unwrap().to_owned());
        transcript.push(("assistant".to_owned(), format!("answer {n}")));
    }
    titles.dedup();
    assert_eq!(titles.len(), 1, "{titles:?}");
    let attempts = world.sub("one").attempts();
    assert_eq!(
        attempts[0].prompt,
        "[system]\nyou are a cat\n\n[user]\nquestion 0"
    );
    assert!(attempts[0].session.is_none());
    let sessions: std::collections::HashSet<_> = attempts[1..]
        .iter()
        .map(|attempt| attempt.session.clone())
        .collect();
    assert_eq!(sessions.len(), 1);
    for (n, attempt) in attempts.iter().enumerate().skip(1) {
        assert_eq!(attempt.prompt, format!("question {n}"));
        assert_eq!(attempt.unseen, 0);
    }
    program.server.stop().await;
}

/// Cases 25 and 53 over HTTP: persona and recap reach the successor, and the next request goes straight to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_session_is_rotated_visibly_and_keeps_persona_and_thread() {
    let mut world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    world.sub("one").play(says("meow"));
    let first = program.ask(&named("pet", &[S, ("user", "poke")])).await;
    assert_eq!(
        (
            first.header("x-baton-rotated"),
            first.header("x-baton-opened")
        ),
        (Some("false"), Some("first"))
    );
    let title = first.header("x-baton-session").unwrap().to_owned();
    assert!(title.starts_with("baton-u-"), "{title}");

    world.sub("one").play(overflow());
    world.sub("one").play(says("purr"));
    let rotated = program.ask(&named("pet", &[S, ("user", "pat")])).await;
    assert_eq!((rotated.status, rotated.text()), (200, "purr"));
    assert_eq!(
        rotated.header("x-baton-session").unwrap(),
        format!("{title}-g1")
    );
    assert_eq!(
        (
            rotated.header("x-baton-rotated"),
            rotated.header("x-baton-generation")
        ),
        (Some("true"), Some("1"))
    );
    assert_eq!(rotated.object["baton"]["rotated"], true);
    let told = last(&world).prompt;
    assert!(told.starts_with("[system]\nyou are a cat\n\n"), "{told}");
    assert!(told.contains("[user]\npoke\n\n[assistant]\nmeow"), "{told}");
    assert!(told.ends_with("[user]\npat"), "{told}");

    program.server.stop().await;
    world.restart().await;
    let program = Program::of(&world, Options::default()).await;
    let before = world.sub("one").attempts().len();
    let next = program.ask(&named("pet", &[S, ("user", "poke")])).await;
    assert_eq!(
        next.header("x-baton-session").unwrap(),
        format!("{title}-g1")
    );
    assert_eq!(next.header("x-baton-rotated"), Some("false"));
    assert_eq!(world.sub("one").attempts().len(), before + 1);
    assert_eq!(last(&world).prompt, "poke");
    let metrics = program
        .get("/metrics")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        metrics.contains("baton_http_requests_total{status=\"200\"} 1"),
        "{metrics}"
    );
    program.server.stop().await;
}

/// Cases 26 and 66: three different 413s, and only a full session moves the generation.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_anywhere_is_told_apart_from_a_full_session() {
    let world = World::builder().plan("one").build().await;
    let options = Options {
        body_max: 4096,
        ..Options::default()
    };
    let program = Program::of(&world, options).await;
    for _ in 0..2 {
        world.sub("one").play(overflow());
        let reply = program.ask(&named("pet", &[S, ("user", "too much")])).await;
        assert_eq!(
            (reply.status, reply.code()),
            (413, "context_length_exceeded")
        );
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
    assert_eq!(world.sub("one").attempts().len(), 2);
    let body = program
        .ask(&named("pet", &[("user", &"x".repeat(5000))]))
        .await;
    assert_eq!((body.status, body.code()), (413, "request_too_large"));
    assert_eq!(world.sub("one").attempts().len(), 2);
    program.server.stop().await;
}

/// Cases 12, 42 and 43.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_changed_reaches_the_model() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    world.sub("one").play(says("a1"));
    program.ask(&named("ann", &[S, ("user", "q1")])).await;

    // Two messages at once go on in the session.
    world.sub("one").play(says("a2"));
    program
        .ask(&named(
            "ann",
            &[
                S,
                ("user", "q1"),
                ("assistant", "a1"),
                ("user", "q2"),
                ("user", "q3"),
            ],
        ))
        .await;
    let both = last(&world);
    assert_eq!(both.prompt, "[user]\nq2\n\n[user]\nq3");
    assert!(both.session.is_some());

    // An edited answer opens a session that is told everything.
    world.sub("one").play(says("a3"));
    let edited = [S, ("user", "q1"), ("assistant", "edited"), ("user", "q4")];
    let reply = program.ask(&named("ann", &edited)).await;
    assert_eq!(reply.header("x-baton-opened"), Some("diverged"));
    assert!(reply.header("x-baton-session").unwrap().ends_with("-g1"));
    let told = last(&world);
    assert!(told.session.is_none() && told.history.is_empty());
    assert_eq!(
        told.prompt,
        "[system]\nyou are a cat\n\n[user]\nq1\n\n[assistant]\nedited\n\n[user]\nq4"
    );

    // So do other instructions.
    world.sub("one").play(says("a4"));
    let dog = [
        ("system", "you are a dog"),
        ("user", "q1"),
        ("assistant", "edited"),
        ("user", "q4"),
        ("assistant", "a3"),
        ("user", "q5"),
    ];
    let reply = program.ask(&named("ann", &dog)).await;
    assert_eq!(reply.header("x-baton-opened"), Some("instructions_changed"));
    assert!(reply.header("x-baton-session").unwrap().ends_with("-g2"));
    assert!(
        last(&world)
            .prompt
            .starts_with("[system]\nyou are a dog\n\n[user]\nq1")
    );
    program.server.stop().await;
}

/// Cases 36, 39 and 40.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_into_the_session_of_a_named_caller() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    let mut titles = std::collections::HashSet::new();
    for user in [Some("pet"), Some(" pet "), Some("pet-g1"), None] {
        world.sub("one").play(says("meow"));
        let mut body = chat(&[S, ("user", "poke")]);
        body["user"] = json!(user);
        let reply = program.ask(&body).await;
        titles.insert(reply.header("x-baton-session").unwrap().to_owned());
    }
    assert_eq!(titles.len(), 4, "{titles:?}");
    // An anonymous continuation of what a named caller said is a conversation of its own.
    world.sub("one").play(says("meow"));
    program
        .ask(&named(
            "ann",
            &[("user", "secret"), ("assistant", "x"), ("user", "more")],
        ))
        .await;
    let reply = program
        .ask(&chat(&[
            ("user", "secret"),
            ("assistant", "x"),
            ("user", "more"),
            ("assistant", "meow"),
            ("user", "and?"),
        ]))
        .await;
    assert_eq!(reply.header("x-baton-opened"), Some("first"));
    assert!(last(&world).session.is_none());
    program.server.stop().await;
}

/// Case 28: requests that meet one full session, one after the other as the conversation demands, make one successor.
#[tokio::test(flavor = "multi_thread")]
async fn eight_requests_at_one_full_session_make_one_successor() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    world.sub("one").play(says("meow"));
    let first = program.ask(&named("pet", &[S, ("user", "poke")])).await;
    let base = first.header("x-baton-session").unwrap().to_owned();
    let full = world.sub("one").clone();
    let old = base.clone();
    full.otherwise(move |attempt| match attempt.title == old {
        true => overflow(),
        false => says("purr"),
    });
    let asked: Vec<Value> = (0..8)
        .map(|n| named("pet", &[S, ("user", &format!("pat {n}"))]))
        .collect();
    let replies = futures_util::future::join_all(asked.iter().map(|body| program.ask(body))).await;
    for reply in &replies {
        assert_eq!(
            (reply.status, reply.header("x-baton-session").unwrap()),
            (200, format!("{base}-g1").as_str())
        );
    }
    let rotated = replies
        .iter()
        .filter(|reply| reply.header("x-baton-rotated") == Some("true"));
    assert_eq!(rotated.count(), 1);
    let attempts = world.sub("one").attempts();
    assert_eq!(
        attempts
            .iter()
            .filter(|attempt| attempt.session.is_none())
            .count(),
        2,
        "g0 and g1 were opened once each"
    );
    program.server.stop().await;
}

/// Case 35: equal requests that name themselves are one turn; without a name they are not.
#[tokio::test(flavor = "multi_thread")]
async fn equal_retries_join_the_running_turn() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    let go_on = Arc::new(Notify::new());
    world.sub("one").play([
        Act::Wait(Arc::clone(&go_on)),
        Act::text("once"),
        Act::Answer,
    ]);
    let body = chat(&[("user", "q")]);
    let first = reply(program.post(&body).header("idempotency-key", "k1"));
    let again = async {
        world.sub("one").prompts_reach(1).await;
        let again = reply(program.post(&body).header("idempotency-key", "k1"));
        tokio::pin!(again);
        // It has been sent and waits; then the turn goes on for both.
        let waited = tokio::time::timeout(Duration::from_millis(300), again.as_mut()).await;
        assert!(waited.is_err(), "the turn cannot have ended");
        go_on.notify_one();
        again.await
    };
    let (first, again) = tokio::join!(first, again);
    assert_eq!((first.text(), again.text()), ("once", "once"));
    assert_eq!(first.object["id"], again.object["id"]);
    assert_eq!(world.sub("one").attempts().len(), 1);
    program.server.stop().await;
}

/// Case 60: a client that goes away changes nothing: its turn ends, and the next request finds it recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_leaves_its_turn_to_end() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    let go_on = Arc::new(Notify::new());
    world
        .sub("one")
        .play([Act::Wait(Arc::clone(&go_on)), Act::text("a1"), Act::Answer]);
    let body = named("ann", &[("user", "q1")]);
    {
        let gone = program.post(&body).send();
        tokio::pin!(gone);
        tokio::select! {
            _ = gone.as_mut() => panic!("the turn waits"),
            () = world.sub("one").prompts_reach(1) => {}
        }
    }
    go_on.notify_one();
    world.sub("one").play(says("a2"));
    let next = program
        .ask(&named(
            "ann",
            &[("user", "q1"), ("assistant", "a1"), ("user", "q2")],
        ))
        .await;
    assert_eq!(
        (next.status, next.text(), next.header("x-baton-opened")),
        (200, "a2", None)
    );
    assert_eq!(last(&world).prompt, "q2");
    program.server.stop().await;
}

/// Cases 27 and 58: what is late is stopped, said to be late, and not sent again by an SDK.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_its_budget_is_stopped_and_frees_its_conversation() {
    let world = World::builder().plan("one").build().await;
    let options = Options {
        budget: Duration::from_millis(200),
        ..Options::default()
    };
    let program = Program::of(&world, options).await;
    world.sub("one").play([Act::WaitForStop]);
    let late = program.ask(&named("ann", &[("user", "q1")])).await;
    assert_eq!(
        (late.status, late.code(), late.header("x-should-retry")),
        (504, "timeout", Some("false"))
    );
    program.server.stop().await;
}

/// Case 72: who waits for a conversation takes no turn from others.
#[tokio::test(flavor = "multi_thread")]
async fn two_requests_of_one_conversation_leave_room_for_a_third_of_another() {
    let world = World::builder().plan("one").build().await;
    let options = Options {
        turns: 2,
        ..Options::default()
    };
    let program = Program::of(&world, options).await;
    let go_on = Arc::new(Notify::new());
    world.sub("one").play([
        Act::Wait(Arc::clone(&go_on)),
        Act::text("first"),
        Act::Answer,
    ]);
    let (one, two, other) = (
        named("ann", &[("user", "q1")]),
        named("ann", &[("user", "q2")]),
        named("bob", &[("user", "q3")]),
    );
    let first = program.ask(&one);
    let rest = async {
        world.sub("one").prompts_reach(1).await;
        let second = program.ask(&two);
        let third = async {
            let third = program.ask(&other).await;
            go_on.notify_one();
            third
        };
        tokio::join!(second, third)
    };
    let (first, (second, third)) = tokio::join!(first, rest);
    assert_eq!((first.status, second.status, third.status), (200, 200, 200));
    program.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_turn_taken_is_said_with_a_time_to_come_back() {
    let world = World::builder().plan("one").build().await;
    let options = Options {
        turns: 1,
        queue_wait: Duration::from_millis(100),
        ..Options::default()
    };
    let program = Program::of(&world, options).await;
    let go_on = Arc::new(Notify::new());
    world.sub("one").play([
        Act::Wait(Arc::clone(&go_on)),
        Act::text("first"),
        Act::Answer,
    ]);
    let (one, other) = (
        named("ann", &[("user", "q1")]),
        named("bob", &[("user", "q2")]),
    );
    let busy = async {
        world.sub("one").prompts_reach(1).await;
        let busy = program.ask(&other).await;
        go_on.notify_one();
        busy
    };
    let (first, busy) = tokio::join!(program.ask(&one), busy);
    assert_eq!(first.status, 200);
    assert_eq!((busy.status, busy.code()), (503, "busy"));
    assert_eq!(
        (busy.header("retry-after"), busy.header("x-should-retry")),
        (Some("2"), None)
    );
    program.server.stop().await;
}

/// Cases 64 and 73: a stream says what came when it comes, and counts at the end.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_streams_with_usage_at_its_end() {
    let world = World::builder().plan("one").build().await;
    let program = Program::of(&world, Options::default()).await;
    let go_on = Arc::new(Notify::new());
    let usage = TokenUsage {
        input: Some(10),
        output: Some(2),
        cache_read: Some(90),
        cache_write: None,
    };
    world.sub("one").play([
        Act::text("hel"),
        Act::Wait(Arc::clone(&go_on)),
        Act::text("lo"),
        Act::Usage(usage),
        Act::Answer,
    ]);
    let mut body = chat(&[("user", "q")]);
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let mut response = program.post(&body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut said = String::new();
    while !said.contains("\"hel\"") {
        said.push_str(&String::from_utf8_lossy(
            &response.chunk().await.unwrap().unwrap(),
        ));
    }
    go_on.notify_one(); // what came so far was here before the rest was made
    while let Some(chunk) = response.chunk().await.unwrap() {
        said.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(
        said.contains("\"lo\"")
            && said.contains("\"cached_tokens\":90")
            && said.ends_with("data: [DONE]\n\n"),
        "{said}"
    );
    program.server.stop().await;
}

/// The walk behind a request is the same as anywhere; when nothing is left, it says until when.
#[tokio::test(flavor = "multi_thread")]
async fn a_spent_chain_is_a_429_with_its_reset() {
    let world = World::builder().plan("one").plan("two").build().await;
    let program = Program::of(&world, Options::default()).await;
    let reset = world.now() + jiff::SignedDuration::from_secs(90);
    let limit = |name: &str| {
        let failure =
            Failure::new(FailureKind::RateLimit, FailureScope::Account, name).retry_at(Some(reset));
        [Act::Fail(failure)]
    };
    world.sub("one").play(limit("one"));
    world.sub("two").play(says("from the second"));
    let answered = program.ask(&named("ann", &[("user", "q")])).await;
    assert_eq!(
        (answered.text(), answered.header("x-baton-subscription")),
        ("from the second", Some("two"))
    );
    world.sub("one").play(limit("one"));
    world.sub("two").play(limit("two"));
    let spent = program.ask(&named("bob", &[("user", "q")])).await;
    assert_eq!(
        (spent.status, spent.code(), spent.header("x-should-retry")),
        (429, "rate_limit_exceeded", Some("false"))
    );
    let seconds: u64 = spent.header("retry-after").unwrap().parse().unwrap();
    assert!((80..=90).contains(&seconds), "{seconds}");
    program.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_the_profiles_and_their_routes() {
    let world = World::builder().plan("one").plan("two").build().await;
    let program = Program::of(&world, Options::default()).await;
    let list: Value = serde_json::from_str(
        &program
            .get("/v1/models")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    )
    .unwrap();
    let names: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect();
    assert_eq!(names, ["default", "one/m", "two/m"]);
    for (model, subscription) in [("two/m", "two"), ("default", "one"), ("one/m", "one")] {
        let mut body = named(model, &[("user", "q")]);
        body["model"] = json!(model);
        let reply = program.ask(&body).await;
        assert_eq!(
            (reply.status, reply.header("x-baton-subscription")),
            (200, Some(subscription))
        );
        assert_eq!(
            program
                .get(&format!("/v1/models/{model}"))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
    }
    let mut body = chat(&[("user", "q")]);
    body["model"] = json!("gpt-4o");
    let unknown = program.ask(&body).await;
    assert_eq!(
        (
            unknown.status,
            unknown.code(),
            unknown.object["error"]["param"].as_str()
        ),
        (404, "model_not_found", Some("model"))
    );
    program.server.stop().await;
}
