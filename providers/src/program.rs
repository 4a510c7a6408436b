//! What the providers that drive a program share: starting it in words for an operator, and its version.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use gateway_core::failure::detail;

use crate::process::{Child, ChildSpec, Line};

/// Why a program did not start, and what to do. `product` is what to install.
pub(crate) fn start_problem(product: &str, spec: &ChildSpec, error: &Error) -> String {
    let program = spec.program.display();
    match error.kind() {
        ErrorKind::NotFound => {
            format!("{program} does not exist; install {product}, or correct `binary`")
        }
        ErrorKind::PermissionDenied => {
            format!("{program} cannot be executed; check its permissions")
        }
        _ => format!("{program} could not be started: {error}"),
    }
}

/// What the program answers to `--version` within `limit`: the first word of its first line.
///
/// # Errors
/// With a sentence for the operator.
pub(crate) async fn version(
    product: &str,
    spec: &ChildSpec,
    limit: Duration,
) -> Result<String, String> {
    let mut child = Child::start(spec)
        .await
        .map_err(|error| start_problem(product, spec, &error))?;
    child.close_stdin();
    let first = tokio::time::timeout(limit, child.next_line()).await;
    let (_, stderr) = child.reap_with_stderr().await;
    match first {
        Ok(Some(Line::Text(line))) => {
            let word = line.split_whitespace().next();
            Ok(word.unwrap_or_default().to_owned())
        }
        _ => Err(format!(
            "`{} --version` said nothing: {}",
            spec.program.display(),
            detail::line(&stderr, false, None)
        )),
    }
}

/// `2.1.332` as numbers that compare as versions do; `None` = not a version.
pub(crate) fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}
