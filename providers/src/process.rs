//! One child program in its own process group, owned by a value: stop it in steps, reap the whole group, and only then
//! let the attempt end. Dropping the value kills the group.
//!
//! Not for classification: what the program says is read by its provider. Invariants:
//! * every child is started by the one spawner thread, so the parent-death signal (which fires when the *thread* that
//!   forked ends, not the process) means "the gateway died";
//! * a group is signalled only while we have not seen it empty; group 0 is never signalled;
//! * no line is longer than [`MAX_LINE`], and of stderr only the newest [`STDERR_KEPT`] bytes are held.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The longest line a program may write, in bytes; a longer one is reported once and skipped to its end.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
/// How much of stderr is kept for diagnostics, in bytes, newest last.
pub const STDERR_KEPT: usize = 8 * 1024;
/// Rounds of SIGKILL to a group: a member that is forking can be missed once.
const KILL_ROUNDS: u32 = 3;
/// How long one round waits for the group to be empty.
const ROUND_WAIT: Duration = Duration::from_millis(300);

/// What to start. The environment is exactly `env`: nothing is inherited.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
}

/// How long each step of [`Child::stop`] waits for the program to end by itself.
#[derive(Debug, Clone, Copy)]
pub struct StopSteps {
    /// After SIGINT to the program alone.
    pub interrupt: Duration,
    /// After SIGTERM to the group; then comes SIGKILL.
    pub terminate: Duration,
}

impl Default for StopSteps {
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(2),
            terminate: Duration::from_secs(2),
        }
    }
}

/// One line of stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Without its line feed; bytes that are not UTF-8 become U+FFFD.
    Text(String),
    /// A line above the limit; its content is gone.
    TooLong,
}

/// A running program and its process group.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    group: Group,
    stdin: Option<ChildStdin>,
    stdout: LineReader<ChildStdout>,
    stderr: StderrTail,
}

impl Child {
    /// Starts the program from the spawner thread. `Err` keeps the kind (`NotFound` = no such program).
    pub async fn start(spec: &ChildSpec) -> io::Result<Self> {
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.args)
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&spec.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let Started { mut inner, group } = spawn(command).await?;
        let pipes = (inner.stdin.take(), inner.stdout.take(), inner.stderr.take());
        let (stdin, Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe of the child is missing"));
        };
        Ok(Self {
            inner,
            group,
            stdin,
            stdout: LineReader::new(stdout, MAX_LINE),
            stderr: StderrTail::drain(stderr),
        })
    }

    /// The process id of the program, which is also the id of its group.
    pub fn id(&self) -> i32 {
        self.group.id.as_raw_nonzero().get()
    }

    /// Writes to stdin. A program that no longer reads is not an error here: its end tells why.
    pub async fn write(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let written = async {
                stdin.write_all(bytes).await?;
                stdin.flush().await
            };
            if written.await.is_err() {
                self.stdin = None;
            }
        }
    }

    /// Hands stdin out, for a program that is written to while it is read. Dropped = closed.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Closes stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line of stdout; `None` at its end, or when the program has ended and a helper merely keeps the pipe open.
    /// Safe to drop while waiting.
    pub async fn next_line(&mut self) -> Option<Line> {
        tokio::select! {
            biased;
            line = self.stdout.next() => line,
            _ = self.inner.wait() => timeout(ROUND_WAIT, self.stdout.next()).await.ok().flatten(),
        }
    }

    /// The newest part of stderr.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits at most `grace` for the program to end by itself, throwing its output away.
    pub async fn ended_within(&mut self, grace: Duration) -> Option<ExitStatus> {
        timeout(grace, self.drained()).await.ok()
    }

    async fn drained(&mut self) -> ExitStatus {
        loop {
            tokio::select! {
                status = self.inner.wait() => return status.unwrap_or_default(),
                Some(_) = self.stdout.next() => {} // read on: a full pipe would keep it from ending
            }
        }
    }

    /// Sends SIGINT to the program alone, so that it can wind up its own helpers.
    pub fn interrupt(&self) {
        self.group.signal_leader(Signal::INT);
    }

    /// SIGINT, SIGTERM, SIGKILL with a wait between; returns with the whole group reaped.
    pub async fn stop(mut self, steps: StopSteps) -> Option<ExitStatus> {
        self.interrupt();
        let mut status = self.ended_within(steps.interrupt).await;
        if status.is_none() {
            self.group.signal(Signal::TERM);
            status = self.ended_within(steps.terminate).await;
        }
        self.reap().await.or(status)
    }

    /// Kills whatever is left of the group and waits until it is empty (bounded); returns the program's exit.
    pub async fn reap(mut self) -> Option<ExitStatus> {
        self.stdin = None;
        let mut status = None;
        for _ in 0..KILL_ROUNDS {
            self.group.signal(Signal::KILL);
            status = self.ended_within(ROUND_WAIT).await.or(status);
            if self.group.is_empty_within(ROUND_WAIT).await {
                break;
            }
        }
        self.stderr.finish().await;
        status
    }

    /// Ends the group and returns the exit with the last words on stderr.
    pub async fn reap_with_stderr(self) -> (Option<ExitStatus>, String) {
        let tail = self.stderr.share();
        let status = self.reap().await;
        (status, tail.text())
    }
}

/// The process group of a child. Dropped = killed.
#[derive(Debug)]
struct Group {
    id: Pid,
    /// Seen empty: the id may belong to somebody else by now.
    gone: bool,
}

impl Group {
    fn led_by(id: Option<u32>) -> io::Result<Self> {
        let id = id
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the child ended while it was being started"))?;
        Ok(Self { id, gone: false })
    }

    fn signal(&mut self, signal: Signal) {
        if !self.gone && kill_process_group(self.id, signal) == Err(rustix::io::Errno::SRCH) {
            self.gone = true;
        }
    }

    fn signal_leader(&self, signal: Signal) {
        if !self.gone {
            let _ = kill_process(self.id, signal); // already ended: nothing to interrupt
        }
    }

    /// A zombie that its new parent has not yet reaped still counts as a member, hence the bounded wait.
    async fn is_empty_within(&mut self, wait: Duration) -> bool {
        let pause = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        loop {
            self.signal(Signal::KILL);
            if self.gone || waited >= wait {
                return self.gone;
            }
            sleep(pause).await;
            waited += pause;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Splits a stream into lines with an upper bound. [`LineReader::next`] is safe to drop while waiting.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    buffer: BytesMut,
    /// How far `buffer` has been searched.
    searched: usize,
    max: usize,
    skipping: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `max` bytes.
    pub fn new(reader: R, max: usize) -> Self {
        Self {
            reader,
            buffer: BytesMut::with_capacity(16 * 1024),
            searched: 0,
            max,
            skipping: false,
            ended: false,
        }
    }

    /// The next line; a last line without a line feed counts. `None` at the end or on a read error.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Some(line);
            }
            if self.ended {
                return self.rest();
            }
            let read = self.reader.read_buf(&mut self.buffer).await;
            self.ended = !matches!(read, Ok(count) if count > 0);
        }
    }

    fn buffered(&mut self) -> Option<Line> {
        loop {
            let fresh = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return self.give_up_if_too_long();
            };
            let line = self.buffer.split_to(self.searched + at);
            self.buffer.advance(1);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue; // the end of a line already reported
            }
            return Some(match line.len() > self.max {
                true => Line::TooLong,
                false => Line::Text(text_of(&line)),
            });
        }
    }

    fn give_up_if_too_long(&mut self) -> Option<Line> {
        if self.skipping || self.buffer.len() > self.max {
            self.buffer.clear();
            self.searched = 0;
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Line::TooLong);
        }
        None
    }

    fn rest(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        (!rest.is_empty() && !self.skipping).then(|| Line::Text(text_of(&rest)))
    }
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

/// Reads stderr to its end so that the program never blocks on it, and keeps the newest bytes.
#[derive(Debug)]
struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl StderrTail {
    fn drain(mut stderr: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let sink = kept.clone();
        let task = tokio::spawn(async move {
            let mut chunk = vec![0_u8; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
                let mut kept = sink.lock();
                kept.extend(chunk.iter().take(count));
                let excess = kept.len().saturating_sub(STDERR_KEPT);
                kept.drain(..excess);
            }
        });
        Self {
            kept,
            task: Some(task),
        }
    }

    fn share(&self) -> Self {
        Self {
            kept: self.kept.clone(),
            task: None,
        }
    }

    async fn finish(&mut self) {
        if let Some(task) = &mut self.task {
            let _ = timeout(ROUND_WAIT, task).await; // a helper outside the group may hold the pipe: not waited for
        }
    }

    fn text(&self) -> String {
        let kept: Vec<u8> = self.kept.lock().iter().copied().collect();
        String::from_utf8_lossy(&kept).into_owned()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

// === the spawner ===

struct Job {
    command: Command,
    runtime: tokio::runtime::Handle,
    reply: oneshot::Sender<io::Result<Started>>,
}

/// A child just forked. Lost on its way to the one who asked, it is killed like any other dropped group.
#[derive(Debug)]
struct Started {
    inner: tokio::process::Child,
    group: Group,
}

async fn spawn(command: Command) -> io::Result<Started> {
    let (reply, answer) = oneshot::channel();
    let job = Job {
        command,
        runtime: tokio::runtime::Handle::current(),
        reply,
    };
    let gone = || io::Error::other("the spawner thread is gone");
    spawner()?.send(job).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

/// The thread all children are forked from. It lives as long as the process: if it ended, every child would be killed.
fn spawner() -> io::Result<std::sync::mpsc::Sender<Job>> {
    static SPAWNER: OnceLock<Mutex<Option<std::sync::mpsc::Sender<Job>>>> = OnceLock::new();
    let mut slot = SPAWNER.get_or_init(|| Mutex::new(None)).lock();
    if let Some(jobs) = &*slot {
        return Ok(jobs.clone());
    }
    let (jobs, inbox) = std::sync::mpsc::channel::<Job>();
    std::thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || inbox.iter().for_each(run_job))?;
    *slot = Some(jobs.clone());
    Ok(jobs)
}

fn run_job(job: Job) {
    let Job {
        command,
        runtime,
        reply,
    } = job;
    // A runtime that is shutting down makes tokio panic; the thread must outlive that.
    let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _inside = runtime.enter();
        fork(command)
    }));
    let started = started.unwrap_or_else(|_| Err(io::Error::other("the runtime is shutting down")));
    drop(reply.send(started)); // the one who asked may be gone: then the group is killed right here
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the spawner that owns children"
)]
fn fork(mut command: Command) -> io::Result<Started> {
    arm_death_signal(&mut command);
    let inner = command.spawn()?;
    let group = Group::led_by(inner.id())?;
    Ok(Started { inner, group })
}

/// Ties the child's life to ours: SIGKILL when the spawner thread, and so the process, is gone.
#[cfg(target_os = "linux")]
fn arm_death_signal(command: &mut Command) {
    let parent = rustix::process::getpid();
    let arm = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and arming; then no signal will ever come.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    #[expect(unsafe_code, reason = "pre_exec is the only place to arm the signal")]
    // SAFETY: between fork and exec `arm` makes two system calls; it neither allocates, locks nor touches shared state,
    // and its errors are built from an error number.
    unsafe {
        command.pre_exec(arm);
    }
}

#[cfg(not(target_os = "linux"))]
fn arm_death_signal(_command: &mut Command) {}

#[cfg(test)]
mod tests;
