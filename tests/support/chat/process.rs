//! The program `baton run` itself, in a home of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{baton, write};

/// The longest a test waits for the program to say or do one thing.
const PATIENCE: Duration = Duration::from_secs(90);

/// A home with a configuration.
pub struct Home(tempfile::TempDir);

impl Home {
    /// A home without a configuration.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary home");
        std::fs::create_dir(home.path().join("root")).expect("a folder");
        std::fs::create_dir(home.path().join("work")).expect("a folder");
        Self(home)
    }

    /// `BATON_HOME`.
    pub fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// Where the agent works.
    pub fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Writes a key of a subscription; its file.
    pub fn key(&self, name: &str) -> PathBuf {
        let file = self.0.path().join(format!("{name}-key"));
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600);
        let mut opened = opened.open(&file).expect("a file of the test");
        let key = format!("not-a-real-key-of-{name}\n");
        std::io::Write::write_all(&mut opened, key.as_bytes()).expect("it is written");
        file
    }

    /// Writes the configuration.
    pub fn configure(&self, text: &str) {
        write(&self.root().join("config.toml"), text.as_bytes());
    }

    /// A command of the program, in an environment of its own.
    pub fn baton(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(baton());
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .env("BATON_HOME", self.root());
        command
    }

    /// Starts `baton run --json`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test owns the gateway it ends"
    )]
    pub fn run(&self, arguments: &[&str]) -> Serving {
        let errors = self.0.path().join("stderr");
        let log = std::fs::File::create(&errors).expect("a file");
        let arguments = [&["run", "--json"], arguments].concat();
        let mut child = self
            .baton(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("baton starts; is it built?");
        let output = child.stdout.take().expect("piped");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(line); // the test may be over
            }
        });
        Serving {
            child,
            lines,
            said: Vec::new(),
            errors,
        }
    }
}

/// A running `baton run`.
pub struct Serving {
    child: Child,
    lines: Receiver<String>,
    /// What it said so far.
    pub said: Vec<Value>,
    errors: PathBuf,
}

impl Serving {
    /// Waits until it has said so many events of this name.
    pub fn says(&mut self, event: &str, count: usize) {
        let end = Instant::now() + PATIENCE;
        while self.said.iter().filter(|one| one["event"] == event).count() < count {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| {
                panic!(
                    "it did not say {event:?}: {:?}\n--- stderr\n{}",
                    self.said,
                    read(&self.errors)
                )
            });
            let line = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line}: {why}"));
            self.said.push(line);
        }
    }

    /// Sends SIGTERM and waits for its end.
    pub fn terminate(mut self) -> (ExitStatus, Vec<Value>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.says("stopped", 1);
        let status = self.child.wait().expect("it ends");
        (status, std::mem::take(&mut self.said), read(&self.errors))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended already unless a test failed
        let _ = self.child.wait();
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}
