//! The pages of a pool that no server and no service account has.

use std::fmt;

use hugepage_facts::PoolHolder;
use hugepage_kernel::{Bytes, Pages};

/// The pages of a pool that are in use and that no service account holds. Anybody may take free pages. If the pool grew with them, it
/// would never stop to grow, so no recommended number counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagesOfStrangers {
    /// How many.
    pub pages: Pages,
    /// The program that is known to hold the most of them; `None` if none is.
    pub largest: Option<PoolHolder>,
    /// Those of them that no process has.
    pub unattached: Vec<UnattachedSegment>,
}

/// A System V segment that no process has attached and that is, as far as the numbers tell, in the pool. It stays until it is
/// removed or the host boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnattachedSegment {
    /// Its `shmid`.
    pub id: u64,
    /// Its `key`.
    pub key: i32,
    /// Its size.
    pub size: Bytes,
    /// Its owner.
    pub owner: String,
    /// The process that used it last.
    pub last_pid: i32,
    /// Whether it is a remnant: of an Oracle account none of whose instances runs or starts. Others keep segments on purpose.
    pub is_remnant: bool,
}

impl fmt::Display for UnattachedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, key {:#010x}, owner {}, last process {})",
            self.id, self.size, self.key, self.owner, self.last_pid
        )
    }
}

impl PagesOfStrangers {
    /// A clause behind a sentence on a pool; empty if there are none.
    pub fn clause(&self) -> String {
        match self.pages {
            Pages(0) => String::new(),
            pages => format!(
                "; {pages} more are not counted, because {} holds them",
                self.holder()
            ),
        }
    }

    /// What gives them back that no process has, a clause in the imperative; `None` if there are none.
    pub fn removal(&self) -> Option<String> {
        let is_sure = self.unattached.iter().all(|one| one.is_remnant);
        let ids = self.unattached.iter().map(|one| format!(" -m {}", one.id));
        let ids: String = ids.collect();
        Some(match (&*ids, is_sure) {
            ("", _) => return None,
            (_, true) => format!("run \"ipcrm{ids}\""),
            _ => "ask the owners of the segments that no process has attached (\"ipcs -m\") whether these may go".to_owned(),
        })
    }

    /// Who holds them: `python3 (alice) and others`.
    pub fn holder(&self) -> String {
        if let [first, ..] = &self.unattached[..] {
            return format!(
                "shared memory of {} that no process has attached",
                first.owner
            );
        }
        let has_all =
            |one: &PoolHolder| !one.is_bound && one.pages.is_some_and(|pages| pages >= self.pages);
        match &self.largest {
            Some(largest) if has_all(largest) => largest.to_string(),
            Some(largest) => format!("{largest} with others"),
            None => "no service account".to_owned(),
        }
    }
}
