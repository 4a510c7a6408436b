use std::path::Path;

use super::*;

fn script(body: &str) -> ChildSpec {
    ChildSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), body.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
    }
}

async fn line(child: &mut Child) -> String {
    match child.next_line().await {
        Some(Line::Text(text)) => text,
        other => panic!("expected a line, got {other:?}"),
    }
}

/// Whether the process runs; one that ended but waits for its parent does not.
fn is_alive(pid: &str) -> bool {
    match std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")) {
        Ok(stat) => !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with(['Z', 'X']),
        Err(_) => false,
    }
}

async fn ends(pid: &str) {
    let gone = async {
        while is_alive(pid) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), gone)
        .await
        .expect("the process ends");
}

const QUICK: StopSteps = StopSteps {
    interrupt: Duration::from_millis(100),
    terminate: Duration::from_millis(100),
};

#[tokio::test]
async fn a_missing_program_is_not_found() {
    let mut spec = script("");
    spec.program = "/nonexistent/claude".into();
    assert_eq!(
        Child::start(&spec).await.unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

#[tokio::test]
async fn lines_stdin_stderr_and_exit_code_arrive() {
    let mut child = Child::start(&script("read x; echo got $x; echo bad >&2; exit 3"))
        .await
        .unwrap();
    child.write(b"it\n").await;
    assert_eq!(line(&mut child).await, "got it");
    assert_eq!(child.next_line().await, None);
    let (status, stderr) = child.reap_with_stderr().await;
    assert_eq!((status.unwrap().code(), stderr.trim()), (Some(3), "bad"));
}

#[tokio::test]
async fn dropping_kills_the_grandchild() {
    let mut child = Child::start(&script("sleep 600 & echo $!; wait"))
        .await
        .unwrap();
    let grandchild = line(&mut child).await;
    assert!(is_alive(&grandchild));
    drop(child);
    ends(&grandchild).await;
}

#[tokio::test]
async fn a_program_deaf_to_int_and_term_is_killed_with_its_group() {
    let body =
        "trap '' INT TERM; (trap '' INT TERM; sleep 600) & echo $!; while :; do sleep 600; done";
    let mut child = Child::start(&script(body)).await.unwrap();
    let grandchild = line(&mut child).await;
    let leader = child.id().to_string();
    child.stop(QUICK).await;
    assert!(!is_alive(&leader) && !is_alive(&grandchild));
}

#[tokio::test]
async fn interrupt_reaches_the_program_and_its_own_exit_is_reported() {
    let body = "trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done";
    let mut child = Child::start(&script(body)).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let steps = StopSteps {
        interrupt: Duration::from_secs(20),
        ..QUICK
    };
    assert_eq!(child.stop(steps).await.unwrap().code(), Some(7));
}

#[tokio::test]
async fn a_helper_that_keeps_stdout_open_does_not_hold_the_end_back() {
    let mut child = Child::start(&script("sleep 600 & echo $!; exit 0"))
        .await
        .unwrap();
    let helper = line(&mut child).await;
    assert_eq!(child.next_line().await, None);
    child.reap().await;
    assert!(!is_alive(&helper));
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let mut child = Child::start(&script("env | grep -v '^PWD\\|^_\\|^SHLVL\\|^OLDPWD'"))
        .await
        .unwrap();
    assert_eq!(line(&mut child).await, "PATH=/usr/bin:/bin");
    assert_eq!(child.next_line().await, None);
}

#[tokio::test]
async fn stderr_is_bounded_and_keeps_the_newest() {
    let body = "i=0; while [ $i -lt 3000 ]; do echo line-$i >&2; i=$((i+1)); done";
    let mut child = Child::start(&script(body)).await.unwrap();
    assert_eq!(child.next_line().await, None);
    let (_, stderr) = child.reap_with_stderr().await;
    assert!(
        stderr.len() <= STDERR_KEPT && stderr.ends_with("line-2999\n"),
        "{}",
        stderr.len()
    );
}

#[tokio::test]
async fn an_over_long_line_is_told_once_and_skipped_to_its_end() {
    let input: &[u8] = b"first\n0123456789ABCDEF\r\nlast";
    let mut lines = LineReader::new(input, 8);
    assert_eq!(lines.next().await, Some(Line::Text("first".to_owned())));
    assert_eq!(lines.next().await, Some(Line::TooLong));
    assert_eq!(lines.next().await, Some(Line::Text("last".to_owned())));
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn an_over_long_line_in_pieces_is_told_once() {
    let (mut input, output) = tokio::io::duplex(4);
    let writing = tokio::spawn(async move {
        input
            .write_all(b"0123456789ABCDEF0123456789\nok\n")
            .await
            .unwrap();
    });
    let mut lines = LineReader::new(output, 8);
    assert_eq!(lines.next().await, Some(Line::TooLong));
    assert_eq!(lines.next().await, Some(Line::Text("ok".to_owned())));
    assert_eq!(lines.next().await, None);
    writing.await.unwrap();
}

const ACT_AS_GATEWAY: &str = "BATON_TEST_ACT_AS_GATEWAY";

/// Runs this very test in a second process that plays the gateway, and kills that one without a warning.
#[tokio::test]
async fn a_child_does_not_outlive_a_killed_gateway() {
    if std::env::var_os(ACT_AS_GATEWAY).is_some() {
        let child = Child::start(&script("exec sleep 600")).await.unwrap();
        println!("child {}", child.id());
        return std::future::pending().await;
    }
    let name = "process::tests::a_child_does_not_outlive_a_killed_gateway";
    let gateway = ChildSpec {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", name, "--nocapture"].map(OsString::from).into(),
        env: vec![(ACT_AS_GATEWAY.into(), "1".into())],
        cwd: "/".into(),
    };
    let mut gateway = Child::start(&gateway).await.unwrap();
    let grandchild = loop {
        let printed = line(&mut gateway).await;
        if let Some((_, pid)) = printed.split_once("child ") {
            break pid.to_owned();
        }
    };
    assert!(is_alive(&grandchild));
    kill_process(gateway.group.id, Signal::KILL).unwrap();
    ends(&grandchild).await;
}
