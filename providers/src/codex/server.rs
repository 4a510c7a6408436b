//! One running `codex app-server`: JSON lines on stdio (without a `jsonrpc` member), several threads at once.
//!
//! A task of its own owns the process. It answers requests of the program by refusing them (nobody is ever asked), sends
//! each notification to who listens to its thread, and to all listeners if it names none. It ends the process when nobody
//! holds the server any more, when nothing has run for [`IDLE`], or when told; whoever still waits then learns that it is
//! gone. The process group is reaped before that is said.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::failure::one_line;
use crate::process::{Child, ChildSpec, Line};

/// How long a server without a running turn is kept.
const IDLE: Duration = Duration::from_secs(300);
/// How long it may take to leave by itself once its stdin is closed; 0.171 leaves at once.
const LEAVE: Duration = Duration::from_secs(2);

/// A notification.
#[derive(Debug, Clone)]
pub(super) struct Notice {
    pub(super) method: String,
    pub(super) params: Arc<Value>,
}

/// Why a request brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The program answered with an error.
    Refused { code: i64, message: String },
    /// The program is gone; its last words.
    Gone(String),
}

impl CallError {
    /// One line for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Refused { message, .. } => one_line(message),
            Self::Gone(words) => words.clone(),
        }
    }
}

enum Command {
    Call {
        method: &'static str,
        params: Value,
        reply: oneshot::Sender<Result<Value, CallError>>,
    },
    Listen {
        thread: String,
        to: mpsc::UnboundedSender<Notice>,
    },
    Leave {
        thread: String,
    },
    Say(&'static str),
    Kill,
}

/// A handle on the running program. Clones share it; the last one dropped ends it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    commands: mpsc::UnboundedSender<Command>,
    /// Holds the last words once the process is reaped.
    over: watch::Receiver<Option<String>>,
}

/// What a thread says, for as long as it is held.
#[derive(Debug)]
pub(super) struct Listening {
    thread: String,
    commands: mpsc::UnboundedSender<Command>,
    /// Without a bound: a person who reads slowly must not hold up the other threads, and a turn's output is finite.
    notices: mpsc::UnboundedReceiver<Notice>,
}

impl Listening {
    /// The next notification; `None` = the program is gone.
    pub(super) async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let thread = std::mem::take(&mut self.thread);
        let _ = self.commands.send(Command::Leave { thread }); // gone: nobody to tell
    }
}

impl Server {
    /// Starts the program. It has not been greeted yet.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) async fn start(spec: &ChildSpec) -> std::io::Result<Self> {
        let mut child = Child::start(spec).await?;
        let stdin = child
            .take_stdin()
            .ok_or_else(|| std::io::Error::other("the program has no stdin"))?;
        let (lines, written) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, written));
        let (commands, inbox) = mpsc::unbounded_channel();
        let (tell, over) = watch::channel(None);
        let acting = Acting {
            lines,
            pending: HashMap::new(),
            listening: HashMap::new(),
            next_id: 1,
            idle_at: Instant::now() + IDLE,
        };
        tokio::spawn(acting.run(child, inbox, tell));
        Ok(Self { commands, over })
    }

    /// Whether the program still runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.commands.is_closed()
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the program refuses or is gone.
    pub(super) async fn call(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, CallError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Call {
            method,
            params,
            reply,
        });
        if sent.is_ok()
            && let Ok(answer) = answer.await
        {
            return answer;
        }
        Err(CallError::Gone(self.last_words().await))
    }

    /// Says something that has no answer.
    pub(super) fn say(&self, method: &'static str) {
        let _ = self.commands.send(Command::Say(method));
    }

    /// Hears a thread from now on.
    pub(super) fn listen(&self, thread: &str) -> Listening {
        let (to, notices) = mpsc::unbounded_channel();
        let _ = self.commands.send(Command::Listen {
            thread: thread.to_owned(),
            to,
        });
        Listening {
            thread: thread.to_owned(),
            commands: self.commands.clone(),
            notices,
        }
    }

    /// Ends the program and returns with its group reaped.
    pub(super) async fn kill(&self) {
        let _ = self.commands.send(Command::Kill);
        self.last_words().await;
    }

    /// Waits until the process is reaped; how it ended.
    pub(super) async fn last_words(&self) -> String {
        let mut over = self.over.clone();
        let words = over.wait_for(Option::is_some).await;
        let words = words.ok().and_then(|words| words.clone());
        words.unwrap_or_else(|| "codex app-server is gone".to_owned())
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        };
        if written.await.is_err() {
            return; // it no longer reads: its end tells why
        }
    }
}

struct Acting {
    lines: mpsc::UnboundedSender<String>,
    pending: HashMap<u64, oneshot::Sender<Result<Value, CallError>>>,
    listening: HashMap<String, mpsc::UnboundedSender<Notice>>,
    next_id: u64,
    idle_at: Instant,
}

impl Acting {
    async fn run(
        mut self,
        mut child: Child,
        mut inbox: mpsc::UnboundedReceiver<Command>,
        tell: watch::Sender<Option<String>>,
    ) {
        let mut killed = false;
        loop {
            let quiet = self.pending.is_empty() && self.listening.is_empty();
            tokio::select! {
                command = inbox.recv() => match command {
                    None => break,
                    Some(Command::Kill) => {
                        killed = true;
                        break;
                    }
                    Some(command) => self.obey(command),
                },
                line = child.next_line() => match line {
                    Some(Line::Text(line)) => self.hear(&line),
                    Some(Line::TooLong) => {
                        tracing::warn!("codex wrote a line above 16 MiB; it is skipped");
                    }
                    None => break,
                },
                () = sleep_until(self.idle_at), if quiet => break,
            }
        }
        inbox.close();
        drop(self.lines); // its stdin closes, and it leaves
        if !killed {
            child.ended_within(LEAVE).await;
        }
        let (status, stderr) = child.reap_with_stderr().await;
        let exit = status.map_or("no exit status".to_owned(), |status| status.to_string());
        let words = one_line(&format!("codex app-server ended ({exit}) {stderr}"));
        tell.send_replace(Some(words));
        // Only now may those who wait learn of it: the group is gone.
        drop((self.pending, self.listening, inbox));
    }

    fn obey(&mut self, command: Command) {
        self.idle_at = Instant::now() + IDLE;
        match command {
            Command::Call {
                method,
                params,
                reply,
            } => {
                let id = self.next_id;
                self.next_id += 1;
                self.pending.insert(id, reply);
                self.send(&json!({"method": method, "id": id, "params": params}));
            }
            Command::Listen { thread, to } => drop(self.listening.insert(thread, to)),
            // A later listener of the same thread stays: its channel is open.
            Command::Leave { thread } => {
                if self
                    .listening
                    .get(&thread)
                    .is_some_and(mpsc::UnboundedSender::is_closed)
                {
                    self.listening.remove(&thread);
                }
            }
            Command::Say(method) => self.send(&json!({"method": method})),
            Command::Kill => {}
        }
    }

    fn hear(&mut self, line: &str) {
        let Ok(Value::Object(mut message)) = serde_json::from_str(line) else {
            return;
        };
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let id = message.remove("id");
        match (method, id) {
            (Some(method), Some(id)) => self.send(&refusal(&method, &id)),
            (Some(method), None) => {
                let params = message.remove("params").unwrap_or_default();
                self.announce(method, params);
            }
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| self.pending.remove(&id));
                if let Some(reply) = waiting {
                    let _ = reply.send(answer(&mut message)); // nobody waits any more
                }
            }
            (None, None) => {}
        }
    }

    fn announce(&self, method: String, params: Value) {
        let thread = params.get("threadId").and_then(Value::as_str);
        let notice = Notice {
            method,
            params: Arc::new(params.clone()),
        };
        let mine = |name: &str| thread.is_none_or(|thread| thread == name);
        let listeners = self.listening.iter().filter(|(name, _)| mine(name));
        for (_, to) in listeners {
            let _ = to.send(notice.clone()); // it has stopped listening
        }
    }

    fn send(&self, message: &Value) {
        let _ = self.lines.send(format!("{message}\n")); // the writer is gone: so is the program, soon
    }
}

fn answer(message: &mut serde_json::Map<String, Value>) -> Result<Value, CallError> {
    match message.get("error") {
        None => Ok(message.remove("result").unwrap_or_default()),
        Some(error) => Err(CallError::Refused {
            code: error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }),
    }
}

/// What a request of the program gets: the policy is "never ask", so each is declined in its own words (0.171).
fn refusal(method: &str, id: &Value) -> Value {
    let result = match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            json!({"decision": "decline"})
        }
        "execCommandApproval" | "applyPatchApproval" => json!({"decision": "denied"}),
        "mcpServer/elicitation/request" => json!({"action": "decline"}),
        "item/tool/requestUserInput" => json!({"answers": {}}),
        _ => {
            let error = json!({"code": -32601, "message": "the gateway does not answer this"});
            return json!({"id": id, "error": error});
        }
    };
    json!({"id": id, "result": result})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_program_asks_is_declined_in_its_own_words() {
        let rows = [
            (
                "item/commandExecution/requestApproval",
                json!({"decision": "decline"}),
            ),
            (
                "item/fileChange/requestApproval",
                json!({"decision": "decline"}),
            ),
            ("applyPatchApproval", json!({"decision": "denied"})),
            (
                "mcpServer/elicitation/request",
                json!({"action": "decline"}),
            ),
        ];
        for (method, result) in rows {
            assert_eq!(
                refusal(method, &json!(7)),
                json!({"id": 7, "result": result})
            );
        }
        assert_eq!(
            refusal("newer/request", &json!("x"))["error"]["code"],
            -32601
        );
    }
}
