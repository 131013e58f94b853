//! The children of the asker, and what they leave behind: ended and collected together.
//!
//! A process whose parent has ended becomes a child of process 1. In a container that may be the postmaster, which takes the
//! end of a child that it does not know for the crash of a server process, and restarts the server. So the asker is the
//! subreaper of its descendants (prctl(2)): they become its own children. It has no others.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use hugepage_kernel::Root;
use hugepage_kernel::proc::process::{children, own_pid, stat};

use crate::{server, shmem};

/// The time to wait for the end of processes that were killed. One that waits for a disk is left.
const MAX_WAIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// Makes this process the parent of orphans among its descendants, for its whole life.
#[allow(unsafe_code)]
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: no pointer.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
#[allow(unsafe_code)]
pub fn has_ended(child: i32) -> io::Result<bool> {
    // SAFETY: a struct of numbers, which the call fills.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(libc::P_PID, child.unsigned_abs(), &raw mut found, options) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(found.si_pid() != 0)
    }
}

/// Whether this process has children, after those that have ended were collected.
#[allow(unsafe_code)]
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
    let is_own = own_pid(&root).is_ok_and(|pid| pid == own);
    if is_own { children(&root, own).unwrap_or_default() } else { Vec::new() }
}

fn kill(pid: i32) {
    // SAFETY: no pointer; a process or a group that this process has started and not collected.
    #[allow(unsafe_code)]
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

/// The status of the child `pid`, if it has ended.
fn collect(pid: i32) -> Option<ExitStatus> {
    let mut status = 0;
    // SAFETY: the pointer is that of a local variable.
    #[allow(unsafe_code)]
    let collected = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
    (collected == pid).then(|| ExitStatus::from_raw(status))
}
