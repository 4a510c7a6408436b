//! The program: what must be true of the process before anything else runs, then the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First thing and exactly once: every TLS client panics without it.
    let installed = rustls::crypto::ring::default_provider().install_default();
    debug_assert!(
        installed.is_ok(),
        "nothing can have installed a provider before main"
    );
    gateway_host::cli::harden_process();
    gateway_host::cli::run(std::env::args_os())
}
