//! What to do about a failure. The words are the contract's (`baton explain failure` prints them).

use serde::{Deserialize, Serialize};

/// The main step after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Leave the account alone until the stated instant.
    SkipAccountUntil,
    /// Leave this model of the account alone until the stated instant.
    SkipModelUntil,
    /// Move on now; the account gets a short, guessed pause.
    FailoverNow,
    /// Only a person can mend it: no timer.
    DisableUntilOperator,
    /// Text was shown already: seal a handoff, then move on.
    HandoffThenFailover,
    /// The same account again after the stated wait.
    RetrySameAfter,
    /// The same account once more after a short pause of our own, then move on.
    RetrySameThenFailover,
    /// A stated time has just passed: ask again within minutes.
    ProbeSoon,
    /// A fresh session with a bounded replay.
    RotateSession,
    /// A smaller request of the same session.
    ShrinkRequest,
    /// The stored history breaks a rule: mend it, then once more.
    RepairHistoryThenRetry,
    /// One forced refresh of the login, one replay.
    RefreshAuthThenRetry,
    /// No account can help: say it.
    TellUserNoRetry,
    /// Not a failure.
    None,
}
