//! A child of the asker: a program, or a function that may meet a file that does not answer. Each has a process group, a
//! deadline and limits of its own, inherits no descriptor, and is killed when the asker ends.

use std::cell::RefCell;
use std::ffi::{OsString, c_int};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hugepage_start::child_output::{ChildOutput, MAX_BYTES};
use hugepage_start::{Ending, not_checked};
use pgrx::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, getpid};

use super::{descendants, turn};
use crate::latch::{is_stopping, wait};

/// The time between two checks whether the child has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// The time limit for files that a child reads.
const READ_LIMIT: Duration = Duration::from_secs(3);
/// The exit status of a child that has not come to run the program.
const NOT_RUN: c_int = 255;
/// Variables that the program must not have: the service manager waits for messages of the postmaster.
const NOT_PASSED: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// What this process has to clean up when it ends, also after a FATAL error, which ends it without unwinding.
#[derive(Default)]
struct ExitCleanup {
    child: Option<Pid>,
    stub: Option<PathBuf>,
}

thread_local! {
    static CLEANUP: RefCell<ExitCleanup> = RefCell::default();
}

/// The child that runs; on drop it is ended and collected, with all that it has started.
struct RunningChild(Pid);

impl RunningChild {
    /// Reads `output` until the child has ended, and returns its status and what it wrote; `None` if it was killed, at the deadline or
    /// because of too much output.
    fn wait(self, output: OwnedFd, deadline: Instant) -> io::Result<Option<(ExitStatus, String)>> {
        let mut output = ChildOutput::new(output)?;
        // A process that the child leaves behind may hold the pipe, so that its end is not waited for.
        while !descendants::has_ended(self.0)? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || output.is_cut() {
                return Ok(None);
            }
            if is_stopping() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let pipe = output.pipe().map(|pipe| pipe.as_raw_fd());
            wait(pipe, left.min(PAUSE));
            output.read()?;
        }
        let status = end_child().ok_or_else(|| io::Error::other("the child does not end"))?;
        output.read()?;
        Ok((!output.is_cut()).then(|| (status, output.into_text())))
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        end_child();
    }
}

fn end_child() -> Option<ExitStatus> {
    descendants::end(CLEANUP.with_borrow_mut(|cleanup| cleanup.child.take())?)
}

/// Runs `program` after `create` in a child. The child waits for the file of the program to be read, as `Command::spawn`
/// would do here. Its environment is the postmaster's, which this process has inherited: LOCPATH, TZDIR and the like decide which
/// values are valid. `LC_ALL` makes errors English, and the server removes it before it reads any setting (main.c).
pub fn run(
    program: &Path,
    arguments: &[OsString],
    create: impl FnOnce() -> io::Result<()>,
    deadline: Instant,
) -> io::Result<Ending> {
    // In memory, so that a full disk loses no error text.
    let mut errors = File::from(memfd_create(c"pg_hugepages", MemfdFlags::CLOEXEC)?);
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    NOT_PASSED
        .iter()
        .for_each(|name| _ = command.env_remove(name));
    command.stdin(Stdio::null()).stderr(errors.try_clone()?);
    let (child, output) = fork(true, |output| {
        let created = create();
        let is_created = created.is_ok();
        let error = created.map_or_else(|error| error, |()| command.stdout(output).exec());
        // A start would fail for this reason too.
        let is_refusal = is_created
            && matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            );
        let program = if is_refusal {
            format!("could not execute \"{}\": ", program.display())
        } else {
            String::new()
        };
        let _ = write!(&errors, "{program}{error}");
        if is_refusal { 1 } else { NOT_RUN }
    })?;
    let Some((status, output)) = child.wait(output, deadline)? else {
        return Ok(Ending::NoAnswer(too_late(
            "checking the configuration",
            super::TIME_LIMIT,
        )));
    };
    // The program writes through a copy of this descriptor, so both have one position.
    errors.rewind()?;
    let mut text = Vec::new();
    errors.take(MAX_BYTES as u64).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    // Where memory has ended there may be no text.
    let is_told = status.code() == Some(NOT_RUN) && !text.is_empty();
    if is_told {
        Ok(Ending::NoAnswer(not_checked(&text)))
    } else {
        Ok(Ending::new(status, output, &text))
    }
}

/// Runs `work` in a child, and returns what it returns; an error if it has no answer in time.
pub fn read(what: &str, work: impl FnOnce() -> String) -> io::Result<String> {
    let (child, output) = fork(false, |mut output| {
        i32::from(output.write_all(work().as_bytes()).is_err())
    })?;
    match child.wait(output, Instant::now() + READ_LIMIT)? {
        Some((status, text)) if status.success() => Ok(text),
        Some((status, _)) => Err(io::Error::other(format!("{what} ended with {status}"))),
        None => Err(io::Error::other(too_late(what, READ_LIMIT))),
    }
}

/// Runs `work` in a child, which has no shared memory; its result is the exit status. What it writes is read from the descriptor.
#[allow(unsafe_code)]
fn fork(is_program: bool, work: impl FnOnce(File) -> c_int) -> io::Result<(RunningChild, OwnedFd)> {
    let (output, input) = io::pipe()?;
    // SAFETY: this process has one thread. The child calls nothing of the server but what lets go of its memory.
    let pid = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        // No handler of the server runs in the child.
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let parent = getpid();
        let forked = libc::fork();
        if forked == 0 {
            child(parent, OwnedFd::from(input), is_program, work);
        }
        let error = io::Error::last_os_error();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        let forked = (forked > 0).then(|| Pid::from_raw(forked));
        forked.flatten().ok_or(error)
    }?;
    CLEANUP.with_borrow_mut(|cleanup| cleanup.child = Some(pid));
    Ok((RunningChild(pid), output.into()))
}

/// The life of a child.
#[allow(unsafe_code)]
fn child(parent: Pid, output: OwnedFd, is_program: bool, work: impl FnOnce(File) -> c_int) -> ! {
    let work = || {
        descendants::begin(parent, (!is_program).then(|| output.as_raw_fd()))?;
        // A child that does not end must not keep the server's memory, with which no postmaster starts anew.
        // SAFETY: only the mappings of this process end; nothing of them is used any more.
        unsafe {
            pg_sys::PGSharedMemoryDetach();
        }
        io::Result::Ok(work(File::from(output)))
    };
    let status = catch_unwind(AssertUnwindSafe(work))
        .ok()
        .and_then(Result::ok)
        .unwrap_or(1);
    // SAFETY: ends this process, without the callbacks of its parent.
    unsafe { libc::_exit(status) }
}

/// For a child that was killed at the deadline, or because of too much output.
fn too_late(what: &str, limit: Duration) -> String {
    format!("{what} took longer than {} s", limit.as_secs())
}

/// Has `stub` removed when this process ends.
pub fn remove_at_exit(stub: &Path) {
    CLEANUP.with_borrow_mut(|cleanup| cleanup.stub = Some(stub.to_owned()));
}

/// Runs when the asker ends: ends a child that still runs, removes the stub, and lets the next asker work.
#[pg_guard]
pub extern "C-unwind" fn at_exit(_code: c_int, _arg: pg_sys::Datum) {
    end_child();
    turn::pass_on();
    #[expect(clippy::disallowed_methods, reason = "the stub")]
    let _ = CLEANUP
        .with_borrow_mut(|cleanup| cleanup.stub.take())
        .map(fs::remove_dir_all);
}
