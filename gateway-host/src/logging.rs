//! Logs: JSON lines below `<root>/logs/`, one file a day, and what is worth a person's attention on stderr. Never stdout.
//! Every line goes through the redactor before it is written anywhere.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::RootPath;

/// Takes the secrets out of a line.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The variable that says what stderr shows, for example `info` or `gateway_host=debug`.
pub const VARIABLE: &str = "BATON_LOG";
/// How many daily files are kept.
const KEPT_FILES: usize = 14;

/// Keeps the log file's writer alive; the last lines are written when it is dropped.
#[derive(Debug)]
pub struct Logs {
    _file: Option<WorkerGuard>,
}

/// Starts logging to stderr and to the root's log folder. A folder that cannot be written is said once on stderr; the
/// process goes on with stderr alone. A second call in one process changes nothing.
pub fn init(root: &RootPath, redact: Redact) -> Logs {
    let folder = root.logs();
    match file(&folder) {
        Ok(appender) => {
            let (writer, guard) = tracing_appender::non_blocking(appender);
            let lines = fmt::layer()
                .json()
                .with_writer(Redacting::new(writer, redact.clone()))
                .with_filter(file_filter());
            start(redact, Some(lines));
            Logs { _file: Some(guard) }
        }
        Err(error) => {
            let logs = init_stderr(redact);
            tracing::warn!(folder = %folder.display(), %error, "logs go to stderr alone: the log folder cannot be written");
            logs
        }
    }
}

/// Starts logging to stderr alone, for commands that leave no trace.
pub fn init_stderr(redact: Redact) -> Logs {
    start(redact, None::<fmt::Layer<tracing_subscriber::Registry>>);
    Logs { _file: None }
}

fn start<L>(redact: Redact, file: Option<L>)
where
    L: Layer<tracing_subscriber::Registry> + Send + Sync,
{
    let human = fmt::layer()
        .with_ansi(super::cli::colour::on_stderr())
        .with_target(false)
        .without_time()
        .with_writer(Redacting::new(io::stderr, redact))
        .with_filter(stderr_filter());
    // `Err` = the process logs already (a second command in one test), which is what was asked for.
    let _ = tracing_subscriber::registry()
        .with(file)
        .with(human)
        .try_init();
}

fn stderr_filter() -> EnvFilter {
    EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(VARIABLE)
        .from_env_lossy()
}

/// Our own steps in full; of the libraries only what is wrong.
fn file_filter() -> EnvFilter {
    let ours = [
        "gateway_host",
        "gateway_core",
        "providers",
        "platforms",
        "commands",
        "plugin",
    ];
    ours.iter()
        .filter_map(|name| format!("{name}=info").parse().ok())
        .fold(EnvFilter::new("warn"), EnvFilter::add_directive)
}

fn file(folder: &Path) -> io::Result<RollingFileAppender> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("baton")
        .filename_suffix("jsonl")
        .max_log_files(KEPT_FILES)
        .build(folder)
        .map_err(io::Error::other)
}

/// Hands out writers that redact what they are given. One event is one write.
struct Redacting<M> {
    inner: M,
    redact: Redact,
}

impl<M> Redacting<M> {
    fn new(inner: M, redact: Redact) -> Self {
        Self { inner, redact }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Redacting<M> {
    type Writer = RedactingWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactingWriter {
            inner: self.inner.make_writer(),
            redact: self.redact.clone(),
        }
    }
}

struct RedactingWriter<W> {
    inner: W,
    redact: Redact,
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let clean = (self.redact)(&String::from_utf8_lossy(bytes));
        self.inner.write_all(clean.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_reaches_no_log_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootPath(folder.path().to_owned());
        let redact: Redact = Arc::new(|line| line.replace("s3cret", "[redacted]"));
        let (writer, guard) = tracing_appender::non_blocking(file(&root.logs()).unwrap());
        let lines = fmt::layer()
            .json()
            .with_writer(Redacting::new(writer, redact));
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(file_filter()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "gateway_host", key = "s3cret", "a call with s3cret");
            tracing::info!(target: "hyper", "chatter");
        });
        drop(guard);
        let entry = std::fs::read_dir(root.logs())
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(line["fields"]["message"], "a call with [redacted]");
        assert!(!text.contains("s3cret") && !text.contains("chatter"));
        let mode = std::fs::metadata(root.logs()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
