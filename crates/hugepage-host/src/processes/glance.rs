//! A first look at a process, by its status alone: reading that file waits for no lock of the process.

use hugepage_kernel::fields::value;
use hugepage_kernel::proc::process::{ProcessStatus, Processes};
use hugepage_kernel::{Bytes, ReadError};

use crate::processes::credentials::Credentials;

/// What tells whether a process is worth a second look, of a file that needs no lock of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessGlance {
    /// `Name`: at most 15 bytes of the program's name, or of the one that the process has given itself.
    pub name: String,
    /// The users of the process; `None` in a tree that does not tell them.
    pub credentials: Option<Credentials>,
    /// The parent and the memory of the process.
    pub status: ProcessStatus,
}

impl ProcessGlance {
    fn parse(text: &str) -> Self {
        let name = value(text, "Name").unwrap_or_default().trim().to_owned();
        Self { name, credentials: Credentials::parse(text), status: ProcessStatus::parse(text) }
    }

    /// Whether the process has pages of a pool.
    pub fn holds_huge_pages(&self) -> bool {
        self.status.hugetlb_pages.is_some_and(|memory| memory > Bytes(0))
    }

    /// The resident memory of the process.
    pub fn resident(&self) -> Bytes {
        let ProcessStatus { rss_anon, rss_file, rss_shmem, hugetlb_pages, .. } = self.status;
        [rss_anon, rss_file, rss_shmem, hugetlb_pages].into_iter().flatten().fold(Bytes(0), Bytes::saturating_add)
    }
}

/// What the status of `pid` says of it; `Ok(None)` if it is gone. After the end of its first thread another one tells its memory.
pub fn glance(processes: &Processes<'_>, pid: i32) -> Result<Option<ProcessGlance>, ReadError> {
    let has_others = |text: &str| value(text, "Threads").is_some_and(|count| count.trim() != "1");
    let of = |thread| processes.status_text(thread, |text| (ProcessGlance::parse(text), has_others(text)));
    let is_alive = |seen: &ProcessGlance| seen.status.rss_anon.is_some();
    let Some((first, has_others)) = of(pid)? else { return Ok(None) };
    let threads = if has_others && !is_alive(&first) { processes.threads(pid) } else { Vec::new() };
    let alive = threads.into_iter().filter_map(|thread| Some(of(thread).ok()??.0)).find(is_alive);
    Ok(Some(alive.unwrap_or(first)))
}
