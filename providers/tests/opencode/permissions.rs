//! What the agent may do, tried by a model that wants out.

use gateway_core::event::CallOutcome;
use providers::Permissions;
use serde_json::{Value, json};

use super::world::World;
use crate::attempt::Turn;
use crate::chat::Reply;

/// Every way out of the working directory a model might try.
fn attempts(world: &World) -> Vec<(&'static str, Value)> {
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    vec![
        ("read", json!({"filePath": path("outside.txt")})),
        ("read", json!({"filePath": "../outside.txt"})),
        ("read", json!({"filePath": path("work/link.txt")})),
        ("read", json!({"filePath": path("work/folder/o.txt")})),
        ("read", json!({"filePath": path("work/folder")})),
        ("read", json!({"filePath": path("work/gateway/baton.db")})),
        ("read", json!({"filePath": path("login/secret.txt")})),
        ("read", json!({"filePath": path("home/x.txt")})),
        ("read", json!({"filePath": "/proc/self/environ"})),
        (
            "grep",
            json!({"pattern": "canary", "path": path("outside")}),
        ),
        (
            "grep",
            json!({"pattern": "canary", "path": path("work/folder")}),
        ),
        (
            "grep",
            json!({"pattern": "canary", "path": path("work/link.txt")}),
        ),
        ("grep", json!({"pattern": "canary.database"})),
        ("glob", json!({"pattern": "**/*", "path": path("login")})),
        (
            "bash",
            json!({"command": "env; cat ../outside.txt", "description": "look"}),
        ),
        (
            "webfetch",
            json!({"url": "http://127.0.0.1:9/", "format": "text"}),
        ),
        (
            "task",
            json!({"description": "d", "prompt": "p", "subagent_type": "general"}),
        ),
        ("skill", json!({"name": "x"})),
    ]
}

fn writes(world: &World) -> Vec<(&'static str, Value)> {
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    vec![
        (
            "write",
            json!({"filePath": path("new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/dangling.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/folder/new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/gateway/new.txt"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/.git/hooks/pre-commit"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/.opencode/plugin/x.js"), "content": "x"}),
        ),
        (
            "write",
            json!({"filePath": path("work/opencode.json"), "content": "x"}),
        ),
        (
            "edit",
            json!({"filePath": path("outside.txt"), "oldString": "canary", "newString": "x"}),
        ),
        (
            "edit",
            json!({"filePath": path("work/link.txt"), "oldString": "canary", "newString": "x"}),
        ),
    ]
}

async fn nothing_gets_through(
    world: &World,
    level: Permissions,
    model: &str,
    calls: Vec<(&'static str, Value)>,
) -> Turn {
    world.mock.clear();
    // One call per request: the third equal tool in a row must not end the turn either.
    let count = calls.len();
    world
        .mock
        .reply(calls.into_iter().map(|call| Reply::Tools(vec![call])));
    world.mock.reply([Reply::Text(vec!["Nothing."])]);
    let turn = world
        .turn("try", |request| {
            request.permissions = level;
            request.model = model.into();
        })
        .await;
    assert_eq!(turn.answer(), "Nothing.", "{level:?}");
    let outcomes = turn.calls();
    assert_eq!(outcomes.len(), count, "{outcomes:?}");
    for (name, outcome, text) in &outcomes {
        assert!(
            matches!(outcome, CallOutcome::Denied | CallOutcome::Failed),
            "{level:?} {name} {outcome:?} {text}"
        );
    }
    world.assert_no_canary();
    turn
}

fn offered(world: &World) -> Vec<String> {
    let requests = world.mock.requests();
    let tools = requests[0]["tools"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_permissions_hold() {
    let Some(world) = World::new().await else {
        return;
    };
    let all = || [attempts(&world), writes(&world)].concat();

    nothing_gets_through(&world, Permissions::None, "mock/mock-model", all()).await;
    assert_eq!(offered(&world), Vec::<String>::new());

    nothing_gets_through(&world, Permissions::ReadOnly, "mock/mock-model", all()).await;
    assert_eq!(
        offered(&world),
        ["read", "todowrite"],
        "links lead out: nothing is searched"
    );

    nothing_gets_through(&world, Permissions::Edit, "mock/mock-model", all()).await;
    assert_eq!(offered(&world), ["edit", "read", "todowrite", "write"]);

    // The other editing tool, which this family of models gets instead.
    let patch = |file: &str| {
        let text = format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
        ("apply_patch", json!({"patchText": text}))
    };
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    let patches = vec![
        patch(&path("new.txt")),
        patch("../new.txt"),
        patch("folder/new.txt"),
        patch("dangling.txt"),
        patch("gateway/new.txt"),
        patch(".git/hooks/pre-commit"),
    ];
    nothing_gets_through(&world, Permissions::Edit, "mock/gpt-5-mock", patches).await;
    assert_eq!(offered(&world), ["apply_patch", "read", "todowrite"]);
    for made in [
        "new.txt",
        "nowhere.txt",
        "outside/new.txt",
        "work/gateway/new.txt",
        "work/.git",
    ] {
        assert!(!world.path(made).exists(), "{made}");
    }
    assert_eq!(
        std::fs::read_to_string(world.path("outside.txt")).unwrap(),
        "canary-outside"
    );

    // What is allowed works, also below a repository and in a directory without links.
    world.write("plain/sub/in.txt", "inside words");
    world.write("plain/above.txt", "canary-above");
    std::fs::create_dir_all(world.path("plain/.git")).unwrap();
    world.write("plain/.git/HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(world.path("plain/.git").join(folder)).unwrap();
    }
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![("read", json!({"filePath": "in.txt"}))]),
        Reply::Tools(vec![("read", json!({"filePath": path("plain/above.txt")}))]),
        Reply::Tools(vec![(
            "grep",
            json!({"pattern": "canary", "path": path("plain")}),
        )]),
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/sub/new.txt"), "content": "written"}),
        )]),
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/new.txt"), "content": "x"}),
        )]),
        Reply::Text(vec!["Done."]),
    ]);
    let edited = world
        .turn("edit", |request| {
            request.permissions = Permissions::Edit;
            request.workdir = world.path("plain/sub");
        })
        .await;
    assert_eq!(edited.answer(), "Done.");
    let outcomes: Vec<CallOutcome> = edited
        .calls()
        .iter()
        .map(|(_, outcome, _)| *outcome)
        .collect();
    assert_eq!(outcomes[0], CallOutcome::Completed);
    assert_eq!(outcomes[1], CallOutcome::Denied, "{:?}", edited.calls());
    assert_eq!(outcomes[3], CallOutcome::Completed);
    assert_eq!(outcomes[4], CallOutcome::Denied);
    assert!(world.path("plain/sub/new.txt").exists() && !world.path("plain/new.txt").exists());
    world.assert_no_canary();

    // The same session at a lower level has lost what it had.
    let session = edited.session();
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![(
            "write",
            json!({"filePath": path("plain/sub/more.txt"), "content": "x"}),
        )]),
        Reply::Text(vec!["No."]),
    ]);
    let lowered = world
        .turn("lower", |request| {
            request.session = Some(session.clone());
            request.workdir = world.path("plain/sub");
        })
        .await;
    assert_eq!(lowered.answer(), "No.");
    assert_eq!(lowered.session(), session);
    assert!(!world.path("plain/sub/more.txt").exists());
    assert_eq!(offered(&world), Vec::<String>::new());

    // Without links or hidden folders a search works.
    world.write("clean/a.txt", "needle");
    world.mock.clear();
    world.mock.reply([
        Reply::Tools(vec![
            ("grep", json!({"pattern": "needle"})),
            ("glob", json!({"pattern": "*.txt"})),
        ]),
        Reply::Tools(vec![(
            "grep",
            json!({"pattern": "canary", "path": path("outside")}),
        )]),
        Reply::Text(vec!["Found."]),
    ]);
    let searched = world
        .turn("search", |request| {
            request.permissions = Permissions::ReadOnly;
            request.workdir = world.path("clean");
        })
        .await;
    assert_eq!(searched.answer(), "Found.");
    let outcomes = searched.calls();
    assert!(
        outcomes[0].2.contains("a.txt") && outcomes[1].2.contains("a.txt"),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[2].1, CallOutcome::Denied);
    world.assert_no_canary();
}
