//! Sentences for the operator.

use platforms::adapter::{Finding, Severity};

pub(crate) fn fatal(what: &str, hint: &str) -> Finding {
    Finding {
        severity: Severity::Fatal,
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

pub(crate) fn bad_token() -> Finding {
    fatal(
        "Discord refuses the token.",
        "Reset it on the Bot page of the application in the developer portal and put the new one where token_env or token_file points.",
    )
}

pub(crate) fn warning(what: String, hint: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Warning,
        what,
        hint: hint.into(),
    }
}
