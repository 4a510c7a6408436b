//! One turn of the program: start, wait for the word, send the prompt, read until the result, see the process off.
//!
//! The process group is reaped on every way out, before the end is returned. A stop asks by protocol first (the program
//! then keeps the partial answer in its transcript), then by signals.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use gateway_core::event::Event;
use gateway_core::failure::{Failure, FailureKind, FailureScope};
use gateway_core::ids::ProviderSessionId;
use gateway_core::turn::AttemptEnd;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep, timeout};

use super::command::{self, Opening, Run};
use super::stream::{Stream, TurnEnd};
use super::{Claude, PRODUCT, failure};
use crate::earlier::unseen;
use crate::environment::billing_variable;
use crate::process::{Child, ChildSpec, Line, StopSteps};
use crate::program::start_problem;
use crate::{AttemptRequest, Permissions, Provider as _, Stop};

/// How long a program that has delivered its result may take to write its transcript and leave.
const LEAVE: Duration = Duration::from_secs(5);
/// How long a stop by protocol may take before signals follow; 2.1.332 answers at once (`interrupt-control`).
const POLITE: Duration = Duration::from_secs(2);
const NO_ANSWER: &str = "claude had no answer within";

/// Runs the attempt.
pub(super) async fn run(
    claude: Claude,
    mut request: AttemptRequest,
    events: mpsc::Sender<Event>,
    stop: Stop,
) -> AttemptEnd {
    let deadline = sleep(request.limits.deadline);
    tokio::pin!(deadline);
    let mut attempt = match Attempt::prepare(&claude, &request).await {
        Ok(attempt) => attempt,
        Err(failure) => return AttemptEnd::Failed(failure),
    };
    let mut allowed = false;
    for _ in 0..2 {
        let mut child = match Child::start(&attempt.spec(&request)).await {
            Ok(child) => child,
            Err(error) => {
                return AttemptEnd::Failed(crashed(start_problem(
                    PRODUCT,
                    &attempt.spec(&request),
                    &error,
                )));
            }
        };
        if !allowed {
            let instead = tokio::select! {
                word = &mut request.go => word.is_err().then_some(AttemptEnd::Stopped),
                () = stop.stopped() => Some(AttemptEnd::Stopped),
                () = &mut deadline => Some(timed_out(NO_ANSWER, request.limits.deadline)),
            };
            if let Some(end) = instead {
                child.reap().await; // nothing was sent
                return end;
            }
            allowed = true;
        }
        let mut turn = Turn {
            attempt: &attempt,
            request: &request,
            events: &events,
            stop: &stop,
            stream: Stream::new(claude.0.subscription.clone()),
        };
        let why = turn.converse(&mut child, deadline.as_mut()).await;
        match turn.see_off(child, why).await {
            Ended::For(end) => return end,
            Ended::Again(opening) => attempt.opening = opening,
        }
    }
    AttemptEnd::Failed(crashed(
        "claude neither opens nor resumes its session".to_owned(),
    ))
}

fn crashed(detail: String) -> Failure {
    Failure::new(
        FailureKind::Crashed,
        FailureScope::Request,
        failure::one_line(&detail),
    )
}

/// What stays the same if the program has to be started twice.
struct Attempt<'a> {
    claude: &'a Claude,
    binary: PathBuf,
    workdir: PathBuf,
    hidden: Vec<PathBuf>,
    opening: Opening,
}

impl<'a> Attempt<'a> {
    async fn prepare(claude: &'a Claude, request: &AttemptRequest) -> Result<Self, Failure> {
        let refused =
            |words: String| Failure::new(FailureKind::BadRequest, FailureScope::Account, words);
        claude
            .check_permissions(request.permissions)
            .map_err(refused)?;
        let workdir = usable_workdir(&request.workdir, request.permissions).map_err(refused)?;
        Ok(Self {
            claude,
            binary: claude.binary().map_err(crashed)?,
            workdir,
            hidden: hidden(claude),
            opening: opening(claude, request.session.clone()).await,
        })
    }

    fn spec(&self, request: &AttemptRequest) -> ChildSpec {
        ChildSpec {
            program: self.binary.clone(),
            args: command::arguments(&Run {
                model: &request.model,
                opening: &self.opening,
                title: &request.title,
                permissions: request.permissions,
                hidden: &self.hidden,
            }),
            env: self.claude.0.environment(std::env::vars_os()),
            cwd: self.workdir.clone(),
        }
    }

    /// What this session has not seen of the conversation, as text.
    fn context(&self, request: &AttemptRequest) -> Option<String> {
        unseen(request, matches!(self.opening, Opening::Resume(_)))
    }
}

/// The directory with its links resolved. The whole file system is no confinement at all, so it is refused.
fn usable_workdir(workdir: &Path, permissions: Permissions) -> Result<PathBuf, String> {
    let shown = workdir.display();
    let resolved = workdir
        .canonicalize()
        .map_err(|error| format!("the working directory {shown} cannot be used: {error}"))?;
    if !resolved.is_dir() {
        return Err(format!("the working directory {shown} is not a directory"));
    }
    let confined = matches!(permissions, Permissions::ReadOnly | Permissions::Edit);
    if confined && resolved.parent().is_none() {
        return Err(
            "claude cannot be confined to the root directory; choose another working directory"
                .to_owned(),
        );
    }
    Ok(resolved)
}

/// What no file tool may reach, as named and with links resolved: the settings' folders, the login's folder and its
/// account file beside it (`~/.claude.json`), and what shows the environment of processes.
fn hidden(claude: &Claude) -> Vec<PathBuf> {
    let login = claude.0.folder();
    let beside = login.iter().flat_map(|folder| {
        [".json", ".json.backup"].map(|suffix| {
            let mut name = folder.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        })
    });
    let mut paths: Vec<PathBuf> = ["/proc", "/sys", "/dev"].map(PathBuf::from).into();
    let named = claude.0.hidden.iter().cloned();
    for path in named.chain(beside).chain(login.clone()) {
        paths.extend(
            path.canonicalize()
                .ok()
                .filter(|resolved| *resolved != path),
        );
        paths.push(path);
    }
    paths
}

async fn opening(claude: &Claude, session: Option<ProviderSessionId>) -> Opening {
    let sessions = claude.sessions();
    let looking = tokio::task::spawn_blocking(move || {
        session.filter(|session| sessions.transcript(session).is_some())
    });
    match looking.await {
        Ok(Some(known)) => Opening::Resume(known),
        _ => new_session(),
    }
}

fn new_session() -> Opening {
    Opening::New(ProviderSessionId::new(uuid::Uuid::new_v4().to_string()))
}

/// Why reading stopped.
enum Why {
    Result,
    /// The program closed its output without a result.
    Exit,
    Stopped,
    Silent,
    Deadline,
    /// It found an API key to bill, which nobody allowed.
    Billed(String),
}

/// What is to be done now.
enum Ended {
    For(AttemptEnd),
    /// Nothing was shown and nothing was sent: once more, with this session.
    Again(Opening),
}

struct Turn<'a> {
    attempt: &'a Attempt<'a>,
    request: &'a AttemptRequest,
    events: &'a mpsc::Sender<Event>,
    stop: &'a Stop,
    stream: Stream,
}

impl Turn<'_> {
    async fn converse(&mut self, child: &mut Child, mut deadline: Pin<&mut Sleep>) -> Why {
        let context = self.attempt.context(self.request);
        let message = command::user_message(context.as_deref(), &self.request.prompt);
        tokio::select! {
            () = child.write(message.as_bytes()) => {}
            () = self.stop.stopped() => return Why::Stopped,
            () = deadline.as_mut() => return Why::Deadline,
        }
        loop {
            let line = tokio::select! {
                biased;
                () = self.stop.stopped() => return Why::Stopped,
                () = deadline.as_mut() => return Why::Deadline,
                line = child.next_line() => line,
                () = sleep(self.request.limits.silence) => return Why::Silent,
            };
            let Some(line) = line else {
                return Why::Exit;
            };
            self.take(line).await;
            if let Some(key) = self.unwanted_bill() {
                return Why::Billed(key);
            }
            if self.stream.end().is_some() {
                return Why::Result;
            }
        }
    }

    async fn take(&mut self, line: Line) {
        let Line::Text(line) = line else {
            tracing::warn!("claude wrote a line above 16 MiB; it is skipped");
            return;
        };
        let known = self.stream.version().is_some();
        for event in self.stream.push(&line, (self.attempt.claude.0.now)()) {
            self.report(event).await;
        }
        if let (false, Some(version)) = (known, self.stream.version()) {
            log_version(version);
        }
    }

    /// A stop must get through even if nobody takes the events.
    async fn report(&self, event: Event) {
        tokio::select! {
            biased;
            sent = self.events.send(event) => drop(sent), // nobody listens: the stop follows at once
            () = self.stop.stopped() => {}
        }
    }

    /// Fails closed: a subscription that should be paid by its plan must not bill a key it happens to find.
    fn unwanted_bill(&self) -> Option<String> {
        let key = self.stream.billed_key()?;
        let allowed = billing_variable(&self.attempt.claude.0.env).is_some();
        (!allowed).then(|| key.to_owned())
    }

    async fn see_off(mut self, mut child: Child, why: Why) -> Ended {
        let exit = match why {
            Why::Result => {
                child.close_stdin();
                let left = child.ended_within(LEAVE).await.is_some();
                let stderr = child.stderr();
                match left {
                    true => child.reap().await,
                    false => child.stop(StopSteps::default()).await,
                };
                return self.after_result(&stderr);
            }
            Why::Exit => child.reap_with_stderr().await,
            Why::Stopped | Why::Silent | Why::Deadline | Why::Billed(_) => {
                self.give_up(child).await;
                (None, String::new())
            }
        };
        Ended::For(match why {
            Why::Stopped => AttemptEnd::Stopped,
            Why::Silent => timed_out("claude said nothing for", self.request.limits.silence),
            Why::Deadline => timed_out(NO_ANSWER, self.request.limits.deadline),
            Why::Billed(key) => AttemptEnd::Failed(billed(&key)),
            Why::Result | Why::Exit => return self.after_exit(exit),
        })
    }

    /// Interrupt by protocol, then by signals. What still comes is reported: it is part of what was done.
    async fn give_up(&mut self, mut child: Child) {
        let asked = async {
            child.write(command::interrupt_request().as_bytes()).await;
            while self.stream.end().is_none() {
                match child.next_line().await {
                    Some(Line::Text(line)) => {
                        for event in self.stream.push(&line, (self.attempt.claude.0.now)()) {
                            let _ = self.events.try_send(event); // full or closed: the stop is what matters now
                        }
                    }
                    Some(Line::TooLong) => {}
                    None => break,
                }
            }
        };
        let _ = timeout(POLITE, asked).await;
        child.close_stdin();
        if self.stream.end().is_some() && child.ended_within(LEAVE).await.is_some() {
            child.reap().await;
        } else {
            child.stop(StopSteps::default()).await;
        }
    }

    fn after_result(&self, stderr: &str) -> Ended {
        match self.stream.end() {
            Some(TurnEnd::Answered(answer)) => Ended::For(AttemptEnd::Answered(answer.clone())),
            Some(TurnEnd::Failed(failure)) => Ended::For(AttemptEnd::Failed(failure.clone())),
            Some(TurnEnd::SessionMissing) => Ended::Again(new_session()),
            Some(TurnEnd::Interrupted) => {
                let failure = crashed(format!("claude was interrupted by somebody else {stderr}"));
                Ended::For(AttemptEnd::Failed(failure))
            }
            None => Ended::For(AttemptEnd::Failed(failure::without_result(
                "no result",
                stderr,
            ))),
        }
    }

    fn after_exit(&self, (status, stderr): (Option<std::process::ExitStatus>, String)) -> Ended {
        if let (false, Opening::New(id)) = (self.stream.has_shown(), &self.attempt.opening)
            && stderr.contains("is already in use")
        {
            return Ended::Again(Opening::Resume(id.clone()));
        }
        let exit = status.map_or("no exit status".to_owned(), |status| status.to_string());
        Ended::For(AttemptEnd::Failed(failure::without_result(&exit, &stderr)))
    }
}

fn timed_out(words: &str, limit: Duration) -> AttemptEnd {
    let detail = format!("{words} {} s", limit.as_secs());
    AttemptEnd::Failed(Failure::new(
        FailureKind::Timeout,
        FailureScope::Request,
        detail,
    ))
}

fn billed(key: &str) -> Failure {
    let detail = format!(
        "claude would bill an API key ({key}) instead of the plan; log in with the plan, or name the key in `env`"
    );
    Failure::new(
        FailureKind::Auth,
        FailureScope::Account,
        failure::one_line(&detail),
    )
}

fn log_version(version: &str) {
    if crate::program::numbers(version)
        .is_some_and(|numbers| numbers >= super::OLDEST && numbers.first() == Some(&2))
    {
        tracing::info!(version, "claude");
    } else {
        tracing::warn!(
            version,
            "this version of claude was never tried with the gateway"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_its_account_file_and_the_gateway_are_hidden() {
        let claude = Claude::new(crate::claude::ClaudeSettings {
            binary: None,
            home: Some("/home/ann/.claude".into()),
            env: std::collections::BTreeMap::new(),
            subscription: "one".into(),
            hidden: vec!["/home/ann/.baton".into()],
            now: std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
        });
        let paths = hidden(&claude);
        for path in [
            "/proc",
            "/home/ann/.baton",
            "/home/ann/.claude",
            "/home/ann/.claude.json",
        ] {
            assert!(paths.contains(&PathBuf::from(path)), "{path}");
        }
    }

    #[test]
    fn a_directory_that_confines_nothing_is_refused() {
        assert!(usable_workdir(Path::new("/"), Permissions::ReadOnly).is_err());
        assert!(usable_workdir(Path::new("/"), Permissions::None).is_ok());
        assert!(usable_workdir(Path::new("/nonexistent"), Permissions::None).is_err());
    }
}
