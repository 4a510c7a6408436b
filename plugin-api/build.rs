//! Puts the compiler's version into the descriptor, so that a report about a plugin says what built it.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let text = version
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok())
        .unwrap_or_default();
    println!("cargo::rustc-env=PLUGIN_API_RUSTC={}", text.trim());
    println!("cargo::rerun-if-changed=build.rs");
}
