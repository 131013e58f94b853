//! Gathers facts from several files into one answer: every file is read once, and what can't be read is a note.

#[cfg(feature = "oracle")]
pub mod instances;
pub mod kernel_facts;
pub mod pools;
pub mod segments;
pub mod server;
#[cfg(feature = "oracle")]
pub mod stopped_databases;

use crate::PageSize;
use crate::notes::Notes;
use crate::read::Root;
use crate::read::cgroup::{CgroupLimits, Hierarchy};

/// The hugetlb hierarchy as [`Hierarchy::find`] saw it. `None`: it could not be told, and a note says why.
/// `Some(None)`: there is none, so nothing limits.
pub type CgroupView<'a> = Option<Option<&'a Hierarchy>>;

/// The cgroup limits on pages of `size`, with a note on what can't be seen of them.
pub fn limits(root: &Root, view: CgroupView<'_>, size: PageSize, notes: &mut Notes) -> Option<CgroupLimits> {
    let Some(hierarchy) = view? else { return Some(CgroupLimits::default()) };
    let limits = hierarchy.limits(root, size, notes);
    if limits.hidden_levels {
        notes.add("cgroup limits that can't be seen from here may hold too");
    }
    Some(limits)
}
