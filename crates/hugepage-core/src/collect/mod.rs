//! Gathers facts from several files into one answer. Each file is read once, and what cannot be read is a note.

pub mod benefit;
pub mod fault_cost;
pub mod fault_sample;
#[cfg(feature = "oracle")]
pub mod instances;
pub mod kernel_facts;
pub mod nodes;
pub mod placement;
pub mod pools;
mod private_tables;
pub mod segments;
pub mod server;
pub mod start_errors;
pub mod start_options;
#[cfg(feature = "oracle")]
pub mod stopped_databases;

use crate::PageSize;
use crate::notes::Notes;
use crate::read::Root;
use crate::read::cgroup::{CgroupLimits, Hierarchy};

/// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it.
#[derive(Clone, Copy, Debug)]
pub enum CgroupView<'a> {
    /// It could not be determined; a note says why.
    Unknown,
    /// There is none, so nothing limits.
    Absent,
    /// This one limits.
    Present(&'a Hierarchy),
}

impl<'a> CgroupView<'a> {
    /// The process whose cgroup this is, as it is named below /proc.
    pub fn process(&self) -> &str {
        match self {
            Self::Present(hierarchy) => hierarchy.process(),
            Self::Unknown | Self::Absent => "self",
        }
    }

    /// The view of what was found; `None` stands for a failure that a note explains.
    pub const fn of(found: Option<&'a Option<Hierarchy>>) -> Self {
        match found {
            None => Self::Unknown,
            Some(None) => Self::Absent,
            Some(Some(hierarchy)) => Self::Present(hierarchy),
        }
    }
}

/// The cgroup limits on pages of `size`; `None` if unknown. A note tells of limits that are not visible.
pub fn limits(root: &Root, view: CgroupView<'_>, size: PageSize, notes: &mut Notes) -> Option<CgroupLimits> {
    let hierarchy = match view {
        CgroupView::Unknown => return None,
        CgroupView::Absent => return Some(CgroupLimits::default()),
        CgroupView::Present(hierarchy) => hierarchy,
    };
    let limits = hierarchy.limits(root, size, notes);
    if limits.hidden_levels {
        notes.add("cgroup limits that are not visible from here may apply too");
    }
    Some(limits)
}
