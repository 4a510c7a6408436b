//! The Python that runs others' clients: `scripts/test` installs it below `<workspace>/.tools/python`. Without it a test
//! says SKIPPED with the reason; with `BATON_REQUIRE_REAL=1` it fails.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A script of `python/`; killed when dropped.
pub struct Script {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Script {
    /// Starts `script` if Python has `module`. `None` = skipped.
    pub async fn start(module: &str, script: &str, arguments: &[&str]) -> Option<Self> {
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
            reason = "one program without children; it ends with its standard input"
        )]
        let mut child = command.spawn().expect("the interpreter was found");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Some(Self {
            _child: child,
            input,
            output,
        })
    }

    /// The next line it prints.
    pub async fn line(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_secs(30), self.output.next_line()).await;
        line.expect("it answers")
            .expect("text")
            .expect("it runs on")
    }

    /// Writes a line to it and returns its next one.
    pub async fn ask(&mut self, line: &str) -> String {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("it reads");
        self.line().await
    }
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
    #[expect(clippy::print_stdout, reason = "a test says why it did nothing")]
    {
        println!("SKIPPED: {reason}");
    }
    None
}
