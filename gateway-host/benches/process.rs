//! The memory of a gateway process: one that waits at the console, and what 10,000 conversations that each had an
//! answer add while nobody talks. Prints one line per number; options of other benches are ignored.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a bench prints its numbers")]

mod stage;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use tokio::task::JoinSet;

const CONVERSATIONS: usize = 10_000;
/// How many lanes talk at the same time while the conversations are made.
const AT_ONCE: usize = 64;

fn main() {
    println!(
        "idle memory, `baton chat` with both plugins: {:.1} MiB",
        mib(idle())
    );
    let grown = stage::runtime().block_on(conversations());
    println!(
        "memory of {CONVERSATIONS} idle conversations: {:.1} MiB more ({} bytes each)",
        mib(grown),
        grown * 1024 / CONVERSATIONS as u64
    );
}

/// Resident KiB of the real program once it has answered a command.
fn idle() -> u64 {
    let home = tempfile::tempdir().expect("a temporary home");
    let config = "[subscriptions.a]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"BATON_BENCH_KEY\"\n\n[profiles.default]\nchain = [\"a/m\"]\n";
    stage::write(&home.path().join("config.toml"), config);
    let mut command = Command::new(stage::baton());
    command
        .arg("chat")
        .env("BATON_HOME", home.path())
        .env("BATON_BENCH_KEY", "none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = start(&mut command);
    let mut input = child.stdin.take().expect("it is piped");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    input.write_all(b"/help\n").expect("it listens");
    let answered = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("/resume-handoff"));
    assert!(answered, "it did not answer /help");
    let resident = resident(&format!("/proc/{}/status", child.id()));
    drop(input);
    let ended = child.wait().expect("it can be waited for");
    assert!(ended.success(), "baton chat ended with {ended}");
    resident
}

#[expect(clippy::disallowed_methods, reason = "a bench's own child, waited for")]
fn start(command: &mut Command) -> Child {
    command.spawn().expect("the built program starts")
}

/// KiB that this process grows by: every lane has one answered turn, then none runs.
async fn conversations() -> u64 {
    let home = tempfile::tempdir().expect("a temporary home");
    let settings = stage::settings(home.path(), 21);
    let provider = stage::AtOnce::default();
    let gateway = stage::gateway(&settings, "bench", &provider).await;
    let gateway = std::sync::Arc::new(gateway);
    // What every busy moment needs once is not a conversation's.
    talk(&gateway, 0..AT_ONCE * 4).await;
    let before = resident("/proc/self/status");
    talk(&gateway, AT_ONCE * 4..AT_ONCE * 4 + CONVERSATIONS).await;
    resident("/proc/self/status").saturating_sub(before)
}

async fn talk(gateway: &std::sync::Arc<gateway_host::Gateway>, lanes: std::ops::Range<usize>) {
    let lanes: Vec<usize> = lanes.collect();
    for some in lanes.chunks(AT_ONCE) {
        let mut talking = JoinSet::new();
        for lane in some.iter().copied() {
            let gateway = std::sync::Arc::clone(gateway);
            talking.spawn(async move { gateway.receive(stage::inbound("bench", lane, 1)).await });
        }
        talking.join_all().await;
        gateway.idle().await;
    }
}

fn resident(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).expect("a running process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number
        .and_then(|kib| kib.trim().parse().ok())
        .expect("the kernel states it")
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
