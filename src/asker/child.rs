//! A child of the asker: a program, or a function that may meet a file that does not answer. Each has a process group, a
//! deadline and limits of its own, inherits no descriptor, and is killed when the asker ends.

use std::cell::RefCell;
use std::ffi::{OsString, c_int};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hugepage_start::Ending;
use hugepage_start::child_output::{ChildOutput, MAX_BYTES};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::first_steps::begin;
use super::{descendants, environment};
use crate::latch::{LatchGuard, is_stopping, wait};

/// The time between two checks whether the child has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// What this process has to clean up when it ends, also after a FATAL error, which ends it without unwinding.
#[derive(Default)]
struct ExitCleanup {
    is_registered: bool,
    child: Option<i32>,
    directory: Option<PathBuf>,
}

thread_local! {
    static CLEANUP: RefCell<ExitCleanup> = RefCell::default();
}

/// The end of a child.
enum ChildEnd {
    /// It ended by itself; what it wrote.
    Ended(ExitStatus, String),
    /// It was killed, at the deadline or because of too much output.
    Killed,
}

/// The child that runs; on drop it is ended and collected, with all that it has started.
struct RunningChild(i32);

impl RunningChild {
    fn new(pid: i32) -> Self {
        CLEANUP.with_borrow_mut(|cleanup| cleanup.child = Some(pid));
        Self(pid)
    }

    /// Reads `output` until the child has ended or the deadline has come.
    fn wait(self, output: OwnedFd, deadline: Instant) -> io::Result<ChildEnd> {
        let latch = LatchGuard;
        let mut output = ChildOutput::new(output)?;
        // A process that the child leaves behind may hold the pipe, so that its end is not waited for.
        while !descendants::has_ended(self.0)? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || output.is_cut() {
                return Ok(ChildEnd::Killed);
            }
            if is_stopping() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let pipe = output.pipe().map(|pipe| pipe.as_raw_fd());
            wait(&latch, c"HugepagesAsker", pipe, left.min(PAUSE));
            output.read()?;
        }
        let status = end_child().ok_or_else(|| io::Error::other("the child does not end"))?;
        output.read()?;
        Ok(if output.is_cut() { ChildEnd::Killed } else { ChildEnd::Ended(status, output.into_text()) })
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

/// Runs `program` in `directory` with the environment of a start.
#[expect(clippy::disallowed_methods, reason = "the stub")]
pub fn run(program: &Path, arguments: &[OsString], directory: &Path, deadline: Instant) -> io::Result<Ending> {
    let mut errors = file_for_errors(directory)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear().envs(environment::of_a_start());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    #[allow(unsafe_code)]
    // SAFETY: the function only makes system calls, which are allowed between fork(2) and exec(2).
    unsafe {
        let parent = libc::getpid();
        command.pre_exec(move || begin(parent, None));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        // A start would fail for this reason too, unless it is the directory that is missing.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
                && directory.is_dir() =>
        {
            return Ok(Ending::Failure(format!("could not execute \"{}\": {error}", program.display())));
        }
        Err(error) => return Err(error),
    };
    let running = RunningChild::new(c_int::try_from(child.id()).map_err(io::Error::other)?);
    let output = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
    let (status, output) = match running.wait(output.into(), deadline)? {
        ChildEnd::Ended(status, output) => (status, output),
        ChildEnd::Killed => return Ok(Ending::NoAnswer(too_late("checking the configuration", super::TIME_LIMIT))),
    };
    // The program writes through a copy of this descriptor, so both have one position.
    errors.rewind()?;
    let mut text = Vec::new();
    errors.take(MAX_BYTES as u64).read_to_end(&mut text)?;
    Ok(Ending::new(status, output, &String::from_utf8_lossy(&text)))
}

/// Runs `work` in a child, which has no shared memory, and returns what it returns; an error if it has no answer in time.
#[allow(unsafe_code)]
pub fn read(what: &str, deadline: Instant, work: impl FnOnce() -> String) -> io::Result<String> {
    let mut pipe = [0; 2];
    // SAFETY: an array of two descriptors.
    if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two new descriptors that nothing else owns.
    let (output, input) = unsafe { (OwnedFd::from_raw_fd(pipe[0]), OwnedFd::from_raw_fd(pipe[1])) };
    // SAFETY: this process has one thread. The child calls nothing of the server but what lets go of its memory.
    let pid = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        // No handler of the server runs in the child.
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let parent = libc::getpid();
        let forked = libc::fork();
        if forked == 0 {
            child(parent, input, work);
        }
        let error = io::Error::last_os_error();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if forked < 0 { Err(error) } else { Ok(forked) }
    }?;
    drop(input);
    match RunningChild::new(pid).wait(output, deadline)? {
        ChildEnd::Ended(status, text) if status.success() => Ok(text),
        ChildEnd::Ended(status, _) => Err(io::Error::other(format!("{what} ended with {status}"))),
        ChildEnd::Killed => Err(io::Error::other(too_late(what, super::READ_LIMIT))),
    }
}

/// The life of a child that is no program.
#[allow(unsafe_code)]
fn child(parent: libc::pid_t, output: OwnedFd, work: impl FnOnce() -> String) -> ! {
    let write = || {
        begin(parent, Some(output.as_raw_fd()))?;
        // A child that does not end must not keep the server's memory, with which no postmaster starts anew.
        // SAFETY: only the mappings of this process end; nothing of them is used any more.
        unsafe {
            pg_sys::PGSharedMemoryDetach();
        }
        File::from(output).write_all(work().as_bytes())
    };
    let succeeded = catch_unwind(AssertUnwindSafe(write)).is_ok_and(|written| written.is_ok());
    // SAFETY: ends this process, without the callbacks of its parent.
    unsafe { libc::_exit(i32::from(!succeeded)) }
}

/// For a child that was killed at the deadline, or because of too much output.
fn too_late(what: &str, limit: Duration) -> String {
    format!("{what} took longer than {} s", limit.as_secs())
}

/// A file in memory, so that a full disk loses no error text; before Linux 3.17 a file in `directory`.
#[expect(clippy::disallowed_methods, reason = "a file in the stub")]
fn file_for_errors(directory: &Path) -> io::Result<File> {
    // By number: old C libraries have no function for it. SAFETY: the name is a constant, and the descriptor is this process's own.
    #[allow(unsafe_code)]
    let descriptor = unsafe { libc::syscall(libc::SYS_memfd_create, c"pg_hugepages".as_ptr(), libc::MFD_CLOEXEC) };
    match c_int::try_from(descriptor) {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        Ok(descriptor @ 0..) => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => File::options().read(true).write(true).create_new(true).open(directory.join("stderr")),
    }
}

/// Registers a callback for the end of this process that removes `directory` and ends a child that still runs.
pub fn clean_up_at_exit(directory: &Path) {
    let first = CLEANUP.with_borrow_mut(|cleanup| {
        cleanup.directory = Some(directory.to_owned());
        !std::mem::replace(&mut cleanup.is_registered, true)
    });
    if first {
        // SAFETY: a function of this library, which is never unloaded.
        #[allow(unsafe_code)]
        unsafe {
            pg_sys::on_proc_exit(Some(at_exit), pg_sys::Datum::from(0));
        }
    }
}

#[pg_guard]
extern "C-unwind" fn at_exit(_code: c_int, _arg: pg_sys::Datum) {
    end_child();
    #[expect(clippy::disallowed_methods, reason = "the stub")]
    let _ = CLEANUP.with_borrow_mut(|cleanup| cleanup.directory.take()).map(fs::remove_dir_all);
}
