//! What a reader did not answer.

use std::fmt;

/// The files of one user that were not read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The user.
    pub uid: u32,
    /// The process that was to read them; `None` if none was started.
    pub pid: Option<i32>,
    /// What it read when its time was over; empty if unknown.
    pub path: String,
    /// Why there is no answer.
    pub why: Why,
}

/// Why a reader has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// A read did not return in time.
    NoAnswer,
    /// The reader of an earlier survey still waits, so that none was started.
    IsStuck,
    /// It ended without an answer, or sent what is none.
    Ended(String),
}

impl Unread {
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
        match (pid, why) {
            (Some(pid), Why::NoAnswer) => write!(f, "process {pid} had no answer in time")?,
            (Some(pid), Why::IsStuck) => write!(f, "process {pid} still waits for an answer")?,
            (Some(pid), Why::Ended(how)) => write!(f, "process {pid} {how}")?,
            (None, Why::Ended(how)) => f.write_str(how)?,
            (None, _) => f.write_str("no time was left")?,
        }
        if path.is_empty() { Ok(()) } else { write!(f, " (reading \"{path}\")") }
    }
}
