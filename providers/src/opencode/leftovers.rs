//! Tools a server left running: the program starts them in groups of their own, so they are found by the mark their
//! environment inherited. On systems without `/proc` nothing is found.

/// The variable that names the server a process belongs to.
pub(super) const MARK: &str = "BATON_OPENCODE_SERVER";

/// Kills every process whose environment holds `mark` (`NAME=value`). Blocks: it reads the process table.
#[cfg(target_os = "linux")]
pub(super) fn end(mark: &str) {
    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    let kill = |name: &std::ffi::OsStr| {
        let pid = name.to_str()?.parse().ok().and_then(Pid::from_raw)?;
        // The handle comes first: whatever is read and killed through it is one and the same process.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let marked = pid != getpid() && variables.any(|variable| variable == mark.as_bytes());
        marked
            .then(|| pidfd_send_signal(&handle, Signal::KILL).ok())
            .flatten()
    };
    // A process that is forking can be missed once.
    for _ in 0..3 {
        let processes = std::fs::read_dir("/proc").into_iter().flatten();
        let found = processes
            .filter_map(Result::ok)
            .filter_map(|process| kill(&process.file_name()));
        if found.count() == 0 {
            break;
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_mark: &str) {}
