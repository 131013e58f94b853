//! The processes of a reader: how they are started, and how they end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use hugepage_facts::{Owner, Unread};
use hugepage_kernel::source::failures;
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, geteuid, getpid, kill_process, waitpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::child::{Role, become_child, send};
use super::{GRACE, UNTIL, door, of, owner, program};

/// What a reader may send, in bytes: a server has some kilobytes, and a history less than is read of it (`limit::HISTORY`).
const MAX_ANSWER: u64 = 8 << 20;

/// A reader that was started.
pub(super) struct StartedReader {
    pub(super) number: usize,
    /// The reader, and the processes that work for it.
    pub(super) pids: Vec<Pid>,
    pub(super) from: File,
    bytes: Vec<u8>,
}

pub(super) fn start<T: Serialize>(
    owner: &Owner,
    number: usize,
    role: Role,
    until: Instant,
    work: impl FnOnce() -> T,
) -> io::Result<StartedReader> {
    let parent = getpid();
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK)?;
    let mut helpers = Vec::new();
    let is_reader = role == Role::Reader;
    let begun = (|| {
        let mut beside = |role, is_needed: bool| {
            let started = is_needed.then(|| start_beside(owner, role, until, parent));
            started
                .transpose()
                .map(|started| started.map(|(pid, socket)| (helpers.push(pid), socket).1))
        };
        let may_trace = owner::is_another(owner) || !geteuid().is_root();
        let looks_at_some = !owner.processes.is_empty();
        let door = beside(Role::Door, is_reader && may_trace && looks_at_some)?;
        let runs = is_reader && program::is_there() && !owner::is_nobody(owner);
        let program = beside(Role::Program, runs)?;
        fork(until, || {
            let kept = [Some(&to), door.as_ref(), program.as_ref()];
            let kept: Vec<_> = kept.into_iter().flatten().map(AsFd::as_fd).collect();
            let became = become_child(owner, role, &kept, parent)
                .map_err(|error| format!("could not become that user: {error}"));
            door.into_iter().for_each(door::use_for_proc);
            program.into_iter().for_each(program::use_for_questions);
            send(to, &became.and_then(|()| complete(work)))
        })
    })();
    match begun {
        Ok(pid) => Ok(StartedReader {
            number,
            pids: [vec![pid], helpers].concat(),
            from: from.into(),
            bytes: Vec::new(),
        }),
        Err(error) => {
            let grace = Instant::now() + GRACE;
            for pid in helpers {
                has_ended(pid, grace);
            }
            Err(error)
        }
    }
}

/// Starts a process that works for a reader, at the other end of this socket.
fn start_beside(
    owner: &Owner,
    role: Role,
    until: Instant,
    parent: Pid,
) -> io::Result<(Pid, OwnedFd)> {
    let (socket, its) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let pid = fork(until, || {
        become_child(owner, role, &[its.as_fd()], parent)?;
        match role {
            Role::Door => door::serve(&its, owner),
            Role::Program | Role::Reader => program::serve(&its),
        }
    })?;
    Ok((pid, socket))
}

/// Starts a process that does `work` and ends. Nothing of this one goes on in it: neither its handlers of signals nor, after a panic, its
/// work.
fn fork(until: Instant, work: impl FnOnce() -> io::Result<()>) -> io::Result<Pid> {
    // SAFETY: this process has one thread, so that the child may do all that this one may (fork(2)).
    #[allow(unsafe_code)]
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(pid) = Pid::from_raw(pid) else {
        *of(&UNTIL) = Some(until);
        let done = catch_unwind(AssertUnwindSafe(work));
        let has_failed = !matches!(done, Ok(Ok(())));
        // SAFETY: nothing of the parent's is flushed or removed a second time.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(has_failed))
        }
    };
    Ok(pid)
}

/// What `work` returns, unless something looked absent to it that it could not open.
fn complete<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    failures::forget();
    let found = work();
    let is_complete = !failures::ran_short();
    is_complete
        .then_some(found)
        .ok_or_else(|| "had no more files or memory".to_owned())
}

/// Kills a reader, and returns whether it has ended before `until`.
pub(super) fn has_ended(pid: Pid, until: Instant) -> bool {
    let _ = kill_process(pid, Signal::KILL);
    loop {
        if !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl StartedReader {
    pub(super) fn pid(&self) -> Option<Pid> {
        self.pids.first().copied()
    }

    /// Reads what is there; whether that is all, or more than is read.
    pub(super) fn has_all(&mut self) -> bool {
        let room = (MAX_ANSWER + 1).saturating_sub(self.bytes.len() as u64);
        let read = self.from.by_ref().take(room).read_to_end(&mut self.bytes);
        read.map_or_else(|error| error.kind() != io::ErrorKind::WouldBlock, |_| true)
    }

    /// The answer of a reader that has sent all.
    pub(super) fn answer<T: DeserializeOwned>(self, owner: &Owner) -> Result<T, Unread> {
        let failed = |how: &str| owner::unread(owner, self.pid(), how);
        if self.bytes.len() as u64 > MAX_ANSWER {
            return Err(failed("sent more than 8 MB"));
        }
        match serde_json::from_slice::<Result<T, String>>(&self.bytes) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(failed(&why)),
            Err(_) => Err(failed("ended without an answer")),
        }
    }
}
