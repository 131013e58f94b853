//! The pools that a kernel sets by its command line (mm/hugetlb.c).
//!
//! What the kernel makes of it depends on its release and on the page sizes that it has. [`CommandLine::read`] does what each kernel
//! that may be the next one would do; known is what all of them agree on. `tests/lab/command-lines.tsv` has what kernels
//! were seen to do.

use std::collections::{BTreeMap, BTreeSet};

use super::hugetlb_parser::{BootPools, HugetlbParser};
use super::kernel_words::{is_parameter, memparse, parameters, size_in_bytes};
use super::machine::Machine;
use super::pool_at_boot::PoolAtBoot;
use super::releases::{DROPS_COUNTS, KernelSeries, LIMITS_PARAMETERS, Releases};
use crate::{Bytes, PageSize, Pages};

/// What one command line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The file that it is from.
    pub file: String,
    /// The default page size that it leads to, or why that is unknown.
    pub default_size: Result<PageSize, String>,
    /// The pools that it sets, or may set.
    pub pools: BTreeMap<PageSize, PoolAtBoot>,
    /// Why nothing is known of its pools.
    pub not_understood: Option<String>,
}

impl CommandLine {
    /// Reads the words of `text`, which is from `file`, for a kernel of one of these releases on this machine.
    pub fn read(text: &str, file: &str, releases: &Releases, machine: &Machine) -> Self {
        let words = parameters(text);
        let own_default = machine.default_of(releases);
        let kernels = kernels(&words, releases, machine, own_default);
        let differs = format!("what the kernel makes of {file} depends on its release and its page sizes");
        let size_unknown = format!("the default page size of the kernel that {file} starts is unknown");
        let default_size = match kernels.first().map(|first| first.default_size) {
            Some(one) if kernels.iter().any(|pools| pools.default_size != one) => Err(differs.clone()),
            one => one.flatten().ok_or_else(|| size_unknown.clone()),
        };
        let sizes: BTreeSet<_> = kernels.iter().flat_map(|pools| pools.pages.keys()).copied().collect();
        let state = |size: PageSize| {
            let mut pages = kernels.iter().map(|pools| pools.pages.get(&size).copied().flatten());
            let one = pages.next().flatten();
            match one {
                _ if pages.any(|other| other != one) => PoolAtBoot::Unknown(differs.clone()),
                Some(1..) if is_gigantic(size) && uses_areas(&words) => {
                    PoolAtBoot::Unknown(format!("hugetlb_cma= in {file} may keep the kernel from reserving it"))
                }
                Some(number) => PoolAtBoot::Set { pages: Pages(number), file: file.to_owned() },
                None => PoolAtBoot::Unset,
            }
        };
        let needs_default = kernels.iter().any(|pools| pools.of_unknown_default);
        Self {
            pools: sizes.into_iter().map(|size| (size, state(size))).collect(),
            not_understood: not_understood(&words, file, releases, machine).or(needs_default.then_some(size_unknown)),
            default_size,
            file: file.to_owned(),
        }
    }

    /// What it sets the pool of `size` to.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        match &self.not_understood {
            Some(why) => PoolAtBoot::Unknown(why.clone()),
            None => self.pools.get(&size).cloned().unwrap_or(PoolAtBoot::Unset),
        }
    }
}

type Words = [(String, Option<String>)];

/// What each kernel that is possible makes of the words.
fn kernels(words: &Words, releases: &Releases, machine: &Machine, own_default: Option<PageSize>) -> Vec<BootPools> {
    let mut found = Vec::new();
    for release in releases.possible() {
        for limit in limits(release, machine) {
            for has_unknown_sizes in [true, false] {
                let is_valid = |size| machine.has(size).unwrap_or(has_unknown_sizes);
                let pools = HugetlbParser::new(release, own_default, machine, &is_valid).pools(words, limit);
                found.push(pools);
            }
        }
    }
    found
}

/// How many parameters that kernel may take.
fn limits(release: KernelSeries, machine: &Machine) -> Vec<usize> {
    const SMALLEST: usize = 5;
    match machine.parameters() {
        _ if release < LIMITS_PARAMETERS => vec![usize::MAX],
        Some(limit) => vec![limit],
        None => vec![SMALLEST, usize::MAX],
    }
}

/// Why nothing can be said of this line.
fn not_understood(words: &Words, file: &str, releases: &Releases, machine: &Machine) -> Option<String> {
    if words.iter().any(|(name, _)| name == "bootconfig") {
        return Some(format!("{file} has bootconfig, so that the initial RAM disk adds parameters"));
    }
    let is_size = |name: &str| is_parameter(name, "hugepagesz") || is_parameter(name, "default_hugepagesz");
    let mut sizes = words.iter().filter(|(name, _)| is_size(name)).map(|(_, value)| value.as_deref().unwrap_or(""));
    let has_bad_size = sizes.any(|value| memparse(value).is_none_or(|size| machine.has(size) != Some(true)));
    (has_bad_size && releases.possible().any(|release| release < DROPS_COUNTS)).then(|| {
        format!("{file} has a page size that the kernel may not know, which Linux before 4.7 treats otherwise")
    })
}

/// Whether the kernel may set memory aside for gigantic pages (CMA) instead of reserving them.
fn uses_areas(words: &Words) -> bool {
    let value =
        |value: &Option<String>| value.as_deref().is_none_or(|value| value.contains(':') || size_in_bytes(value) > 0);
    words.iter().any(|(name, size)| is_parameter(name, "hugetlb_cma") && value(size))
}

/// Whether it may be too large for the buddy allocator.
fn is_gigantic(size: PageSize) -> bool {
    size.bytes() > Bytes(2 << 20)
}
