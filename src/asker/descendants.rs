//! The processes below the asker: the first steps of a child, between fork(2) and its work, and the end of all, which are ended and
//! collected together.
//!
//! A process whose parent has ended becomes a child of process 1. In a container that may be the postmaster, which takes the
//! end of a child that it does not know for the crash of a server process, and restarts the server. So the asker is the
//! subreaper of its descendants (prctl(2)): they become its own children. It has no others.

#![expect(unsafe_code, reason = "system calls")]

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use hugepage_kernel::Root;
use hugepage_kernel::proc::process::{children, stat};

use crate::{server, shmem};

/// The time to wait for the end of processes that were killed. One that waits for a disk is left.
const MAX_WAIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);
/// The seconds of CPU time that a child may take.
const MAX_CPU_SECONDS: libc::rlim_t = 10;

fn checked(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes this process the parent of orphans among its descendants, for its whole life.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })
}

/// The first steps of a child, system calls alone: it is killed when the asker ends, has a group and limits of its own, the signals of a new
/// process, and no descriptor but the standard ones and `kept`.
pub fn begin(parent: libc::pid_t, kept: Option<RawFd>) -> io::Result<()> {
    let limit = |resource, most| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is that of a local variable.
        unsafe {
            checked(libc::getrlimit(resource, &raw mut limit))?;
            limit.rlim_cur = limit.rlim_cur.min(most);
            checked(libc::setrlimit(resource, &raw const limit))
        }
    };
    // SAFETY: system calls with numbers, constants and local variables.
    unsafe {
        checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        if libc::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        checked(libc::setpgid(0, 0))?;
        limit(libc::RLIMIT_CPU, MAX_CPU_SECONDS)?;
        limit(libc::RLIMIT_CORE, 0)?;
        for signal in 1..libc::SIGRTMIN() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        // Where memory runs out, no server has to end for this.
        let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if score >= 0 {
            libc::write(score, c"1000".as_ptr().cast(), 4);
            libc::close(score);
        }
        let Some(kept) = kept else {
            // They are closed by exec(2), not here: std reports an error of exec through one of them.
            return for_descriptors(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC, |descriptor| {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            });
        };
        // Not even the standard ones: the logger waits for the end of the pipe that is standard error.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null < 0 {
            return Err(io::Error::last_os_error());
        }
        for standard in 0..=2 {
            libc::dup2(null, standard);
        }
        let close = |descriptor| {
            libc::close(descriptor);
        };
        let kept = kept.unsigned_abs();
        for_descriptors(3, kept.saturating_sub(1), 0, close)?;
        for_descriptors(kept + 1, u32::MAX, 0, close)
    }
}

/// Closes the descriptors in a range, or marks them (close_range(2)); one by one with `otherwise` before Linux 5.11.
fn for_descriptors(first: u32, last: u32, flags: libc::c_uint, otherwise: impl Fn(c_int)) -> io::Result<()> {
    // SAFETY: numbers alone.
    if first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) }.clamp(1024, 1 << 20);
    let last = u32::try_from(limit).map_or(last, |limit| last.min(limit));
    (first..=last).filter_map(|descriptor| c_int::try_from(descriptor).ok()).for_each(otherwise);
    Ok(())
}

/// Ends the child `leader`, which leads a process group, and all other descendants; its status, `None` if it does not end.
pub fn end(leader: i32) -> Option<ExitStatus> {
    let deadline = Instant::now() + MAX_WAIT;
    let mut status = None;
    loop {
        kill(-leader);
        status = status.or_else(|| collect(leader));
        let others = own_children().into_iter().filter(|pid| *pid != leader).collect::<Vec<_>>();
        for pid in &others {
            kill(*pid);
            collect(*pid);
        }
        if status.is_some() && others.is_empty() {
            return status;
        }
        if Instant::now() >= deadline {
            let left = others.first().copied().filter(|_| status.is_some()).unwrap_or(leader);
            if let Ok(Some(stat)) = stat(&Root::live(), left) {
                shmem::set_stuck_child(left, stat.start_ticks);
            }
            return status;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the child has ended; it stays to be collected.
pub fn has_ended(child: i32) -> io::Result<bool> {
    // SAFETY: a struct of numbers, which the call fills.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        checked(libc::waitid(libc::P_PID, child.unsigned_abs(), &raw mut found, options))?;
        Ok(found.si_pid() != 0)
    }
}

/// Whether this process has children, after those that have ended were collected.
pub fn are_left() -> bool {
    loop {
        // SAFETY: the status is not asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            1.. => {}
            0 => return true,
            _ => return false,
        }
    }
}

/// The child of an earlier asker that was killed and still waits for a file; `None` if there is none.
pub fn stuck() -> Option<i32> {
    let (pid, start) = shmem::stuck_child()?;
    let is_same = stat(&Root::live(), pid).ok().flatten().is_some_and(|stat| stat.start_ticks == start);
    is_same.then_some(pid)
}

/// The children of this process; none if /proc shows another PID namespace, or does not list them.
fn own_children() -> Vec<i32> {
    let (root, own) = (Root::live(), server::own_pid());
    let is_own = server::has_own_proc(&root).is_ok_and(|is_own| is_own);
    if is_own { children(&root, own).unwrap_or_default() } else { Vec::new() }
}

fn kill(pid: i32) {
    // SAFETY: no pointer; a process or a group that this process has started and not collected.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

/// The status of the child `pid`, if it has ended.
fn collect(pid: i32) -> Option<ExitStatus> {
    let mut status = 0;
    // SAFETY: the pointer is that of a local variable.
    let collected = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    (collected == pid).then(|| ExitStatus::from_raw(status))
}
