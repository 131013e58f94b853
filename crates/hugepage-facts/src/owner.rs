//! A user as whom files are read, and what was not read as one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::escape;

/// A user as whom files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user, as this program's user namespace has it.
    pub uid: u32,
    /// All groups; the first one becomes the group of the reader.
    pub groups: Vec<u32>,
    /// The container or the directory in which it reads; empty for the rest of the host.
    pub place: String,
    /// The processes that it looks at: of no other one its door opens a file.
    #[serde(skip)]
    pub processes: Vec<i32>,
}

impl Owner {
    /// The same user, who looks at these processes.
    pub fn of(&self, processes: impl IntoIterator<Item = i32>) -> Self {
        Self {
            processes: processes.into_iter().collect(),
            ..self.clone()
        }
    }
}

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
    /// Adds it, unless the same user's files were not read before, or some of the same place: it may have any number of users.
    pub fn add_to(self, all: &mut Vec<Self>) {
        let is_same = |other: &Self| {
            other.place == self.place && (other.uid == self.uid || !self.place.is_empty())
        };
        if !all.iter().any(is_same) {
            all.push(self);
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            uid,
            place,
            pid,
            why,
        } = self;
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" in {}", escape::line(place))
        };
        write!(f, "the files of uid {uid}{place} were not read: ")?;
        if let Some(pid) = pid {
            write!(f, "process {pid} ")?;
        }
        f.write_str(why)
    }
}
