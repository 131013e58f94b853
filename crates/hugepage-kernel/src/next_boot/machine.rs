//! What the machine and its kernel bring along for the next boot: page sizes, NUMA nodes, memory.

use std::collections::BTreeMap;

use super::kernel_words::{is_parameter, parameters};
use super::releases::Releases;
use crate::memory::meminfo::Meminfo;
use crate::memory::pool;
use crate::source::root::if_there;
use crate::{Bytes, PageSize, Pages, ReadError, Root};

/// The command line of the kernel that runs.
pub const RUNNING_COMMAND_LINE: &str = "/proc/cmdline";
const NODES_ONLINE: &str = "/sys/devices/system/node/online";
const SMALL: Option<PageSize> = PageSize::from_kib(4);
const HUGE: Option<PageSize> = PageSize::from_kib(2048);
const GIGANTIC: Option<PageSize> = PageSize::from_kib(1 << 20);

/// The machine, as the running kernel shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The page sizes of the running kernel; `None` if it does not show them.
    pub sizes: Option<Vec<PageSize>>,
    /// The base page of the running kernel.
    pub base: Option<PageSize>,
    /// The default size of the running kernel.
    pub running_default: Option<PageSize>,
    /// The default size of this kernel where its command line has none; `None` if that is not known.
    pub own_default: Option<PageSize>,
    /// The NUMA nodes; `None` if unknown.
    pub nodes: Option<Vec<u64>>,
    /// All memory; `None` if unknown.
    pub memory: Option<Bytes>,
    /// The pages that each pool has now, without surplus.
    pub pools: BTreeMap<PageSize, Pages>,
}

impl Machine {
    /// Reads what the running kernel shows.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let meminfo = if_there(Meminfo::read(root))?.unwrap_or_default();
        let command_line = if_there(root.read(RUNNING_COMMAND_LINE))?.unwrap_or_default();
        let mut found = Self {
            sizes: pool::sizes(root).ok().filter(|sizes| !sizes.is_empty()),
            base: root.base_page_size().ok(),
            running_default: meminfo.huge_page_size,
            own_default: meminfo.huge_page_size,
            nodes: if_there(root.read(NODES_ONLINE))?.and_then(|text| listed(text.trim())),
            memory: meminfo.mem_total.filter(|_| !meminfo.is_of_lxcfs),
            pools: BTreeMap::new(),
        };
        found.pools = match &found.sizes {
            Some(sizes) => {
                let pages = |size: &PageSize| Some((*size, pool::pool(root, *size).ok()?.persistent()));
                sizes.iter().filter_map(pages).collect()
            }
            None => found.running_default.zip(meminfo.huge_pages_total).into_iter().collect(),
        };
        if parameters(&command_line).iter().any(|(name, _)| is_parameter(name, "default_hugepagesz")) {
            found.own_default = HUGE.filter(|_| found.is_x86() || found.base == SMALL && found.has_listed(HUGE));
        }
        Ok(found)
    }

    /// The default size of a kernel whose command line has none. Kernels with another base page have another.
    pub fn default_of(&self, releases: &Releases) -> Option<PageSize> {
        self.own_default.filter(|_| releases.is_running || self.is_x86())
    }

    /// Whether the next kernel has pages of this size; `None` if unknown.
    pub fn has(&self, size: PageSize) -> Option<bool> {
        let bytes = size.bytes().0;
        if self.is_x86() {
            let may_be = Some(size) == HUGE || Some(size) == GIGANTIC;
            let is_listed = self.sizes.as_ref().is_none_or(|sizes| sizes.contains(&size));
            return if may_be && !is_listed { None } else { Some(may_be) };
        }
        let may_be = bytes.is_power_of_two() && (1 << 16..=1 << 34).contains(&bytes);
        match &self.sizes {
            Some(sizes) if may_be && !sizes.contains(&size) => None,
            _ => Some(may_be),
        }
    }

    /// How many parameters a kernel takes that limits them; `None` if unknown.
    pub fn parameters(&self) -> Option<usize> {
        (self.is_x86() && (self.base.is_none() || self.base == SMALL)).then_some(5)
    }

    /// Whether its pages have 2 MB and 1 GB and no other size, as on x86-64, whose kernels all have one default.
    fn is_x86(&self) -> bool {
        let is_known = |size: &PageSize| Some(*size) == HUGE || Some(*size) == GIGANTIC;
        match &self.sizes {
            Some(sizes) => sizes.iter().all(is_known),
            None => self.running_default.as_ref().is_some_and(is_known),
        }
    }

    fn has_listed(&self, size: Option<PageSize>) -> bool {
        self.sizes.as_ref().is_some_and(|sizes| size.is_some_and(|size| sizes.contains(&size)))
    }
}

/// A list such as `0-1,3` (admin-guide/cputopology).
fn listed(text: &str) -> Option<Vec<u64>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u64>().ok()?..=last.parse::<u64>().ok()?.min(4096))
    };
    Some(text.split(',').map(range).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}
