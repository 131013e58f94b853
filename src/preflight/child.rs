//! Runs a program and reads its output. The program has a deadline, inherits neither descriptors nor environment, and
//! ends with the statement that runs it.

use std::cell::{Cell, RefCell};
use std::ffi::{OsString, c_int};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pgrx::pg_sys;
use pgrx::prelude::*;

/// Longer output counts as no answer; longer error text is cut.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With exit status 0; its output.
    Success(String),
    /// With another status; its error text, never empty.
    Failure(String),
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
        if LATCH_WAS_SET.take() {
            // SAFETY: the latch is this process's own.
            #[allow(unsafe_code)]
            unsafe {
                pg_sys::SetLatch(pg_sys::MyLatch);
            }
        }
    }
}

/// Runs `program` in `directory`, and writes its error text to the file `stderr` there.
pub fn run(program: &Path, arguments: &[OsString], directory: &Path, deadline: Duration) -> io::Result<Ending> {
    let deadline = Instant::now() + deadline;
    let errors = directory.join("stderr");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
    // If the server needs this to find its libraries, so does the program.
    command.envs(std::env::var_os("LD_LIBRARY_PATH").map(|path| ("LD_LIBRARY_PATH", path)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&errors)?);
    #[allow(unsafe_code)]
    // SAFETY: the function only makes system calls, which are allowed between fork(2) and exec(2).
    unsafe {
        let parent = libc::getpid();
        command.pre_exec(move || before_exec(parent));
    }
    let mut running = match command.spawn() {
        Ok(child) => RunningChild(child),
        // A start would fail for this reason too.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(Ending::Failure(format!("could not execute \"{}\": {error}", program.display())));
        }
        Err(error) => return Err(error),
    };
    CLEANUP.with_borrow_mut(|cleanup| cleanup.child = i32::try_from(running.0.id()).ok());
    let Some(stdout) = running.0.stdout.take() else { return Err(io::Error::other("no pipe")) };
    let Some(output) = read_to_end(stdout, deadline)? else { return Ok(Ending::TooLate) };
    let status = loop {
        match running.0.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= deadline => return Ok(Ending::TooLate),
            // It has closed its output, so it will end soon.
            None => {
                wait(None, Duration::from_millis(1));
            }
        }
    };
    if status.success() {
        return Ok(Ending::Success(output));
    }
    let mut text = Vec::new();
    File::open(&errors)?.take(MAX_OUTPUT_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Ok(Ending::Failure(if text.is_empty() { status.to_string() } else { text }))
}

/// The output of the program; `None` at the deadline or if it is too long.
fn read_to_end(mut stdout: ChildStdout, deadline: Instant) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || text.len() as u64 > MAX_OUTPUT_BYTES {
            return Ok(None);
        }
        if !wait(Some(stdout.as_raw_fd()), left) {
            continue;
        }
        match stdout.read(&mut buffer)? {
            0 => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            count => text.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Waits until there is something to read, at most for `limit`; whether there is. A cancel, a timeout and the end of the
/// postmaster end the statement too.
#[allow(unsafe_code)]
fn wait(readable: Option<c_int>, limit: Duration) -> bool {
    let socket = readable.map_or(0, |_| pg_sys::WL_SOCKET_READABLE);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH | socket;
    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1);
    // SAFETY: the latch is this process's own, and the descriptor, if any, is open.
    let happened = unsafe {
        let events = i32::try_from(events).unwrap_or_default();
        let no_socket = pg_sys::PGINVALID_SOCKET;
        let happened = pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events,
            readable.unwrap_or(no_socket),
            limit,
            pg_sys::PG_WAIT_EXTENSION,
        );
        if happened.unsigned_abs() & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
            LATCH_WAS_SET.set(true);
        }
        happened.unsigned_abs()
    };
    pgrx::check_for_interrupts!();
    happened & pg_sys::WL_SOCKET_READABLE != 0
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
    /// Whether the latch was set while the program ran. Other code, such as the worker's main loop, waits for it, so it
    /// is set again afterwards.
    static LATCH_WAS_SET: Cell<bool> = const { Cell::new(false) };
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
