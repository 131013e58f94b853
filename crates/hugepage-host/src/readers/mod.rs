//! Reads what belongs to others: for each owner one process, which becomes that user, reads and parses, and sends what it found. So
//! the kernel decides whether a file may be read, and a file system that does not answer hides its owner's servers and no others.
//!
//! A reader has the groups of its user, and of root's powers only that to look at processes (CAP_SYS_PTRACE: with Grid Infrastructure
//! Oracle's program is setgid, so its own user may not see its maps). All readers of one survey have one deadline. If one is stuck in
//! the kernel, it is killed and reported, and not started again while it is there.
//!
//! Before [`begin`], as in unit tests, this process itself reads everything.

pub mod capabilities;
mod child;
mod owner;
mod unread;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hugepage_kernel::source::current_read::CurrentRead;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::child::{become_owner, send};
pub use self::owner::Owner;
pub use self::unread::Unread;

/// So many read at the same time.
const MAX_READERS: usize = 16;
/// What a reader may send, in bytes: a server has some kilobytes, and a history less than is read of it (`limit::HISTORY`).
const MAX_ANSWER: usize = 8 << 20;
/// The time that a reader has to end after it was killed.
const GRACE: Duration = Duration::from_millis(200);

/// What is known of readers in this process.
#[derive(Debug)]
struct Readers {
    timeout: Duration,
    /// Whether a signal came.
    has_signal: Arc<AtomicBool>,
    stuck: Vec<Stuck>,
    /// What had no answer in this survey, and is not asked again.
    silent: Vec<Question>,
}

/// A question to a user: outside of containers or within one, who, and the place in this program that asks. What does not answer one
/// of them may be another user's, such as the directory that a line of oratab names, and is in the way of no other.
type Question = (bool, u32, &'static Location<'static>);

/// A reader that was killed and has not ended.
#[derive(Debug)]
struct Stuck {
    pid: Pid,
    question: Question,
    path: String,
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
    all.pop().unwrap_or_else(|| Err(unread(owner, "no reader was started".to_owned())))
}

/// What `work` returns for each of the owners, of which it gets the number: each by a reader of its own, all at the same time.
#[track_caller]
pub fn read_each<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    work: impl Fn(usize) -> T,
) -> Vec<Result<T, Unread>> {
    let Some(mut readers) = of(&READERS).take() else {
        return owners.iter().enumerate().map(|(number, owner)| passed_on(owner, &work(number))).collect();
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
        let question = |owner: &Owner| (owner.is_in_container, owner.uid, asks);
        self.stuck.retain(|stuck| matches!(waitpid(Some(stuck.pid), WaitOptions::NOHANG), Ok(None)));
        let mut answers: Vec<Option<Result<T, Unread>>> = owners.iter().map(|_| None).collect();
        // Those that come later have their time, too.
        let until = Instant::now() + time_for_one(Duration::MAX);
        let (mut next, mut running): (usize, Vec<StartedReader>) = (0, Vec::new());
        loop {
            while running.len() < MAX_READERS && next < owners.len() {
                let number = next;
                next += 1;
                let owner = &owners[number];
                let started = self.may_ask(owner, &question(owner)).and_then(|()| {
                    let failed = |error| unread(owner, format!("no process could be started: {error}"));
                    start(owner, number, until, || work(number)).map_err(failed)
                });
                match started {
                    Ok(reader) => running.push(reader),
                    Err(why) => answers[number] = Some(Err(why)),
                }
            }
            if running.is_empty() {
                break;
            }
            let is_over = Instant::now() >= until || self.has_signal.load(Ordering::Relaxed);
            if is_over {
                for reader in running.drain(..) {
                    let owner = &owners[reader.number];
                    let (pid, path) = (reader.pid, reader.current.path());
                    answers[reader.number] = Some(Err(Unread::of(owner, pid, &path, "had no answer in time")));
                    self.silent.push(question(owner));
                    if !has_ended(pid) {
                        self.stuck.push(Stuck { pid, question: question(owner), path });
                    }
                }
                let none = |owner| Some(Err(unread(owner, "no time was left".to_owned())));
                (next..owners.len()).for_each(|number| answers[number] = none(&owners[number]));
                break;
            }
            wait(&running, until);
            for at in (0..running.len()).rev() {
                if running[at].has_all() {
                    let reader = running.swap_remove(at);
                    let (number, pid) = (reader.number, reader.pid);
                    let (question, path) = (question(&owners[number]), reader.current.path());
                    answers[number] = Some(reader.answer(&owners[number]));
                    // A file system of its user's may keep it from its end.
                    if !has_ended(pid) {
                        self.stuck.push(Stuck { pid, question, path });
                    }
                }
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// An error where no reader is started for `owner`, because one had no answer to this question before.
    fn may_ask(&self, owner: &Owner, question: &Question) -> Result<(), Unread> {
        if let Some(Stuck { pid, path, .. }) = self.stuck.iter().find(|stuck| stuck.question == *question) {
            return Err(Unread::of(owner, *pid, path, "still waits for an answer"));
        }
        // Of users in containers there is any number.
        let is_crowded = owner.is_in_container && self.stuck.len() >= MAX_READERS;
        match self.silent.contains(question) || is_crowded {
            true => Err(unread(owner, "there was no answer before".to_owned())),
            false => Ok(()),
        }
    }
}

/// What this process has read itself, as if a reader had sent it.
fn passed_on<T: Serialize + DeserializeOwned>(owner: &Owner, answer: &T) -> Result<T, Unread> {
    let passed = serde_json::to_vec(answer).and_then(|bytes| serde_json::from_slice(&bytes));
    passed.map_err(|error| unread(owner, error.to_string()))
}

fn unread(owner: &Owner, why: String) -> Unread {
    Unread { uid: owner.uid, pid: None, path: String::new(), why }
}

/// A reader that was started.
struct StartedReader {
    number: usize,
    pid: Pid,
    from: File,
    bytes: Vec<u8>,
    current: CurrentRead,
}

fn start<T: Serialize>(
    owner: &Owner,
    number: usize,
    until: Instant,
    work: impl FnOnce() -> T,
) -> io::Result<StartedReader> {
    let (current, parent) = (CurrentRead::new()?, getpid());
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: this process has one thread, so that the child may do all that this one may (fork(2)).
    #[allow(unsafe_code)]
    let pid = unsafe { libc::fork() };
    match Pid::from_raw(pid) {
        None => {
            drop(from);
            current.use_in_this_process();
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
        }
        Some(_) if pid < 0 => Err(io::Error::last_os_error()),
        Some(pid) => {
            rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK)?;
            Ok(StartedReader { number, pid, from: from.into(), bytes: Vec::new(), current })
        }
    }
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

/// Kills a reader, and returns whether it has ended.
fn has_ended(pid: Pid) -> bool {
    let _ = kill_process(pid, Signal::KILL);
    let until = Instant::now() + GRACE;
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
    /// Reads what is there; whether that is all.
    fn has_all(&mut self) -> bool {
        let mut buffer = [0; 64 << 10];
        loop {
            match self.from.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
            if self.bytes.len() > MAX_ANSWER {
                return true;
            }
        }
    }

    /// The answer of a reader that has sent all.
    fn answer<T: DeserializeOwned>(self, owner: &Owner) -> Result<T, Unread> {
        let failed = |how: &str| Unread::of(owner, self.pid, &self.current.path(), how);
        if self.bytes.len() > MAX_ANSWER {
            return Err(failed("sent more than 8 MB"));
        }
        match serde_json::from_slice::<Result<T, String>>(&self.bytes) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(failed(&format!("could not become that user: {why}"))),
            Err(_) => Err(failed("ended without an answer")),
        }
    }
}
