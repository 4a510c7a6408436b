//! The gateway's hidden plugin commands as an executable of their own, so that tests of plugins need no built `baton`:
//! `plugin probe FILE` and `plugin check-one FILE TEST [--config TEXT]`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use gateway_host::plugins::cli;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = match words.as_slice() {
        ["plugin", "probe", file] => cli::probe(Path::new(file)),
        ["plugin", "check-one", file, test] => cli::check_one(Path::new(file), test, None),
        ["plugin", "check-one", file, test, "--config", config] => {
            cli::check_one(Path::new(file), test, Some(config))
        }
        _ => return ExitCode::from(2),
    };
    // A parent that went away needs no answer.
    let _ = std::io::stdout().write_all(said.out.as_bytes());
    ExitCode::from(said.code)
}
