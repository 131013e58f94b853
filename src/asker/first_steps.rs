//! The first steps of a child of the asker, between fork(2) and its work: system calls alone.

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;

/// The seconds of CPU time that a child may take.
const MAX_CPU_SECONDS: libc::rlim_t = 10;

/// The first steps of a child: it is killed when the asker ends, has a group and limits of its own, the signals of a new
/// process, and no descriptor but the standard ones and `kept`.
#[allow(unsafe_code)]
pub fn begin(parent: libc::pid_t, kept: Option<RawFd>) -> io::Result<()> {
    let checked = |result: c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
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
#[allow(unsafe_code)]
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
