//! The processes below the asker: the first steps of a child, between fork(2) and its work, and the end of all, which are ended and
//! collected together.
//!
//! A process whose parent has ended becomes a child of process 1. In a container that may be the postmaster, which takes the
//! end of a child that it does not know for the crash of a server process, and restarts the server. So the asker is the
//! subreaper of its descendants (prctl(2)): they become its own children. It has no others.

#![expect(unsafe_code, reason = "system calls")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use hugepage_kernel::ROOT;
use hugepage_kernel::proc::process::{children, stat};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, chdir, getpid, getppid,
    getrlimit, kill_process, kill_process_group, set_child_subreaper,
    set_parent_process_death_signal, setpgid, setrlimit, wait, waitid, waitpid,
};

use super::turn;
use crate::server;

/// The time to wait for the end of processes that were killed. One that waits for a disk is left.
const MAX_WAIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);
/// The seconds of CPU time that a child may take.
const MAX_CPU_SECONDS: u64 = 10;

/// Makes this process the parent of orphans among its descendants, for its whole life.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The first steps of a child, system calls alone: it is killed when the asker ends, has a group and limits of its own, the signals of a new
/// process, and no descriptor but the standard ones and `kept`.
pub fn begin(parent: Pid, kept: Option<RawFd>) -> io::Result<()> {
    let limit = |resource, most: u64| {
        let Rlimit { current, maximum } = getrlimit(resource);
        let current = Some(current.map_or(most, |current| current.min(most)));
        setrlimit(resource, Rlimit { current, maximum })
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(io::Error::from_raw_os_error(libc::ECHILD));
    }
    setpgid(None, None)?;
    // One that does not end must not keep the file system of the data directory.
    chdir(c"/")?;
    limit(Resource::Cpu, MAX_CPU_SECONDS)?;
    limit(Resource::Core, 0)?;
    default_signals();
    #[expect(
        clippy::disallowed_methods,
        reason = "system calls alone, with paths of this program's"
    )]
    let open = |path, flags| openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
    // Where memory runs out, no server has to end for this.
    if let Ok(score) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY) {
        let _ = rustix::io::write(score, b"1000");
    }
    let Some(kept) = kept else {
        // They are closed by exec(2), not here: std reports an error of exec through one of them.
        return for_descriptors(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC, |descriptor| {
            // SAFETY: numbers alone.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        });
    };
    // Not even the standard ones: the logger waits for the end of the pipe that is standard error.
    let null = open(c"/dev/null", OFlags::RDWR)?.into_raw_fd();
    // SAFETY: numbers alone, of descriptors that this process does not use any more.
    let close = |descriptor| unsafe {
        libc::close(descriptor);
    };
    for standard in 0..=2 {
        // SAFETY: as above.
        unsafe { libc::dup2(null, standard) };
    }
    let kept = kept.unsigned_abs();
    for_descriptors(3, kept.saturating_sub(1), 0, close)?;
    for_descriptors(kept + 1, u32::MAX, 0, close)
}

/// Gives this process the signals of a new one.
fn default_signals() {
    // SAFETY: no handler of Rust's, and a local variable.
    unsafe {
        for signal in 1..libc::SIGRTMIN() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Closes the descriptors in a range, or marks them (close_range(2)); one by one with `otherwise` before Linux 5.11.
fn for_descriptors(
    first: u32,
    last: u32,
    flags: libc::c_uint,
    otherwise: impl Fn(c_int),
) -> io::Result<()> {
    // SAFETY: numbers alone.
    if first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) }.clamp(1024, 1 << 20);
    let last = u32::try_from(limit).map_or(last, |limit| last.min(limit));
    (first..=last)
        .filter_map(|descriptor| c_int::try_from(descriptor).ok())
        .for_each(otherwise);
    Ok(())
}

/// Ends the child `leader`, which leads a process group, and all other descendants; its status, `None` if it does not end.
pub fn end(leader: Pid) -> Option<ExitStatus> {
    let deadline = Instant::now() + MAX_WAIT;
    let mut status = None;
    loop {
        let _ = kill_process_group(leader, Signal::KILL);
        status = status.or_else(|| collect(leader));
        let others: Vec<_> = own_children()
            .into_iter()
            .filter(|pid| *pid != leader)
            .collect();
        for pid in &others {
            let _ = kill_process(*pid, Signal::KILL);
            collect(*pid);
        }
        if status.is_some() && others.is_empty() {
            return status;
        }
        if Instant::now() >= deadline {
            let left = others.first().filter(|_| status.is_some());
            let left = left.unwrap_or(&leader).as_raw_pid();
            if let Ok(Some(stat)) = stat(&ROOT, left) {
                turn::leave(|behind| behind.stuck_child = (left, stat.start_ticks));
            }
            return status;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the child has ended; it stays to be collected.
pub fn has_ended(child: Pid) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(child), options)?.is_some())
}

/// Whether this process has children, after those that have ended were collected.
pub fn are_left() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The child of an earlier asker that was killed and still waits for a file; `None` if there is none.
pub fn stuck() -> Option<i32> {
    let (pid, start) = turn::left().stuck_child;
    let is_same = stat(&ROOT, pid)
        .ok()
        .flatten()
        .is_some_and(|stat| stat.start_ticks == start);
    is_same.then_some(pid)
}

/// The children of this process; none if /proc shows another PID namespace, or does not list them.
fn own_children() -> Vec<Pid> {
    let is_own = server::has_own_proc().is_ok_and(|is_own| is_own);
    let own = is_own.then(|| children(&ROOT, server::own_pid()).ok());
    let pids = own.flatten().into_iter().flatten();
    pids.filter_map(Pid::from_raw).collect()
}

/// The status of the child `pid`, if it has ended.
fn collect(pid: Pid) -> Option<ExitStatus> {
    let (_, status) = waitpid(Some(pid), WaitOptions::NOHANG).ok()??;
    Some(ExitStatus::from_raw(status.as_raw()))
}
