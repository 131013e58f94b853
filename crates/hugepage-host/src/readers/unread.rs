//! What a reader did not answer.

use std::fmt;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::Owner;
use crate::escape;

/// The files of one user that were not read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The user.
    pub uid: u32,
    /// [`Owner::place`].
    pub place: String,
    /// The process that was to read them; `None` if none was started.
    pub pid: Option<i32>,
    /// Why there is no answer: the end of a sentence on that process, or one of its own.
    pub why: String,
}

impl Unread {
    /// What the process `pid` did not read for `owner`.
    pub(super) fn of(owner: &Owner, pid: Pid, why: &str) -> Self {
        Self { pid: Some(pid.as_raw_pid()), ..Self::of_none(owner, why) }
    }

    /// What no process read for `owner`.
    pub(super) fn of_none(owner: &Owner, why: impl Into<String>) -> Self {
        Self { uid: owner.uid, place: owner.place.clone(), pid: None, why: why.into() }
    }

    /// Adds it, unless the same user's files were not read before, or some of the same place: it may have any number of users.
    pub fn add_to(self, all: &mut Vec<Self>) {
        let is_same = |other: &Self| other.place == self.place && (other.uid == self.uid || !self.place.is_empty());
        if !all.iter().any(is_same) {
            all.push(self);
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uid, place, pid, why } = self;
        let place = if place.is_empty() { String::new() } else { format!(" in {}", escape::line(place)) };
        write!(f, "the files of uid {uid}{place} were not read: ")?;
        if let Some(pid) = pid {
            write!(f, "process {pid} ")?;
        }
        f.write_str(why)
    }
}
