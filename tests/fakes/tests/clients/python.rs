//! The Python that runs others' clients: `scripts/test` installs it below `<workspace>/.tools/python`. Without it a test
//! says SKIPPED with the reason; with `BATON_REQUIRE_REAL=1` it fails.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A script of `python/` that printed "ready"; killed when dropped.
pub(crate) struct Script(#[expect(dead_code, reason = "held for its end")] Child);

/// Starts `script` if Python has `module`. `None` = skipped.
pub(crate) async fn start(module: &str, script: &str, arguments: &[&str]) -> Option<Script> {
    let python = interpreter(module)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("python")
        .join(script);
    let mut command = Command::new(python);
    command
        .arg(script)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    #[expect(
        clippy::disallowed_methods,
        reason = "one client without children; it ends with its standard input"
    )]
    let mut child = command.spawn().expect("the interpreter was found");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let first = lines.next_line().await.expect("text");
    assert_eq!(
        first.as_deref(),
        Some("ready"),
        "the script said something else first"
    );
    Some(Script(child))
}

fn interpreter(module: &str) -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/python/bin/python");
    let found = std::process::Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let reason = format!(".tools/python has no {module}; scripts/test installs it");
    assert_ne!(
        std::env::var("BATON_REQUIRE_REAL").as_deref(),
        Ok("1"),
        "{reason}"
    );
    println!("SKIPPED: {reason}");
    None
}
