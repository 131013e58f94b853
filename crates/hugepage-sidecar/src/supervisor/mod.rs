//! Watches over the process that reads. A read of a file of another process, or of a file system whose server is hostile,
//! may never return, and then no signal ends the process. So a command that reads a host runs in a child, and this process
//! waits for it no longer than its deadline.
//!
//! `watch` begins again without what does not answer. The child that waits for it is stopped, which has an effect once the
//! read returns: it is seen, the child is ended, and nothing is left out any more.

mod deadline;
mod message;
mod notify;
mod relay;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hugepage_kernel::source::current_read::MAX_LEFT_OUT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_parent_process_death_signal, waitpid,
};
use signal_hook::consts::SIGCHLD;
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

use self::deadline::Deadline;
pub use self::deadline::{begin_change, begin_reading, end_reading, time_for_program};
pub use self::message::Kind;
use self::notify::Notify;
use self::relay::Relays;
use crate::exit::{self, Exit};
use crate::signals::SignalTimer;

/// The time in which a process ends after a signal.
const GRACE: Duration = Duration::from_secs(3);

/// Runs `work`, whose value is an exit status, in a child, and waits `timeout` for each of its readings.
pub fn run(kind: Kind, timeout: Duration, work: &dyn Fn() -> Exit) -> io::Result<Exit> {
    // A caller may ignore the end of its children, and then nobody could wait for those of this process either.
    flag::register(SIGCHLD, Arc::default())?;
    let deadline = Deadline::new(timeout)?;
    let mut supervisor = Supervisor {
        kind,
        deadline,
        notify: Notify::from_environment(),
        signals: None,
        is_ending: false,
        last_count: (0, Instant::now()),
        stuck: Vec::new(),
    };
    let status = supervisor.run(work);
    supervisor.stuck.iter().for_each(|stuck| end(stuck.pid));
    status
}

struct Supervisor {
    kind: Kind,
    deadline: Deadline,
    notify: Notify,
    /// `None` until the first child has begun, which has no handlers of this process.
    signals: Option<SignalTimer>,
    /// Whether a signal came.
    is_ending: bool,
    /// The number of reads that were begun, and when it was seen first.
    last_count: (u64, Instant),
    stuck: Vec<Stuck>,
}

/// A process whose read does not return.
struct Stuck {
    pid: Pid,
    left_out: String,
}

struct Child {
    pid: Pid,
    /// Closed by the kernel when the child has ended.
    alive: OwnedFd,
    relays: Relays,
}

impl Supervisor {
    fn run(&mut self, work: &dyn Fn() -> Exit) -> io::Result<Exit> {
        loop {
            let mut child = self.start(work)?;
            if self.signals.is_none() {
                self.signals = Some(SignalTimer::new()?);
                self.notify.tell("READY=1");
            }
            if let Some(status) = self.until_expired(&mut child)? {
                return Ok(status);
            }
            if self.is_ending || !self.kind.begins_again() {
                if !self.is_ending {
                    self.kind.tell_expired(&self.why(), self.deadline.timeout());
                }
                end(child.pid);
                return Ok(if self.kind.begins_again() { exit::OK } else { exit::UNKNOWN });
            }
            let left_out = message::left_out(&self.deadline.shared.reads.path());
            self.kind.tell_expired(&self.why(), self.deadline.timeout());
            let _ = kill_process(child.pid, Signal::STOP);
            self.stuck.push(Stuck { pid: child.pid, left_out });
            self.leave_out();
            // Each keeps its memory.
            while self.stuck.len() >= MAX_LEFT_OUT {
                self.wait(None)?;
                if self.is_ending {
                    return Ok(exit::OK);
                }
            }
        }
    }

    fn start(&self, work: &dyn Fn() -> Exit) -> io::Result<Child> {
        let (relays, ends) = Relays::new()?;
        let (alive, kept) = pipe_with(PipeFlags::CLOEXEC)?;
        let parent = getpid();
        self.deadline.begin();
        // SAFETY: this process has one thread, so that the child may do all that this one may (fork(2)).
        #[allow(unsafe_code)]
        let pid = unsafe { libc::fork() };
        match Pid::from_raw(pid) {
            None => {
                let _kept = kept;
                let prepared = ends.take().and_then(|()| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
                self.signals.iter().for_each(SignalTimer::forget);
                if prepared.is_err() || getppid() != Some(parent) {
                    std::process::exit(exit::UNKNOWN.code());
                }
                self.deadline.keep_in_this_process();
                std::process::exit(work().code())
            }
            Some(_) if pid < 0 => Err(io::Error::last_os_error()),
            Some(pid) => Ok(Child { pid, alive, relays }),
        }
    }

    /// The exit status of the child; `None` if its deadline has passed.
    fn until_expired(&mut self, child: &mut Child) -> io::Result<Option<Exit>> {
        loop {
            let has_signal = self.wait(Some(child))?;
            child.relays.pass_on();
            if let Some((_, status)) = waitpid(Some(child.pid), WaitOptions::NOHANG)? {
                child.relays.pass_on();
                return Ok(Some(exit_of(status)));
            }
            if has_signal {
                // The caller sees by which signal the child has ended.
                let number = self.signals.as_ref().and_then(SignalTimer::last);
                let _ = kill_process(child.pid, number.and_then(Signal::from_named_raw).unwrap_or(Signal::TERM));
                self.deadline.end_within(GRACE);
            }
            if self.deadline.at().is_some_and(|at| at <= Instant::now()) {
                return Ok(None);
            }
        }
    }

    /// Waits for the end of the child or its output, a signal, the deadline, or until something is to be done again. Returns
    /// whether a signal came.
    fn wait(&mut self, child: Option<&Child>) -> io::Result<bool> {
        let step = (self.deadline.timeout() / 4).min(self.notify.watchdog().unwrap_or(Duration::MAX));
        let left = self.deadline.at().filter(|_| child.is_some());
        let left = left.map_or(step, |at| at.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let time = Timespec::try_from(left.min(step)).map_err(io::Error::other)?;
        let of_child =
            child.into_iter().flat_map(|child| std::iter::once(child.alive.as_fd()).chain(child.relays.files()));
        let files = of_child.chain(self.signals.iter().map(AsFd::as_fd));
        let mut files: Vec<_> = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        match poll(&mut files, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(files);
        let count = self.deadline.shared.reads.count();
        if count != self.last_count.0 {
            self.last_count = (count, Instant::now());
        }
        // Only while a survey runs, which ends or expires: where none can begin, systemd begins this service again.
        if child.is_some() {
            self.notify.tell("WATCHDOG=1");
        }
        self.end_returned();
        let has_signal = self.signals.as_mut().map_or(Ok(false), SignalTimer::has_signal)?;
        self.is_ending |= has_signal;
        Ok(has_signal)
    }

    /// Ends the processes whose read has returned: they have stopped before they did anything else.
    fn end_returned(&mut self) {
        let kind = self.kind;
        self.stuck.retain(|stuck| {
            let has_returned =
                !matches!(waitpid(Some(stuck.pid), WaitOptions::NOHANG | WaitOptions::UNTRACED), Ok(None));
            if has_returned {
                end(stuck.pid);
                let _ = waitpid(Some(stuck.pid), WaitOptions::empty());
                kind.tell_return(&stuck.left_out);
            }
            !has_returned
        });
        self.leave_out();
    }

    fn leave_out(&self) {
        self.deadline.shared.reads.leave_out(self.stuck.iter().map(|stuck| stuck.left_out.as_str()));
    }

    /// Why there was no answer in time.
    fn why(&self) -> String {
        let reads = &self.deadline.shared.reads;
        match self.last_count.1.elapsed() >= self.deadline.timeout() / 5 {
            true => message::no_answer(&reads.path()),
            false => message::too_slow(reads.count(), &reads.path()),
        }
    }
}

/// Kills a process. One that waits in the kernel ends later, and nobody waits for it.
fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// The exit status of a child; if a signal has ended it, this process ends by that signal, too.
fn exit_of(status: WaitStatus) -> Exit {
    if let Some(signal) = status.terminating_signal() {
        let _ = emulate_default_handler(signal);
    }
    status.exit_status().map_or(exit::UNKNOWN, Exit::of_child)
}
