//! The product as a process: the real `baton chat` on pipes, in a home of its own, over a program that plays `claude`
//! (`fake-cli`). For tests that kill it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{baton, target_folder, write};

/// The longest a test waits for one thing; a gateway on a busy machine starts in a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a turn that has shown its end may still be busy, when a point lies behind its last event.
const AFTERMATH: Duration = Duration::from_millis(150);

/// A home with one `claude` subscription played from a script.
pub struct Rig {
    home: tempfile::TempDir,
    listener: Listener,
}

/// Who hears the bell: the newest [`Chat`].
type Listener = Arc<parking_lot::Mutex<Option<Sender<Heard>>>>;

impl Rig {
    /// A fresh home. The script is an array of `{when, steps}` as `fake-cli` reads it.
    pub fn new(script: &Value) -> Self {
        let rig = Self {
            home: tempfile::tempdir().expect("a temporary home"),
            listener: Listener::default(),
        };
        for folder in ["root", "work", "login"] {
            std::fs::create_dir(rig.path(folder)).expect("a folder");
        }
        write(&rig.path("script.json"), script.to_string().as_bytes());
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, rig.path("bell"), mode).expect("a FIFO");
        listen(&rig.path("bell"), Arc::clone(&rig.listener));
        write(&rig.path("root/config.toml"), rig.config().as_bytes());
        rig
    }

    /// A home in the state another one is in: store, transcripts and evidence are copied. No gateway may run in either.
    pub fn like(other: &Self, script: &Value) -> Self {
        let rig = Self::new(script);
        for part in ["root/state", "login", "evidence"] {
            copy(&other.path(part), &rig.path(part));
        }
        rig
    }

    fn config(&self) -> String {
        let shown = |name: &str| self.path(name).display().to_string();
        format!(
            "[subscriptions.one]\nprovider = \"claude\"\nbinary = \"{}\"\nhome = \"{}\"\n\n\
             [subscriptions.one.env]\nFAKE_CLI_SCRIPT = \"{}\"\nFAKE_CLI_EVIDENCE = \"{}\"\nFAKE_CLI_BELL = \"{}\"\n\n\
             [profiles.default]\nchain = [\"one/m\"]\nworkdir = \"{}\"\n",
            target_folder().join("fake-cli").display(),
            shown("login"),
            shown("script.json"),
            shown("evidence"),
            shown("bell"),
            shown("work"),
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// `BATON_HOME`.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// The gateway's store.
    pub fn store_file(&self) -> PathBuf {
        self.path("root/state/baton.db")
    }

    /// What the played program was told and did, in order: `{pid, what, session, text}`.
    pub fn evidence(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("evidence")).unwrap_or_default(); // none yet: it never ran
        text.lines()
            .map(|line| serde_json::from_str(line).expect("one JSON value per line"))
            .collect()
    }

    /// What each of its sessions holds, with the escapes of JSON strings taken out.
    pub fn transcripts(&self) -> Vec<String> {
        let files = |folder: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect()
        };
        let projects = files(&self.path("login/projects"));
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path)
                .expect("a transcript")
                .replace("\\n", "\n")
        };
        projects
            .iter()
            .flat_map(|project| files(project))
            .map(|file| read(&file))
            .collect()
    }

    /// Processes of the played program, its helpers included, that still run.
    pub fn alive(&self) -> Vec<String> {
        let evidence = self.evidence();
        let pids = evidence.iter().filter_map(|line| line["pid"].as_u64());
        let mut running: Vec<String> = pids.filter_map(running).collect();
        running.sort();
        running.dedup();
        running
    }

    /// Waits until what ran before is gone, but for the program of a running turn; returns what is left when `patience` is over.
    pub fn gone_within(&self, patience: Duration) -> Vec<String> {
        let until = Instant::now() + patience;
        loop {
            let left = self.alive();
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::yield_now(); // ending takes the kernel and the parent a moment; there is no handle to wait on
        }
    }

    /// Starts the gateway.
    pub fn chat(&self) -> Chat {
        Chat::start(self)
    }

    /// Adds to the configuration.
    pub fn configure(&self, sections: &str) {
        let text = format!("{}{sections}", self.config());
        write(&self.path("root/config.toml"), text.as_bytes());
    }

    /// The command that starts the gateway, in an environment of its own.
    pub fn command(&self) -> Command {
        self.command_of("chat")
    }

    /// Any command of the gateway's, likewise.
    pub fn command_of(&self, name: &str) -> Command {
        let mut command = Command::new(baton());
        command
            .arg(name)
            .env_clear()
            .env("HOME", self.home.path())
            .env("BATON_HOME", self.root());
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.path("work"));
        command
    }
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).expect("a file is copied");
        return;
    }
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

/// The program's name if this process runs; an ended one that nobody has reaped does not.
fn running(pid: u64) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit(')').next()?.trim_start().chars().next()?;
    (stat.contains("(fake-cli)") && state != 'Z' && state != 'X').then(|| format!("{pid} {state}"))
}

enum Heard {
    Shown(Vec<u8>),
    Bell,
    Closed,
}

/// A running `baton chat`.
pub struct Chat {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Heard>,
    shown: String,
    events: usize,
    errors: PathBuf,
}

impl Chat {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test owns the gateway it kills"
    )]
    fn start(rig: &Rig) -> Self {
        let errors = rig.path("stderr");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&errors)
            .expect("a file");
        let mut command = rig.command();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("baton starts; is it built?");
        let (input, mut output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (send, heard) = channel();
        *rig.listener.lock() = Some(send.clone());
        std::thread::spawn(move || {
            let mut chunk = vec![0; 8192];
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                let _ = send.send(Heard::Shown(chunk.iter().take(count).copied().collect()));
            }
            let _ = send.send(Heard::Closed); // the test may be over
        });
        let mut chat = Self {
            child,
            input,
            heard,
            shown: String::new(),
            events: 0,
            errors,
        };
        chat.sees("/help lists the commands");
        chat.events = 0;
        chat
    }

    /// Types a line.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input
            .write_all(format!("{line}\n").as_bytes())
            .expect("the gateway reads");
    }

    /// Waits until this has been shown.
    pub fn sees(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                self.hear(left),
                "`{text}` was not shown:\n{}\n--- stderr\n{}",
                self.shown,
                self.errors()
            );
        }
    }

    /// Waits for so many events since the start: something shown, or a line of evidence. Fewer, if the turn showed its
    /// last word and then fell silent.
    pub fn events(&mut self, count: usize, last_word: &str) {
        while self.events < count {
            let patience = if self.shown.contains(last_word) {
                AFTERMATH
            } else {
                PATIENCE
            };
            if !self.hear(patience) {
                assert!(
                    self.shown.contains(last_word),
                    "the turn hangs:\n{}\n--- stderr\n{}",
                    self.shown,
                    self.errors()
                );
                return;
            }
        }
    }

    /// How many events there are until a turn has shown its last word and fallen silent.
    pub fn events_until(&mut self, last_word: &str) -> usize {
        self.events(usize::MAX, last_word);
        self.events
    }

    /// Kills the gateway, and it alone, as a crash does; returns what it had shown.
    pub fn kill(mut self) -> String {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        while self.hear(PATIENCE) {}
        std::mem::take(&mut self.shown)
    }

    /// Ends the input and waits until the gateway has left in order; returns everything it showed.
    pub fn leave(mut self) -> String {
        self.input = None;
        while self.hear(PATIENCE) {}
        let status = self.child.wait().expect("it ends");
        assert!(
            status.success(),
            "{status}\n{}\n--- stderr\n{}",
            self.shown,
            self.errors()
        );
        std::mem::take(&mut self.shown)
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// `false` = nothing came in time, or nothing will any more.
    fn hear(&mut self, patience: Duration) -> bool {
        match self.heard.recv_timeout(patience) {
            Ok(Heard::Shown(bytes)) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
            Ok(Heard::Bell) => {}
            Ok(Heard::Closed) | Err(_) => return false,
        }
        self.events += 1;
        true
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended already unless a test failed
        let _ = self.child.wait();
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let end = std::fs::OpenOptions::new()
            .write(true)
            .open(self.path("bell"));
        let _ = end.and_then(|mut bell| bell.write_all(END)); // without it a thread sleeps until the tests are over
    }
}

/// Rung by `fake-cli` for each line of evidence.
const RING: u8 = b'.';
/// Rung when the rig goes.
const END: &[u8] = b"!";

/// Passes the bell on. The FIFO is opened for both sides, so that it never ends by itself.
fn listen(bell: &Path, listener: Listener) {
    let mut bell = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(bell)
        .expect("the FIFO");
    std::thread::spawn(move || {
        let mut one = [0];
        while bell.read_exact(&mut one).is_ok() && one == [RING] {
            if let Some(listener) = &*listener.lock() {
                let _ = listener.send(Heard::Bell); // the chat may be over
            }
        }
    });
}
