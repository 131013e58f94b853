//! What the files, the processes and the program of a PostgreSQL server say.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use hugepage_kernel::postgresql::pg_control::PgControl;
use hugepage_kernel::{Bytes, Configuration};
use serde::{Deserialize, Serialize};

/// The part of a running server that is PostgreSQL's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostgreSqlServer {
    /// The data directory, as the server itself sees it.
    pub directory: Option<String>,
    /// Device and inode of it: the same from wherever it is seen, whatever is mounted over its path elsewhere.
    pub inode: Option<(u64, u64)>,
    /// The owner of that directory; `None` if it is not seen.
    pub owner: Option<u32>,
    /// The system identifier (pg_control), as pg_controldata prints it.
    pub system_identifier: Option<String>,
    /// What its files and its processes say of its settings.
    #[serde(default)]
    pub settings: PostgreSqlSettings,
}

/// What the files and the processes of a running server say of its start and of the next one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PostgreSqlSettings {
    /// Whether its data directory is there, as far as that can be seen.
    pub can_see: bool,
    /// Whether its configuration file is there, as far as that can be seen: a server does not start without one.
    pub is_there: bool,
    /// The file or directory of the configuration that has changed last, of a missing file its directory; `None` if no time is seen.
    pub last_change: Option<(SystemTime, PathBuf)>,
    /// When the server began, in seconds of the clock of that time, as it says (`postmaster.pid`): after its process if a script became
    /// the server, and before it read its files.
    pub told_start: Option<SystemTime>,
    /// When the oldest of its processes started that are left; `None` if that is not seen.
    pub first_child: Option<SystemTime>,
    /// The settings of its files and of its command line.
    pub configured: Configured,
    /// Whether its postmaster has rings of io_uring; `None` if that may not be seen.
    pub has_rings: Option<bool>,
    /// The path of its program, if there is another file now.
    pub replaced_program: Option<String>,
    /// Whether it is the first process of a container, whose command line the next start repeats; `None` if that may not be seen.
    pub is_first_process: Option<bool>,
    /// What is in its data directory; `None` if that is not known.
    pub data: Option<DataDirectory>,
    /// What its program said of the next start; `None` if nobody asks one, or if nothing has changed.
    pub answer: Option<StartAnswer<Bytes>>,
}

/// Everything that a server is configured with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Configured {
    /// The settings of the files, names in lower case.
    pub files: BTreeMap<String, String>,
    /// The settings of its command line, which count before those of files; of several with one name the last.
    pub options: Vec<(String, String)>,
    /// The server's error for an included file that does not exist.
    pub missing: Option<String>,
    /// What of the files could not be read, or may be no valid syntax.
    pub unclear: Option<String>,
}

impl Configured {
    /// All of `files` and `options`.
    pub fn new(files: Configuration, options: Vec<(String, String)>) -> Self {
        Self {
            files: files.settings.into_iter().collect(),
            options,
            missing: files.missing,
            unclear: files.unclear,
        }
    }

    /// The effective settings.
    pub fn effective(&self) -> BTreeMap<&str, &str> {
        self.with(&self.options)
    }

    /// The settings of its files with these on the command line.
    pub fn with<'a>(&'a self, options: &'a [(String, String)]) -> BTreeMap<&'a str, &'a str> {
        let options = options.iter().map(|(name, value)| (&**name, &**value));
        let files = self.files.iter().map(|(name, value)| (&**name, &**value));
        files.chain(options).collect()
    }
}

/// What is in a data directory; an error is why it is not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataDirectory {
    /// Whether it is that of a standby (`standby.signal`), or may be one.
    pub is_standby: bool,
    /// Whether the next start recovers from an archive (`recovery.signal`), or may.
    pub recovers: bool,
    /// What global/pg_control has.
    pub control: Result<PgControl, String>,
    /// The number of replication slots.
    pub slots: Result<usize, String>,
}

/// The demand of a start, the server's error against it, or the reason why it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartAnswer<T, Text = String> {
    /// The start asks for this.
    Starts(T),
    /// The server would not start; the text of its error.
    Refuses(Text),
    /// The program was not asked, or its end says nothing about a start; the reason.
    Unknown(Text),
}

impl<T> StartAnswer<T> {
    /// What comes of the demand, if it is known.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> StartAnswer<U>) -> StartAnswer<U> {
        match self {
            Self::Starts(demand) => next(demand),
            Self::Refuses(error) => StartAnswer::Refuses(error),
            Self::Unknown(why) => StartAnswer::Unknown(why),
        }
    }
}
