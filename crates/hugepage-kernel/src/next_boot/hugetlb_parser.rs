//! The states of the kernel's parser of `hugepages=`, `hugepagesz=` and `default_hugepagesz=` (mm/hugetlb.c), for each release.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::kernel_words::{is_parameter, leading_count, memparse, sysctl_number};
use super::machine::Machine;
use super::releases::{COUNTS_OF_NODES, KernelSeries, PARSES_ANEW};
use crate::{Bytes, PageSize};

/// What one kernel makes of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BootPools {
    /// The default page size; `None` if it is the kernel's own, which is unknown.
    pub default_size: Option<PageSize>,
    /// The pages by size; `None` for a size that is named without a count.
    pub pages: BTreeMap<PageSize, Option<u64>>,
    /// Whether pages are for the default size, which is unknown.
    pub of_unknown_default: bool,
}

/// What was counted for one size.
#[derive(Clone, Debug, Default)]
struct BootCount {
    pages: u64,
    /// The pages of single NUMA nodes, which count instead.
    by_node: BTreeMap<u64, u64>,
}

/// The parser of one kernel.
pub struct HugetlbParser<'a> {
    release: KernelSeries,
    own_default: Option<PageSize>,
    machine: &'a Machine,
    is_valid: &'a dyn Fn(PageSize) -> bool,
    counts: BTreeMap<PageSize, Option<BootCount>>,
    /// The size that a count is for; `None` before the first one, for the default size.
    size: Option<PageSize>,
    /// The count before any size.
    implicit: Option<BootCount>,
    /// What the last count was for.
    last: Option<Option<PageSize>>,
    /// Whether the next count counts: not behind a size that was refused.
    takes_count: bool,
    default_size: Option<PageSize>,
}

impl<'a> HugetlbParser<'a> {
    /// The parser of a kernel with this release, default page size and page sizes.
    pub fn new(
        release: KernelSeries,
        own_default: Option<PageSize>,
        machine: &'a Machine,
        is_valid: &'a dyn Fn(PageSize) -> bool,
    ) -> Self {
        Self {
            release,
            own_default,
            machine,
            is_valid,
            counts: BTreeMap::new(),
            size: None,
            implicit: None,
            last: None,
            takes_count: true,
            default_size: None,
        }
    }

    /// What it makes of the words, of which it takes at most `limit`.
    pub fn pools(mut self, words: &[(String, Option<String>)], limit: usize) -> BootPools {
        let of_parser = words.iter().filter_map(|(name, value)| {
            let own = ["hugepages", "hugepagesz", "default_hugepagesz"];
            Some((own.into_iter().find(|own| is_parameter(name, own))?, value.as_deref()?))
        });
        for (name, value) in of_parser.take(limit) {
            match name {
                "hugepages" => self.count(value),
                "hugepagesz" => self.size(value),
                _ => self.default(value),
            }
        }
        let is_anew = self.parses_anew();
        let mut pools = self.end();
        // The kernel sets these as sysctl(8) would, before it starts init.
        let mut numbers = words.iter().rev().filter_map(|(name, value)| sysctl_of(name, value.as_deref()?));
        if let Some(number) = numbers.next().filter(|_| is_anew) {
            pools.set_default(number);
        }
        pools
    }

    fn parses_anew(&self) -> bool {
        self.release >= PARSES_ANEW
    }

    /// `hugepages=`
    fn count(&mut self, value: &str) {
        if !self.takes_count {
            self.takes_count = true;
            return;
        }
        // The second of two counts is ignored.
        if self.last == Some(self.size) {
            return;
        }
        let has_nodes = self.release >= COUNTS_OF_NODES;
        let machine = self.machine;
        let count = match self.size {
            Some(size) => self.counts.entry(size).or_default(),
            None => &mut self.implicit,
        };
        let count = count.get_or_insert_default();
        let is_valid = match has_nodes {
            true => count.add(value, machine).is_some(),
            false => {
                count.pages = leading_count(value).map_or(0, |(number, _)| number);
                true
            }
        };
        match is_valid {
            true => self.last = Some(self.size),
            false => *count = BootCount::default(),
        }
    }

    /// `hugepagesz=`
    fn size(&mut self, value: &str) {
        let valid = memparse(value).filter(|size| (self.is_valid)(*size));
        if !self.parses_anew() {
            match valid {
                Some(size) => self.add(size),
                None => self.takes_count = false,
            }
            return;
        }
        self.takes_count = false;
        let Some(size) = valid else { return };
        match self.counts.get(&size) {
            // Named before; that is allowed for the default size while it has no pages.
            Some(count) if self.default_size != Some(size) || count.as_ref().is_some_and(|count| count.pages > 0) => {
                return;
            }
            Some(_) => self.size = Some(size),
            None => self.add(size),
        }
        self.takes_count = true;
    }

    /// `default_hugepagesz=`
    fn default(&mut self, value: &str) {
        let size = memparse(value);
        if !self.parses_anew() {
            self.default_size = size;
            return;
        }
        self.takes_count = false;
        let Some(size) = size.filter(|size| self.default_size.is_none() && (self.is_valid)(*size)) else { return };
        self.add(size);
        self.takes_count = true;
        self.default_size = Some(size);
        if let Some(count) = self.implicit.take_if(|count| count.pages > 0) {
            self.counts.insert(size, Some(count));
        }
    }

    /// Makes a size the one that counts are for, unless it is there.
    fn add(&mut self, size: PageSize) {
        if let Entry::Vacant(vacant) = self.counts.entry(size) {
            vacant.insert(None);
            self.size = Some(size);
        }
    }

    /// Gives the count before any size to the default size.
    fn end(self) -> BootPools {
        let is_anew = self.parses_anew();
        let named = self.default_size.filter(|size| (self.is_valid)(*size));
        let default_size = named.or(self.own_default);
        let pages = |count: &Option<BootCount>| count.as_ref().map(BootCount::sum);
        let pages = self.counts.iter().map(|(size, count)| (*size, pages(count))).collect();
        let mut pools = BootPools { default_size, pages, of_unknown_default: false };
        let explicit = default_size.and_then(|size| pools.pages.get(&size).copied().flatten());
        let Some(implicit) = self.implicit.as_ref().map(BootCount::sum) else { return pools };
        let wins = match is_anew {
            true => implicit > 0 || explicit.is_none(),
            false => explicit.is_none_or(|explicit| explicit == 0),
        };
        // Before 5.8 nothing reserved gigantic pages of a size that was not known yet.
        let is_lost = !is_anew && default_size.is_some_and(|size| size.bytes() >= Bytes(1 << 30));
        if wins {
            pools.set_default(if is_lost { 0 } else { implicit });
        }
        pools
    }
}

impl BootCount {
    /// Takes `70`, or `0:70,1:70` by nodes; `None` if the kernel refuses it.
    fn add(&mut self, value: &str, machine: &Machine) -> Option<()> {
        let mut rest = value;
        while !rest.is_empty() {
            let (number, behind) = leading_count(rest)?;
            let Some(behind) = behind.strip_prefix(':') else {
                self.pages = number;
                return (rest.len() == value.len()).then_some(());
            };
            let (pages, behind) = leading_count(behind)?;
            machine.nodes.as_ref().is_none_or(|nodes| nodes.contains(&number)).then_some(())?;
            self.by_node.insert(number, pages);
            self.pages = self.pages.saturating_add(pages);
            let Some(behind) = behind.strip_prefix(',') else { break };
            rest = behind;
        }
        Some(())
    }

    /// What the kernel allocates.
    fn sum(&self) -> u64 {
        let by_node = self.by_node.values().fold(0_u64, |sum, pages| sum.saturating_add(*pages));
        if by_node > 0 { by_node } else { self.pages }
    }
}

impl BootPools {
    fn set_default(&mut self, number: u64) {
        match self.default_size {
            Some(size) => _ = self.pages.insert(size, Some(number)),
            None => self.of_unknown_default = true,
        }
    }
}

/// The number of `sysctl.vm.nr_hugepages=70`; `None` if it is another parameter, or the kernel refuses it.
fn sysctl_of(name: &str, value: &str) -> Option<u64> {
    let name = name.strip_prefix("sysctl.").or_else(|| name.strip_prefix("sysctl/"))?.replace('/', ".");
    matches!(name.as_str(), "vm.nr_hugepages" | "vm.nr_hugepages_mempolicy").then(|| sysctl_number(value)).flatten()
}
