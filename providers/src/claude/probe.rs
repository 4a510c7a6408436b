//! How much is left, as the program itself tells: the `get_usage` control request on a short-lived process. No user message
//! is ever written to it, so there is no turn, no model call and no transcript.
//!
//! Facts of 2.1.332, checked with the real program (`tests/real_claude.rs`):
//! * the program asks its service for the usage only while `CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC` is unset, so a probe
//!   runs without the variable that every turn has; telemetry, error reports and updates stay off by their own switches;
//! * `rate_limits_available` is false where plan limits do not apply: an API key, a cloud account, a login without the
//!   `user:profile` scope;
//! * `rate_limits` is null where the service did not tell (no connection, asked too often): nothing is known then.

use std::time::Duration;

use gateway_core::usage::ReadingSource;
use gateway_core::usage::source::{Origin, claude as source};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Claude, PRODUCT, failure};
use crate::environment::billing_variable;
use crate::process::{Child, ChildSpec, Line, StopSteps};
use crate::program::start_problem;
use crate::{ProbeError, Probed, Provider as _};

const REQUEST: &str = "usage";
/// Silences the program's own traffic, the usage query included.
const SILENCING: &str = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
/// The program has answered: it ends by itself when its input closes, and is not waited for long.
const SEE_OFF: StopSteps = StopSteps {
    interrupt: Duration::from_millis(300),
    terminate: Duration::from_millis(300),
};

/// Asks, within `limit`.
pub(super) async fn ask(claude: &Claude, limit: Duration) -> Result<Probed, ProbeError> {
    if let Some(variable) = billing_variable(&claude.0.env) {
        return Err(ProbeError::Unsupported(format!(
            "{variable} bills a key, which has no plan limits"
        )));
    }
    let binary = claude.binary().map_err(ProbeError::Failed)?;
    let mut env = claude.0.environment(std::env::vars_os());
    env.retain(|(name, _)| name.to_str() != Some(SILENCING));
    let spec = ChildSpec {
        program: binary,
        args: ARGUMENTS.iter().map(Into::into).collect(),
        env,
        cwd: std::env::temp_dir(),
    };
    let asking = async {
        let mut child = Child::start(&spec)
            .await
            .map_err(|error| ProbeError::Failed(start_problem(PRODUCT, &spec, &error)))?;
        let request = json!({"type": "control_request", "request_id": REQUEST, "request": {"subtype": "get_usage"}});
        child.write(format!("{request}\n").as_bytes()).await;
        let answer = answer(&mut child).await;
        child.close_stdin();
        match answer {
            Some(answer) => {
                child.stop(SEE_OFF).await;
                Ok(answer)
            }
            None => {
                let (_, stderr) = child.reap_with_stderr().await;
                let said = failure::one_line(&stderr);
                Err(ProbeError::Failed(format!(
                    "claude ended without an answer: {said}"
                )))
            }
        }
    };
    // A process that is too late goes with the future that owns it.
    let answer = timeout(limit, asking).await.map_err(|_| {
        ProbeError::Failed(format!(
            "claude did not answer within {} s",
            limit.as_secs()
        ))
    })??;
    read(&answer, claude).await
}

const ARGUMENTS: [&str; 13] = [
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--setting-sources=",
    "--strict-mcp-config",
    "--safe-mode",
    "--disable-slash-commands",
    "--permission-prompts=none",
    "--restricted",
    "--no-session-persistence",
    "--tools",
    "",
];

/// The `response` of our request's `control_response`; `None` = the program ended first.
async fn answer(child: &mut Child) -> Option<Value> {
    while let Some(line) = child.next_line().await {
        let Line::Text(line) = line else { continue };
        let Ok(event) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let is_ours = event.get("type").and_then(Value::as_str) == Some("control_response")
            && event
                .pointer("/response/request_id")
                .and_then(Value::as_str)
                == Some(REQUEST);
        if is_ours {
            return event.get("response").cloned();
        }
    }
    None
}

async fn read(answer: &Value, claude: &Claude) -> Result<Probed, ProbeError> {
    if answer.get("subtype").and_then(Value::as_str) != Some("success") {
        let why = answer.get("error").and_then(Value::as_str);
        return Err(ProbeError::Unsupported(format!(
            "this claude has no usage query ({})",
            failure::one_line(why.unwrap_or("no reason given"))
        )));
    }
    let usage = answer.get("response").unwrap_or(&Value::Null);
    if usage.get("rate_limits_available").and_then(Value::as_bool) == Some(false) {
        return Err(ProbeError::Unsupported(
            "plan limits do not apply to this login".to_owned(),
        ));
    }
    let readings = match usage.get("rate_limits") {
        None | Some(Value::Null) => Vec::new(),
        Some(limits) => {
            let now = (claude.0.now)();
            let origin = Origin::new(&claude.0.subscription, now, ReadingSource::Probe);
            source::usage(limits, &origin)
        }
    };
    let mut login = claude.login().await;
    if let Some(plan) = usage.get("subscription_type").and_then(Value::as_str) {
        login.plan = Some(plan.to_owned());
    }
    Ok(Probed { readings, login })
}
