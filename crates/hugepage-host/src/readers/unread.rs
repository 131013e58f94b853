//! What a reader did not answer.

use std::fmt;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::Owner;

/// The files of one user that were not read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The user.
    pub uid: u32,
    /// The process that was to read them; `None` if none was started.
    pub pid: Option<i32>,
    /// What it read when its time was over; empty if unknown.
    pub path: String,
    /// Why there is no answer: the end of a sentence on that process, or one of its own.
    pub why: String,
}

impl Unread {
    /// What the process `pid` did not read for `owner`.
    pub(super) fn of(owner: &Owner, pid: Pid, path: &str, why: &str) -> Self {
        Self { uid: owner.uid, pid: Some(pid.as_raw_pid()), path: path.to_owned(), why: why.to_owned() }
    }

    /// Adds it, unless the same user's files were not read before.
    pub fn add_to(self, all: &mut Vec<Self>) {
        if all.iter().all(|other| other.uid != self.uid) {
            all.push(self);
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uid, pid, path, why } = self;
        write!(f, "the files of uid {uid} were not read: ")?;
        if let Some(pid) = pid {
            write!(f, "process {pid} ")?;
        }
        f.write_str(why)?;
        if path.is_empty() { Ok(()) } else { write!(f, " (reading \"{path}\")") }
    }
}
