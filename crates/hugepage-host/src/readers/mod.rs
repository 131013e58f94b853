//! Reads what belongs to others: for each owner one process, which becomes that user, reads and parses, and sends what it found. So
//! the kernel decides whether a file may be read, and a file system that does not answer hides its owner's servers and no others.
//!
//! A reader has the groups of its user, and of root's powers only that to look at processes (CAP_SYS_PTRACE: with Grid Infrastructure
//! Oracle's program is setgid, so its own user may not see its maps). All readers of one survey have one deadline. If one is stuck in
//! the kernel, it is killed and reported, and not started again while it is there.
//!
//! Before [`begin`], as in unit tests, this process itself reads everything.

mod child;
mod owner;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::child::limit_capabilities;
use self::child::{become_owner, send};
pub use self::owner::{Owner, Unread};

/// So many read at the same time. Who waits for a file has one of these places.
const MAX_READERS: usize = 64;
/// What a reader may send, in bytes: a server has some kilobytes, and a history less than is read of it (`limit::HISTORY`).
const MAX_ANSWER: u64 = 8 << 20;
/// The time that a reader has to end after it was killed.
const GRACE: Duration = Duration::from_millis(200);

/// What is known of readers in this process.
#[derive(Debug)]
struct Readers {
    timeout: Duration,
    /// Whether a signal came.
    has_signal: Arc<AtomicBool>,
    /// Those that were killed and have not ended.
    stuck: Vec<(Pid, Question)>,
    /// What had no answer in this survey, and is not asked again.
    silent: Vec<Question>,
}

/// A question to a user: where, who, and the place in this program that asks. What does not answer one of them may be another user's,
/// such as the directory that a line of oratab names, and is in the way of no other.
type Question = (String, u32, &'static Location<'static>);

/// Whether one that has no answer is in the way of another: within a container or a directory nothing else is asked then.
fn is_in_the_way(of: &Question, one: &Question) -> bool {
    of == one || !of.0.is_empty() && of.0 == one.0
}

/// `None` before the first survey, and in a reader: it starts none.
static READERS: Mutex<Option<Readers>> = Mutex::new(None);
/// When the readers of this survey have to be done.
static UNTIL: Mutex<Option<Instant>> = Mutex::new(None);

fn of<T>(state: &'static Mutex<T>) -> MutexGuard<'static, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on readers read, with `timeout` from here on, and less after `has_signal` is set; while this process has one thread.
pub fn begin(timeout: Duration, has_signal: Arc<AtomicBool>) {
    *of(&READERS) = Some(Readers { timeout, has_signal, stuck: Vec::new(), silent: Vec::new() });
    begin_again();
}

/// Begins another survey.
pub fn begin_again() {
    of(&READERS).iter_mut().for_each(|readers| readers.silent.clear());
    *of(&UNTIL) = of(&READERS).as_ref().map(|readers| Instant::now() + readers.timeout);
}

/// The time for one of several things that wait: at most half of what is left.
pub fn time_for_one(most: Duration) -> Duration {
    let left = of(&UNTIL).map(|until| until.saturating_duration_since(Instant::now()));
    left.map_or(most, |left| most.min(left / 2))
}

/// What `work` returns as `owner`.
#[track_caller]
pub fn read_as<T: Serialize + DeserializeOwned>(owner: &Owner, work: impl Fn() -> T) -> Result<T, Unread> {
    let mut all = read_each(std::slice::from_ref(owner), |_| work());
    all.pop().unwrap_or_else(|| Err(Unread::new(owner, None, "no reader was started")))
}

/// What `work` returns for each of the owners, of which it gets the number: each by a reader of its own, all at the same time.
#[track_caller]
pub fn read_each<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    work: impl Fn(usize) -> T,
) -> Vec<Result<T, Unread>> {
    let Some(mut readers) = of(&READERS).take() else {
        return (0..owners.len()).map(|number| Ok(work(number))).collect();
    };
    let answers = readers.read_each(owners, Location::caller(), work);
    *of(&READERS) = Some(readers);
    answers
}

impl Readers {
    fn read_each<T: Serialize + DeserializeOwned>(
        &mut self,
        owners: &[Owner],
        asks: &'static Location<'static>,
        work: impl Fn(usize) -> T,
    ) -> Vec<Result<T, Unread>> {
        let question = |owner: &Owner| (owner.place.clone(), owner.uid, asks);
        self.stuck.retain(|(pid, _)| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        let mut answers: Vec<_> = owners.iter().map(|one| Err(Unread::new(one, None, "no time was left"))).collect();
        // Those that come later have their time, too.
        let until = Instant::now() + time_for_one(Duration::MAX);
        let (mut next, mut running): (usize, Vec<StartedReader>) = (0, Vec::new());
        loop {
            while next < owners.len() && running.len() < MAX_READERS {
                let (number, owner) = (next, &owners[next]);
                next += 1;
                let started = self.may_ask(owner, &question(owner)).and_then(|()| {
                    let failed = |error| Unread::new(owner, None, format!("no process could be started: {error}"));
                    start(owner, number, until, || work(number)).map_err(failed)
                });
                match started {
                    Ok(reader) => running.push(reader),
                    Err(why) => answers[number] = Err(why),
                }
            }
            if running.is_empty() {
                return answers;
            }
            let is_over = Instant::now() >= until || self.has_signal.load(Ordering::Relaxed);
            if is_over {
                next = owners.len();
                running.iter().for_each(|reader| _ = kill_process(reader.pid, Signal::KILL));
            } else {
                wait(&running, until);
            }
            let grace = Instant::now() + GRACE;
            for at in (0..running.len()).rev() {
                if !is_over && !running[at].has_all() {
                    continue;
                }
                let reader = running.swap_remove(at);
                let (owner, number, pid) = (&owners[reader.number], reader.number, reader.pid);
                answers[number] = match is_over {
                    true => Err(Unread::new(owner, Some(pid), "had no answer in time")),
                    false => reader.answer(owner),
                };
                self.silent.extend(is_over.then(|| question(owner)));
                // A file system of its user's may keep it from its end.
                if !has_ended(pid, grace) {
                    self.stuck.push((pid, question(owner)));
                }
            }
        }
    }

    /// An error where no reader is started for `owner`, because one had no answer to this question before.
    fn may_ask(&self, owner: &Owner, asked: &Question) -> Result<(), Unread> {
        if let Some((pid, _)) = self.stuck.iter().find(|(_, stuck)| is_in_the_way(asked, stuck)) {
            return Err(Unread::new(owner, Some(*pid), "still waits for an answer"));
        }
        match self.silent.iter().any(|silent| is_in_the_way(asked, silent)) {
            true => Err(Unread::new(owner, None, "there was no answer before")),
            false => Ok(()),
        }
    }
}

/// A reader that was started.
struct StartedReader {
    number: usize,
    pid: Pid,
    from: File,
    bytes: Vec<u8>,
}

fn start<T: Serialize>(
    owner: &Owner,
    number: usize,
    until: Instant,
    work: impl FnOnce() -> T,
) -> io::Result<StartedReader> {
    let parent = getpid();
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: this process has one thread, so that the child may do all that this one may (fork(2)).
    #[allow(unsafe_code)]
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(pid) = Pid::from_raw(pid) else {
        drop(from);
        *of(&UNTIL) = Some(until);
        // Nothing of this process goes on in it: neither its handlers of signals nor, after a panic, its work.
        let answer = become_owner(owner, parent).map_err(|error| error.to_string());
        let work = || send(to, &answer.map(|()| work()));
        let sent = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        // SAFETY: nothing of the parent's is flushed or removed a second time.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(sent.is_err()))
        }
    };
    rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK)?;
    Ok(StartedReader { number, pid, from: from.into(), bytes: Vec::new() })
}

/// Waits until one of them sends something, or has ended.
fn wait(running: &[StartedReader], until: Instant) {
    const STEP: Duration = Duration::from_millis(100);
    let left = until.saturating_duration_since(Instant::now()).min(STEP) + Duration::from_millis(1);
    let mut files: Vec<_> =
        running.iter().map(|reader| PollFd::from_borrowed_fd(reader.from.as_fd(), PollFlags::IN)).collect();
    // What went wrong with it, the deadline ends.
    let _ = poll(&mut files, Timespec::try_from(left).ok().as_ref());
}

/// Kills a reader, and returns whether it has ended before `until`.
fn has_ended(pid: Pid, until: Instant) -> bool {
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
    /// Reads what is there; whether that is all, or more than is read.
    fn has_all(&mut self) -> bool {
        let room = (MAX_ANSWER + 1).saturating_sub(self.bytes.len() as u64);
        let read = self.from.by_ref().take(room).read_to_end(&mut self.bytes);
        read.map_or_else(|error| error.kind() != io::ErrorKind::WouldBlock, |_| true)
    }

    /// The answer of a reader that has sent all.
    fn answer<T: DeserializeOwned>(self, owner: &Owner) -> Result<T, Unread> {
        let failed = |how: &str| Unread::new(owner, Some(self.pid), how);
        if self.bytes.len() as u64 > MAX_ANSWER {
            return Err(failed("sent more than 8 MB"));
        }
        match serde_json::from_slice::<Result<T, String>>(&self.bytes) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(failed(&format!("could not become that user: {why}"))),
            Err(_) => Err(failed("ended without an answer")),
        }
    }
}
