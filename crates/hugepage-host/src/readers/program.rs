//! A process that runs a server's program for a reader, which itself may start none: it is the user in all ways, because PostgreSQL asks
//! for that, and so the user may stop it. It reads no file of the user's, and its end costs that user's answer alone.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{of, time_for_one};

/// Longer than any question.
const MAX_BYTES: usize = 200 << 10;

static ANSWER: OnceLock<fn(&str) -> String> = OnceLock::new();
/// The process that is asked; the error is why none is.
static OTHER: Mutex<Result<OwnedFd, &str>> =
    Mutex::new(Err("its program is started only as the user of the server"));

/// From now on beside each reader there is a process in which `answer` gets the text of a question and returns that of the answer.
pub fn answer_with(answer: fn(&str) -> String) {
    let _ = ANSWER.set(answer);
}

/// Whether there is one.
pub(super) fn is_there() -> bool {
    ANSWER.get().is_some()
}

/// Has this process ask `other`.
pub(super) fn use_for_questions(other: OwnedFd) {
    *of(&OTHER) = Ok(other);
}

/// Answers a reader, until that one has ended.
pub(super) fn serve(reader: &OwnedFd) -> io::Result<()> {
    let mut question = vec![0; MAX_BYTES];
    while let Some(answer) = ANSWER.get()
        && let (_, count @ 1..) = recv(reader, &mut question, RecvFlags::empty())?
    {
        let answer = answer(&String::from_utf8_lossy(&question[..count]));
        send(reader, answer.as_bytes(), SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// The answer to a question, by the process that is the user of this reader. The error is why there is none.
pub fn ask(question: &str) -> Result<String, String> {
    // Whoever gave no answer in time is not asked again: its answer may still come.
    let late = "its program had no answer in time";
    let other = mem::replace(&mut *of(&OTHER), Err(late))?;
    let failed = |error: rustix::io::Errno| format!("its program could not be started: {error}");
    send(&other, question.as_bytes(), SendFlags::NOSIGNAL).map_err(failed)?;
    // It takes half of what is left.
    let timeout = Timespec::try_from(time_for_one(Duration::MAX) * 3 / 2).ok();
    let mut socket = [PollFd::new(&other, PollFlags::IN)];
    if poll(&mut socket, timeout.as_ref()).map_err(failed)? == 0 {
        return Err(late.to_owned());
    }
    let mut answer = vec![0; MAX_BYTES];
    let (_, count) = recv(&other, &mut answer, RecvFlags::empty()).map_err(failed)?;
    answer.truncate(count);
    *of(&OTHER) = Ok(other);
    String::from_utf8(answer).map_err(|error| error.to_string())
}
