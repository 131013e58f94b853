//! A program that this process runs, with all that it starts: ended and collected together, and nobody else.
//!
//! A process whose parent has ended becomes a child of process 1. In a container that may be the postmaster, which takes the
//! end of a child that it does not know for the crash of a server process, and restarts the server. So while a program
//! runs, its descendants become children of this process instead: it is their subreaper (prctl(2)).

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use hugepage_kernel::Root;
use hugepage_kernel::proc::process::{children, own_pid, stat};
use pgrx::pg_sys;

/// The time to wait for the end of processes that were killed; one that waits for a disk may take longer.
const MAX_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Makes this process the parent of orphans among its descendants, until it is dropped.
pub struct Subreaper {
    /// Whether this process was a subreaper before; restored on drop.
    before: c_int,
    /// The children of this process before; `None` if they can't be listed.
    children: Option<BTreeSet<i32>>,
}

impl Subreaper {
    /// Makes this process a subreaper. Without that no program may run where the postmaster is process 1.
    #[allow(unsafe_code)]
    pub fn begin() -> io::Result<Self> {
        let mut before: c_int = 0;
        // SAFETY: the pointer is that of a local variable.
        let result = unsafe {
            match libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut before) {
                0 => libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1),
                error => error,
            }
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { before, children: own_children() })
    }

    /// Ends `program`, the leader of a process group, and all processes that it has started.
    pub fn end(&self, program: &mut Child) -> Option<ExitStatus> {
        let Ok(group) = i32::try_from(program.id()) else { return None };
        // The group's number is not given to another one before its leader is collected.
        let began = stat(&Root::live(), group).ok().flatten().map(|program| program.start_ticks);
        kill(-group);
        let status = collect_leader(program);
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let in_group = collect(-group);
            let escaped = self.started_since(began);
            for pid in &escaped {
                kill(*pid);
                collect(*pid);
            }
            if (!in_group && escaped.is_empty()) || Instant::now() >= deadline {
                return status;
            }
            kill(-group);
            std::thread::sleep(PAUSE);
        }
    }

    /// The children of this process that came after it became a subreaper and began at that time or later: orphans that
    /// left their group. Others had a parent that this process has not started.
    fn started_since(&self, began: Option<u64>) -> Vec<i32> {
        let (Some(before), Some(began), Some(now)) = (&self.children, began, own_children()) else { return Vec::new() };
        let is_new =
            |pid: &i32| stat(&Root::live(), *pid).ok().flatten().is_some_and(|child| child.start_ticks >= began);
        now.difference(before).copied().filter(is_new).collect()
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        // SAFETY: no pointer.
        #[allow(unsafe_code)]
        unsafe {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, self.before);
        }
    }
}

/// Whether the process has ended; it stays to be collected.
#[allow(unsafe_code)]
pub fn has_ended(program: &Child) -> io::Result<bool> {
    // SAFETY: a struct of numbers, which the call fills.
    unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(libc::P_PID, program.id(), &raw mut found, options) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(found.si_pid() != 0)
    }
}

/// The status of the leader; `None` if it does not end although it was killed.
fn collect_leader(program: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        match program.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Ok(status) => return status,
            Err(_) => return None,
        }
    }
}

/// The children of this process; `None` where /proc shows another PID namespace, or no children.
fn own_children() -> Option<BTreeSet<i32>> {
    // SAFETY: set when the process starts.
    #[allow(unsafe_code)]
    let own = unsafe { pg_sys::MyProcPid };
    let root = Root::live();
    (own_pid(&root).ok()? == own).then(|| children(&root, own).ok())?.map(BTreeSet::from_iter)
}

fn kill(pid: i32) {
    // SAFETY: no pointer; a process or a group that this process has started and not collected.
    #[allow(unsafe_code)]
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Collects the child `pid`, or all of the process group `-pid`, that have ended; returns whether others are left.
fn collect(pid: i32) -> bool {
    loop {
        // SAFETY: the status is not asked for.
        #[allow(unsafe_code)]
        match unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } {
            1.. => {}
            0 => return true,
            _ => return false,
        }
    }
}
