//! Runs a program and reads its output. The program has a deadline, inherits no descriptor, has the environment of a
//! start, and ends with the statement that runs it.

use std::cell::RefCell;
use std::ffi::{OsString, c_int};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::environment;
use crate::latch::{LatchGuard, wait};

/// Longer output counts as no answer; longer error text is cut.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With exit status 0; its output.
    Success(String),
    /// With another status; its error text, never empty.
    Failure(String),
    /// By a signal, or with another status and no error text; which of them. This says nothing about what it was asked.
    Died(String),
    /// It was killed at the deadline, or because of too much output.
    TooLate,
}

/// The running program; killed and waited for on drop.
struct RunningChild(Child);

impl Drop for RunningChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        CLEANUP.with_borrow_mut(|cleanup| cleanup.child = None);
    }
}

/// Runs `program` in `directory` with the environment that a start has.
pub fn run(program: &Path, arguments: &[OsString], directory: &Path, deadline: Instant) -> io::Result<Ending> {
    let latch = LatchGuard;
    let mut errors = file_for_errors(directory)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear().envs(environment::of_a_start());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    #[allow(unsafe_code)]
    // SAFETY: the function only makes system calls, which are allowed between fork(2) and exec(2).
    unsafe {
        let parent = libc::getpid();
        command.pre_exec(move || before_exec(parent));
    }
    let mut running = match command.spawn() {
        Ok(child) => RunningChild(child),
        // A start would fail for this reason too, unless it is the directory that is missing.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
                && directory.is_dir() =>
        {
            return Ok(Ending::Failure(format!("could not execute \"{}\": {error}", program.display())));
        }
        Err(error) => return Err(error),
    };
    CLEANUP.with_borrow_mut(|cleanup| cleanup.child = i32::try_from(running.0.id()).ok());
    let Some(stdout) = running.0.stdout.take() else { return Err(io::Error::other("no pipe")) };
    let Some(output) = read_to_end(&latch, stdout, deadline)? else { return Ok(Ending::TooLate) };
    let status = loop {
        match running.0.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= deadline => return Ok(Ending::TooLate),
            // It has closed its output, so it will end soon.
            None => {
                wait(&latch, None, Duration::from_millis(1));
            }
        }
    };
    if status.success() {
        return Ok(Ending::Success(output));
    }
    // The program writes through a copy of this descriptor, so both have one position.
    errors.rewind()?;
    let mut text = Vec::new();
    errors.take(MAX_OUTPUT_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Ok(if status.signal().is_some() || text.is_empty() {
        Ending::Died(status.to_string())
    } else {
        Ending::Failure(text)
    })
}

/// A file in memory, so that a full disk loses no error text; before Linux 3.17 a file in `directory`.
fn file_for_errors(directory: &Path) -> io::Result<File> {
    // By number: old C libraries have no function for it.
    // SAFETY: the name is a constant, and the descriptor is this process's own.
    #[allow(unsafe_code)]
    let descriptor = unsafe { libc::syscall(libc::SYS_memfd_create, c"pg_hugepages".as_ptr(), libc::MFD_CLOEXEC) };
    match c_int::try_from(descriptor) {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        Ok(descriptor @ 0..) => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => File::options().read(true).write(true).create_new(true).open(directory.join("stderr")),
    }
}

/// The output of the program; `None` at the deadline or if it is too long.
fn read_to_end(latch: &LatchGuard, mut stdout: ChildStdout, deadline: Instant) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || text.len() as u64 > MAX_OUTPUT_BYTES {
            return Ok(None);
        }
        if !wait(latch, Some(stdout.as_raw_fd()), left) {
            continue;
        }
        match stdout.read(&mut buffer)? {
            0 => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            count => text.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Runs in the new process: it is killed when the backend ends, and inherits no descriptor.
#[allow(unsafe_code)]
fn before_exec(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: system calls without pointers.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        // They are closed by exec(2), not here: std reports an error of exec through one of them.
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) != 0 {
            // Before Linux 5.11.
            let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 1 << 20);
            for descriptor in 3..c_int::try_from(limit).unwrap_or(1 << 20) {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
    Ok(())
}

/// What to clean up after a FATAL error, which ends the process without unwinding.
#[derive(Default)]
struct Cleanup {
    registered: bool,
    child: Option<libc::pid_t>,
    directory: PathBuf,
}

thread_local! {
    static CLEANUP: RefCell<Cleanup> = RefCell::default();
}

/// When this process ends, removes `directory` and kills a program that still runs.
pub fn clean_up_at_exit(directory: &Path) {
    let first = CLEANUP.with_borrow_mut(|cleanup| {
        directory.clone_into(&mut cleanup.directory);
        !std::mem::replace(&mut cleanup.registered, true)
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
#[allow(unsafe_code)]
extern "C-unwind" fn at_exit(_code: c_int, _arg: pg_sys::Datum) {
    let Ok((child, directory)) = CLEANUP.try_with(|cleanup| {
        let cleanup = cleanup.take();
        (cleanup.child, cleanup.directory)
    }) else {
        return;
    };
    if let Some(child) = child {
        // SAFETY: a child of this process that has not been waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
    let _ = fs::remove_dir_all(directory);
}
