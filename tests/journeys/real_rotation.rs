//! The real Claude Code at a full session: its API says that the prompt is too long, to its own compaction too. The session
//! is retired once, its transcript is left as it is, and the next requests go straight to the successor.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gateway_core::ids::{ProfileId, SessionKey, SubscriptionId};
use gateway_host::store::Lane;
use providers::loopback::{Loopback, RecordedRequest, Step, Wire};
use support::World;

use crate::real_claude::claude;

const TOO_LONG: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;

fn session(request: &RecordedRequest) -> String {
    request
        .header("x-claude-code-session-id")
        .unwrap_or_default()
        .to_owned()
}

/// The transcript of a session below the login's folder.
fn transcript(root: &Path, session: &str) -> PathBuf {
    let projects = std::fs::read_dir(root.join("claude/projects")).expect("transcripts");
    let mut files =
        projects.map(|project| project.unwrap().path().join(format!("{session}.jsonl")));
    files
        .find(|file| file.is_file())
        .expect("the transcript is on disk")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_session_of_the_real_program_is_retired_once() {
    let Some(binary) = crate::real::claude() else {
        return;
    };
    let api = Loopback::start(Wire::Anthropic).await.expect("a port");
    let url = api.base_url();
    let mut world = World::builder()
        .chain(&["claude/sonnet"])
        .served_by("claude", move |root, clock| {
            std::fs::create_dir_all(root.join("work")).expect("a folder");
            Arc::new(claude(binary, root, url, clock))
        })
        .workdir("work")
        .limits(Duration::from_secs(100), Duration::from_secs(60))
        .build()
        .await;
    api.otherwise(|_| Step::answer("The word is heron."));
    world.say("Pick a word and keep it in mind.").await;
    let first = session(api.requests().first().expect("a request"));

    let full = Arc::new(AtomicBool::new(true));
    let (is_full, of) = (Arc::clone(&full), first.clone());
    api.otherwise(
        move |request| match is_full.load(Ordering::SeqCst) && session(request) == of {
            true => Step::Status {
                code: 400,
                headers: Vec::new(),
                body: TOO_LONG.to_owned(),
            },
            false => Step::answer("It was heron."),
        },
    );
    let rotated = world.say("Which word was it?").await;
    assert_eq!(rotated.answer.as_deref(), Some("It was heron."));
    assert_eq!((rotated.times_done, rotated.notices.len()), (1, 0));
    let requests = api.requests();
    let successor = session(requests.last().expect("a request"));
    assert_ne!(successor, first);
    let told = requests.last().expect("a request").prompt();
    assert!(
        told.contains("The word is heron.") && told.contains("Which word was it?"),
        "{told}"
    );

    let old = transcript(world.home.path(), &first);
    let before = std::fs::read(&old).expect("a transcript");
    world.restart().await;
    let asked = api.count();
    let next = world.say("And how is it spelt?").await;
    assert_eq!(next.answer.as_deref(), Some("It was heron."));
    let requests = api.requests();
    let after: Vec<String> = requests.iter().skip(asked).map(session).collect();
    assert!(
        after.iter().all(|session| *session == successor),
        "{after:?}"
    );
    assert_eq!(
        std::fs::read(&old).expect("a transcript"),
        before,
        "the old transcript is left alone"
    );
    let lane = Lane {
        profile: ProfileId::new("default"),
        session: SessionKey::new("agent:main:recording:chat"),
    };
    let row = world.store.session(&lane, world.now()).await.unwrap();
    let base = gateway_host::turn::rotation::base(&row.conversation).to_string();
    let retired = world.store.retired_sessions(&base).await.unwrap();
    assert_eq!(retired.len(), 1);
    assert_eq!(retired[0].session.as_str(), first);
    assert_eq!(retired[0].subscription, SubscriptionId::new("claude"));
}
