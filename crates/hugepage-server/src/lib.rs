//! Gathers the facts about one server and the pools of its host, from files that each are read once.
//!
//! What can't be read is a note and an unknown fact, never a guess. Nothing here decides what a fact means: that is `hugepage_assess`.
//! [`history`] is the file in which a server keeps its records. What a program writes itself is in a [`SafeDirectory`].
//!
//! ```
//! use hugepage_kernel::{Notes, Root};
//! use hugepage_server::pools;
//!
//! let mut notes = Notes::default();
//! let rows = pools::rows(&Root::live(), None, &mut notes);
//! assert!(rows.iter().all(|row| row.pool.free <= row.pool.nr));
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod history;
pub mod kernel_facts;
pub mod placement;
pub mod pools;
pub mod safe_directory;
pub mod segments;
pub mod server;
pub mod transparent;

pub use safe_directory::SafeDirectory;

use hugepage_kernel::{CgroupLimits, Hierarchy, Notes, PageSize, Root};

/// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it; `None` if that failed, which a note tells.
pub type CgroupView<'a> = Option<&'a Option<Hierarchy>>;

/// The cgroup limits on pages of `size`; `None` if unknown. A note tells of limits that are not visible.
pub fn limits(
    root: &Root,
    view: CgroupView<'_>,
    size: PageSize,
    notes: &mut Notes,
) -> Option<CgroupLimits> {
    let Some(hierarchy) = view? else {
        return Some(CgroupLimits::default());
    };
    let limits = hierarchy.limits(root, size, notes);
    if limits.hidden_levels {
        notes.add("cgroup limits that are not visible from here may apply too");
    }
    Some(limits)
}
