//! Programs that a dead gateway left running: helpers of a CLI, or tools it had started.
//!
//! The kernel kills the CLI itself the moment its gateway dies (`providers::process`), but not what the CLI had started.
//! So every program of a gateway carries the gateway's id in its environment, which its children inherit, and whoever
//! takes over from a dead gateway ends all processes that carry the dead one's id. No list of process ids is kept: ids
//! are used again, the mark is not, and it is also found on a helper that left its process group.
//!
//! Not found: a process that emptied its environment, or one of another user. On systems without `/proc` nothing is found.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use uuid::Uuid;

/// The variable that carries the id of the gateway a program belongs to.
pub const MARK: &str = "BATON_INSTANCE";
/// Looks at the process table: a process that is forking can be missed once, and one that is just starting a program has
/// an empty environment for a moment.
const ROUNDS: usize = 5;

/// What one look brought.
struct Look {
    ended: usize,
    /// Somebody's environment was empty, which may be for a moment only.
    again: bool,
}

/// Kills every process that belongs to this gateway, which must be dead; returns how many were found. Blocks: it reads
/// the process table.
pub fn end(owner: &str) -> usize {
    if Uuid::try_parse(owner).is_err() {
        return 0;
    }
    let mark = OsString::from(format!("{MARK}={owner}")).into_vec();
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let look = kill_marked(&mark);
        ended += look.ended;
        if look.ended == 0 && !look.again {
            break;
        }
    }
    if ended > 0 {
        tracing::warn!(
            owner,
            ended,
            "ended programs that a dead gateway had left running"
        );
    }
    ended
}

#[cfg(target_os = "linux")]
fn kill_marked(mark: &[u8]) -> Look {
    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    let pid_of = |name: OsString| Pid::from_raw(name.to_str()?.parse().ok()?);
    let mut look = Look {
        ended: 0,
        again: false,
    };
    let processes = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let others = processes
        .filter_map(|process| pid_of(process.file_name()))
        .filter(|pid| *pid != getpid());
    for pid in others {
        // The handle comes first: whatever is read and killed through it is one and the same process.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        let Ok(environment) = std::fs::read(format!("{folder}/environ")) else {
            continue;
        };
        if environment.is_empty() {
            // Threads of the kernel and the dead have none for ever, and no program either.
            look.again |= std::fs::read_link(format!("{folder}/exe")).is_ok();
        }
        let marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark);
        if marked && pidfd_send_signal(&handle, Signal::KILL).is_ok() {
            look.ended += 1;
        }
    }
    look
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_mark: &[u8]) -> Look {
    Look {
        ended: 0,
        again: false,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test starts its own victim")]
    fn sleeper(owner: &str) -> Child {
        // The shell's child has the mark by inheritance and is in a group of its own.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "sleep 60 & wait"])
            .env(MARK, owner)
            .spawn()
            .expect("a shell starts")
    }

    #[test]
    fn what_carries_the_mark_is_ended_and_nothing_else() {
        let (dead, living) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
        let (mut victim, mut other) = (sleeper(&dead), sleeper(&living));
        assert!(end(&dead) >= 1);
        assert_eq!(victim.wait().unwrap().signal(), Some(9));
        assert_eq!(end(&dead), 0);
        assert_eq!(other.try_wait().unwrap(), None);
        assert!(end(&living) >= 1);
        assert_eq!(other.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn what_is_no_id_ends_nothing() {
        assert_eq!(end(""), 0);
        assert_eq!(end("nobody"), 0);
    }
}
