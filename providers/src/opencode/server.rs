//! One `opencode serve` per subscription: started when first needed, kept for the turns that follow, ended when nobody
//! needs it, replaced when it dies.
//!
//! The process is owned by one task, which reaps its group on every way out; the gateway's end takes it along
//! (`process.rs`). Its port is chosen by the system, its password by us, and it listens on loopback only.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::time::{Instant, interval, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::api::Api;
use super::config::OpenCodeSettings;
use super::hub::Hub;
use super::{failure, leftovers};
use crate::process::{Child, ChildSpec, Line, StopSteps};

/// How long the program may take to announce its port; 14 s were seen on a loaded machine.
const START_WAIT: Duration = Duration::from_secs(90);
/// A server nobody has used for this long is ended: it holds half a gigabyte.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(20);
/// What the program says once it listens (1.18.33).
const ANNOUNCEMENT: &str = "listening on http://";

/// The subscription's server, if it has one at the moment.
#[derive(Default)]
pub(super) struct Servers(AsyncMutex<Option<Arc<Server>>>);

/// A running server. Dropped by everybody = ended.
pub(super) struct Server {
    pub(super) api: Api,
    pub(super) hub: Arc<Hub>,
    /// Providers and models, asked once: the configuration does not change under a server.
    pub(super) providers: OnceCell<Value>,
    /// The process has ended.
    pub(super) dead: CancellationToken,
    end: CancellationToken,
    _end_on_drop: DropGuard,
    usage: Arc<Mutex<Usage>>,
    last_words: Arc<Mutex<String>>,
}

struct Usage {
    turns: usize,
    since: Instant,
    /// No further turn may begin.
    closing: bool,
}

/// One user of a server. While it lives the server is not idle.
pub(super) struct Lease {
    pub(super) server: Arc<Server>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut usage = self.server.usage.lock();
        usage.turns = usage.turns.saturating_sub(1);
        usage.since = Instant::now();
    }
}

impl Servers {
    /// The server, started if there is none. Callers that come meanwhile wait for the same start.
    ///
    /// # Errors
    /// When the program cannot be started or does not announce its port; the sentence is for people.
    pub(super) async fn lease(
        &self,
        settings: &OpenCodeSettings,
        program: PathBuf,
    ) -> Result<Lease, String> {
        let mut slot = self.0.lock().await;
        if let Some(lease) = slot.as_ref().and_then(Server::lease) {
            return Ok(lease);
        }
        *slot = None;
        let server = Arc::new(Server::start(settings, program).await?);
        let lease = Server::lease(&server).ok_or("opencode serve ended at once")?;
        *slot = Some(server);
        Ok(lease)
    }
}

impl Server {
    fn lease(self: &Arc<Self>) -> Option<Lease> {
        let mut usage = self.usage.lock();
        let open = !usage.closing && !self.dead.is_cancelled() && !self.end.is_cancelled();
        open.then(|| {
            usage.turns += 1;
            Lease {
                server: self.clone(),
            }
        })
    }

    async fn start(settings: &OpenCodeSettings, program: PathBuf) -> Result<Self, String> {
        let private = settings.folders().map(|folders| folders.private());
        let private = private.ok_or("no home folder is known; set `home` for this subscription")?;
        make_private(&private)
            .map_err(|error| format!("{} cannot be made: {error}", private.display()))?;
        let password = format!("{}{}", uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
        let mark = format!("{}={}", leftovers::MARK, uuid::Uuid::new_v4());
        let spec = spec(settings, program, private, &password, &mark);
        let mut child = Child::start(&spec)
            .await
            .map_err(|error| crate::program::start_problem(super::PRODUCT, &spec, &error))?;
        child.close_stdin();
        let announced = timeout(START_WAIT, announcement(&mut child)).await;
        let Ok(Some(base)) = announced else {
            let (status, stderr) = child.reap_with_stderr().await;
            let status = status.map_or("no port announced in time".to_owned(), |s| s.to_string());
            let detail = format!("opencode serve did not start ({status}) {stderr}");
            return Err(failure::one_line(&detail));
        };
        let api = Api::new(&base, &password)?;
        let (dead, end) = (CancellationToken::new(), CancellationToken::new());
        let usage = Arc::new(Mutex::new(Usage {
            turns: 0,
            since: Instant::now(),
            closing: false,
        }));
        let last_words = Arc::new(Mutex::new(String::new()));
        let keeper = Keeper {
            child,
            mark,
            dead: dead.clone(),
            end: end.clone(),
            usage: usage.clone(),
            last_words: last_words.clone(),
        };
        tokio::spawn(keeper.keep());
        Ok(Self {
            hub: Hub::start(api.clone(), dead.clone()),
            api,
            providers: OnceCell::new(),
            dead,
            _end_on_drop: end.clone().drop_guard(),
            end,
            usage,
            last_words,
        })
    }

    /// Ends the process, whoever uses it, and waits until it is gone.
    pub(super) async fn end(&self) {
        self.end.cancel();
        self.dead.cancelled().await;
    }

    /// How the process ended and what it said last; empty while it runs.
    pub(super) fn last_words(&self) -> String {
        self.last_words.lock().clone()
    }
}

fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

fn spec(
    settings: &OpenCodeSettings,
    program: PathBuf,
    cwd: PathBuf,
    password: &str,
    mark: &str,
) -> ChildSpec {
    let mut env = settings.environment(std::env::vars_os(), Some(password));
    env.extend(
        mark.split_once('=')
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
    );
    ChildSpec {
        program,
        args: ["serve", "--hostname", "127.0.0.1", "--port", "0"]
            .map(OsString::from)
            .into(),
        env,
        cwd,
    }
}

/// The address from the program's own line; `None` = its output ended first.
async fn announcement(child: &mut Child) -> Option<String> {
    loop {
        if let Line::Text(line) = child.next_line().await?
            && let Some((_, address)) = line.split_once(ANNOUNCEMENT)
        {
            let address = address.split_whitespace().next().unwrap_or_default();
            return Some(format!("http://{address}"));
        }
    }
}

/// Owns the process until it is over.
struct Keeper {
    child: Child,
    mark: String,
    dead: CancellationToken,
    end: CancellationToken,
    usage: Arc<Mutex<Usage>>,
    last_words: Arc<Mutex<String>>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                () = self.end.cancelled() => break,
                line = self.child.next_line() => if line.is_none() { break },
                _ = look.tick() => if self.closes() { break },
            }
        }
        self.usage.lock().closing = true;
        let stderr = self.child.stderr();
        let status = match self.end.is_cancelled() {
            true => self.child.stop(StopSteps::default()).await,
            false => self.child.reap().await,
        };
        // Tools run in groups of their own (1.18.33), so the server's group does not hold them.
        let mark = self.mark;
        let _ = tokio::task::spawn_blocking(move || leftovers::end(&mark)).await;
        let status = status.map_or("no exit status".to_owned(), |status| status.to_string());
        *self.last_words.lock() = failure::one_line(&format!("{status} {stderr}"));
        self.dead.cancel();
    }

    fn closes(&self) -> bool {
        let mut usage = self.usage.lock();
        usage.closing |= usage.turns == 0 && usage.since.elapsed() >= IDLE;
        usage.closing
    }
}
