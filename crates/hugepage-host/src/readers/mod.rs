//! Reads what belongs to others: for each owner one process, which reads and parses as that user, and sends what it found. So the kernel
//! decides whether a file may be read, and a file system that does not answer hides its owner's servers and no others.
//!
//! A reader opens files as its owner, and is nobody's in all other ways: its owner can't signal it, limit it or look into it. It has no
//! capability. What the kernel shows only to whoever may trace a process, [`door`] opens for it, and [`program`] runs programs for it,
//! each a process of its own. All readers of one survey have one deadline. If one is stuck in the kernel, it is killed and reported, and
//! not started again while it is there.
//!
//! Before [`begin`], as in unit tests, this process itself reads everything.

mod child;
mod door;
mod filter;
pub mod owner;
mod program;
mod started;

use std::os::fd::AsFd;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hugepage_facts::{Owner, Unread};
use hugepage_kernel::source::failures;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::child::Role;
pub use self::child::limit_capabilities;
pub use self::program::{answer_with, ask};
use self::started::{StartedReader, has_ended, start};

/// So many read at the same time. Who waits for a file has one of these places.
const MAX_READERS: usize = 16;
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
    *of(&READERS) = Some(Readers {
        timeout,
        has_signal,
        stuck: Vec::new(),
        silent: Vec::new(),
    });
    begin_again();
}

/// Begins another survey.
pub fn begin_again() {
    if let Some(readers) = &mut *of(&READERS) {
        readers.silent.clear();
    }
    *of(&UNTIL) = of(&READERS)
        .as_ref()
        .map(|readers| Instant::now() + readers.timeout);
}

/// The time for one of several things that wait: at most half of what is left.
pub fn time_for_one(most: Duration) -> Duration {
    let left = of(&UNTIL).map(|until| until.saturating_duration_since(Instant::now()));
    left.map_or(most, |left| most.min(left / 2))
}

/// What `work` returns as `owner`, if it could read what is there.
#[track_caller]
pub fn read_as<T: Serialize + DeserializeOwned>(
    owner: &Owner,
    work: impl Fn() -> T,
) -> Result<T, Unread> {
    let complete = || {
        let found = work();
        (!failures::has_failed()).then_some(found)
    };
    one(owner, Role::Reader, complete)?.ok_or_else(|| owner::unread_in_part(owner))
}

/// What `work`, which runs a program, returns as `owner`.
#[track_caller]
pub fn run_as<T: Serialize + DeserializeOwned>(
    owner: &Owner,
    work: impl Fn() -> T,
) -> Result<T, Unread> {
    one(owner, Role::Program, work)
}

#[track_caller]
fn one<T: Serialize + DeserializeOwned>(
    owner: &Owner,
    role: Role,
    work: impl Fn() -> T,
) -> Result<T, Unread> {
    let mut all = each(std::slice::from_ref(owner), role, |_| work());
    all.pop()
        .unwrap_or_else(|| Err(owner::unread(owner, None, "no reader was started")))
}

/// What `work` returns for each of the owners, of which it gets the number: each by a reader of its own, all at the same time.
#[track_caller]
pub fn read_each<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    work: impl Fn(usize) -> T,
) -> Vec<Result<T, Unread>> {
    each(owners, Role::Reader, work)
}

#[track_caller]
fn each<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    role: Role,
    work: impl Fn(usize) -> T,
) -> Vec<Result<T, Unread>> {
    let Some(mut readers) = of(&READERS).take() else {
        return (0..owners.len()).map(|number| Ok(work(number))).collect();
    };
    let answers = readers.each(owners, role, Location::caller(), work);
    *of(&READERS) = Some(readers);
    answers
}

impl Readers {
    fn each<T: Serialize + DeserializeOwned>(
        &mut self,
        owners: &[Owner],
        role: Role,
        asks: &'static Location<'static>,
        work: impl Fn(usize) -> T,
    ) -> Vec<Result<T, Unread>> {
        let question = |owner: &Owner| (owner.place.clone(), owner.uid, asks);
        self.stuck
            .retain(|(pid, _)| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        let mut answers: Vec<_> = owners
            .iter()
            .map(|one| Err(owner::unread(one, None, "no time was left")))
            .collect();
        // Those that come later have their time, too.
        let until = Instant::now() + time_for_one(Duration::MAX);
        let mut next = 0;
        let mut running: Vec<StartedReader> = Vec::new();
        loop {
            while next < owners.len() && running.len() < MAX_READERS {
                let owner = &owners[next];
                if let Err(why) = self.may_ask(owner, &question(owner)) {
                    answers[next] = Err(why);
                    next += 1;
                    continue;
                }
                match start(owner, next, role, until, || work(next)) {
                    Ok(reader) => running.push(reader),
                    Err(error) => {
                        let why = format!("no process could be started: {error}");
                        answers[next] = Err(owner::unread(owner, None, why));
                        // The others, or those of another program, may end meanwhile.
                        break;
                    }
                }
                next += 1;
            }
            let is_over = Instant::now() >= until || self.has_signal.load(Ordering::Relaxed);
            if running.is_empty() && (is_over || next == owners.len()) {
                return answers;
            }
            if is_over {
                next = owners.len();
                for pid in running.iter().flat_map(|reader| &reader.pids) {
                    let _ = kill_process(*pid, Signal::KILL);
                }
            } else {
                wait(&running, until);
            }
            let grace = Instant::now() + GRACE;
            for at in (0..running.len()).rev() {
                if !is_over && !running[at].has_all() {
                    continue;
                }
                let reader = running.swap_remove(at);
                let owner = &owners[reader.number];
                let number = reader.number;
                let pids = reader.pids.clone();
                answers[number] = if is_over {
                    Err(owner::unread(owner, reader.pid(), "had no answer in time"))
                } else {
                    reader.answer(owner)
                };
                self.silent.extend(is_over.then(|| question(owner)));
                // A file system of its user's may keep it from its end.
                let left = pids.into_iter().filter(|pid| !has_ended(*pid, grace));
                self.stuck.extend(left.map(|pid| (pid, question(owner))));
            }
        }
    }

    /// An error where no reader is started for `owner`, because one had no answer to this question before.
    fn may_ask(&self, owner: &Owner, asked: &Question) -> Result<(), Unread> {
        if let Some((pid, _)) = self
            .stuck
            .iter()
            .find(|(_, stuck)| is_in_the_way(asked, stuck))
        {
            return Err(owner::unread(
                owner,
                Some(*pid),
                "still waits for an answer",
            ));
        }
        if self
            .silent
            .iter()
            .any(|silent| is_in_the_way(asked, silent))
        {
            Err(owner::unread(owner, None, "there was no answer before"))
        } else {
            Ok(())
        }
    }
}

/// Waits until one of them sends something, or has ended.
fn wait(running: &[StartedReader], until: Instant) {
    const STEP: Duration = Duration::from_millis(100);
    let left = until.saturating_duration_since(Instant::now()).min(STEP) + Duration::from_millis(1);
    let mut files: Vec<_> = running
        .iter()
        .map(|reader| PollFd::from_borrowed_fd(reader.from.as_fd(), PollFlags::IN))
        .collect();
    // What went wrong with it, the deadline ends.
    let _ = poll(&mut files, Timespec::try_from(left).ok().as_ref());
}
