//! The real programs that tests drive. `BATON_TEST_CLAUDE`, `BATON_TEST_CODEX` and `BATON_TEST_OPENCODE` name them; else
//! they are what `scripts/test` left under `<workspace>/.tools`. Without one a test says SKIPPED with the reason; with
//! `BATON_REQUIRE_REAL=1` it fails.
#![allow(
    dead_code,
    reason = "each test executable uses the programs it is about"
)]

use std::path::{Path, PathBuf};

/// Claude Code.
pub(crate) fn claude() -> Option<PathBuf> {
    find(
        "BATON_TEST_CLAUDE",
        &[
            "@anthropic-ai/claude-code-linux-x64/claude",
            "@anthropic-ai/claude-code-linux-arm64/claude",
        ],
    )
}

/// Codex.
pub(crate) fn codex() -> Option<PathBuf> {
    find(
        "BATON_TEST_CODEX",
        &[
            "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ],
    )
}

/// OpenCode. The program without AVX2 comes last: it runs everywhere, and slower.
pub(crate) fn opencode() -> Option<PathBuf> {
    find(
        "BATON_TEST_OPENCODE",
        &[
            "opencode-linux-x64/bin/opencode",
            "opencode-linux-arm64/bin/opencode",
            "opencode-linux-x64-baseline/bin/opencode",
        ],
    )
}

fn find(variable: &str, installed: &[&str]) -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/node_modules");
    let found = std::env::var_os(variable)
        .map(PathBuf::from)
        .into_iter()
        .chain(installed.iter().map(|file| modules.join(file)))
        .find(|path| path.is_file());
    if found.is_none() {
        let reason =
            format!("no real program: {variable} is not set and .tools/node_modules has none");
        assert_ne!(
            std::env::var("BATON_REQUIRE_REAL").as_deref(),
            Ok("1"),
            "{reason}"
        );
        println!("SKIPPED: {reason}");
    }
    found
}
