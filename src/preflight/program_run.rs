//! Runs a program and reads its output. The program has a deadline, inherits no descriptor, has the environment of a
//! start, and ends with the statement that runs it, and so do all processes that it starts.

use std::cell::RefCell;
use std::ffi::{OsString, c_int};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hugepage_start::Ending;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::descendants::{Subreaper, has_ended};
use super::environment;
use crate::latch::{LatchGuard, is_stopping, wait};

/// Longer output counts as no answer; longer error text is cut.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// The time between two checks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// The state that this process has to clean up, also after a FATAL error, which ends it without unwinding.
#[derive(Default)]
struct ExitCleanup {
    is_registered: bool,
    running: Option<(Child, Subreaper)>,
    directory: PathBuf,
}

thread_local! {
    static CLEANUP: RefCell<ExitCleanup> = RefCell::default();
}

/// The program that this process runs; on drop it is ended and collected, with all that it has started.
struct RunningProgram;

impl RunningProgram {
    /// Whether the program has ended.
    fn has_ended(&self) -> io::Result<bool> {
        CLEANUP.with_borrow(|cleanup| cleanup.running.as_ref().map_or(Ok(true), |(child, _)| has_ended(child)))
    }

    /// Ends the program if it still runs, and returns its exit status; an error if it can't be collected.
    fn end(self) -> io::Result<ExitStatus> {
        end_running().ok_or_else(|| io::Error::other("the program does not end"))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        end_running();
    }
}

fn end_running() -> Option<ExitStatus> {
    let (mut child, reaper) = CLEANUP.with_borrow_mut(|cleanup| cleanup.running.take())?;
    reaper.end(&mut child)
}

/// Runs `program` in `directory` with the environment that a start has.
#[expect(clippy::disallowed_methods, reason = "the stub")]
pub fn run(program: &Path, arguments: &[OsString], directory: &Path, deadline: Instant) -> io::Result<Ending> {
    let latch = LatchGuard;
    let reaper = Subreaper::begin()?;
    let mut errors = file_for_errors(directory)?;
    let mut command = Command::new(program);
    // A group of its own, by which all of it can be ended.
    command.process_group(0).args(arguments).current_dir(directory).env_clear().envs(environment::of_a_start());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    #[allow(unsafe_code)]
    // SAFETY: the function only makes system calls, which are allowed between fork(2) and exec(2).
    unsafe {
        let parent = libc::getpid();
        command.pre_exec(move || before_exec(parent));
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
    let stdout = child.stdout.take();
    CLEANUP.with_borrow_mut(|cleanup| cleanup.running = Some((child, reaper)));
    let running = RunningProgram;
    let mut output = ProgramOutput::new(stdout.ok_or_else(|| io::Error::other("no pipe"))?)?;
    // A process that the program leaves behind may hold the pipe, so that its end is not waited for.
    while !running.has_ended()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || output.is_too_long() {
            return Ok(too_late());
        }
        if is_stopping() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let pipe = (!output.has_ended).then(|| output.pipe.as_raw_fd());
        wait(&latch, c"HugepagesServerProgram", pipe, left.min(PAUSE));
        output.read()?;
    }
    let status = running.end()?;
    output.read()?;
    if output.is_too_long() {
        return Ok(too_late());
    }
    if status.success() {
        return Ok(Ending::Success(String::from_utf8_lossy(&output.text).into_owned()));
    }
    // The program writes through a copy of this descriptor, so both have one position.
    errors.rewind()?;
    let mut text = Vec::new();
    errors.take(MAX_OUTPUT_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Ok(if status.signal().is_some() || text.is_empty() {
        Ending::NoAnswer(format!("the check of the configuration ended with {status}"))
    } else {
        Ending::Failure(text)
    })
}

/// The end of a program that was killed at the deadline, or because of too much output.
fn too_late() -> Ending {
    let limit = super::TIME_LIMIT.as_secs();
    Ending::NoAnswer(format!("checking the configuration took longer than {limit} s"))
}

/// A file in memory, so that a full disk loses no error text; before Linux 3.17 a file in `directory`.
#[expect(clippy::disallowed_methods, reason = "a file in the stub")]
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

/// The output of the program.
struct ProgramOutput {
    pipe: ChildStdout,
    text: Vec<u8>,
    has_ended: bool,
}

impl ProgramOutput {
    /// Makes reading from `pipe` return at once.
    fn new(pipe: ChildStdout) -> io::Result<Self> {
        // SAFETY: no pointer; a descriptor of this process.
        #[allow(unsafe_code)]
        if unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { pipe, text: Vec::new(), has_ended: false })
    }

    /// Reads what is there.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while !self.has_ended && !self.is_too_long() {
            match self.pipe.read(&mut buffer) {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.text.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_too_long(&self) -> bool {
        self.text.len() as u64 > MAX_OUTPUT_BYTES
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

/// Registers a callback for the end of this process that removes `directory` and ends a program that still runs.
pub fn clean_up_at_exit(directory: &Path) {
    let first = CLEANUP.with_borrow_mut(|cleanup| {
        directory.clone_into(&mut cleanup.directory);
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
    end_running();
    #[expect(clippy::disallowed_methods, reason = "the stub")]
    let _ = fs::remove_dir_all(CLEANUP.with_borrow_mut(|cleanup| std::mem::take(&mut cleanup.directory)));
}
