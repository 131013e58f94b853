//! Whether a collapse may begin, what it takes, and whether memory is left for the next range: decided from what was read.

use std::time::Duration;

use hugepage_kernel::{Bytes, Mapping, PageSize, Pages};

/// The base pages for which the kernel's page tables were measured.
const BASE: Bytes = Bytes(4 << 10);
/// What stays available on the smallest host.
const MIN_RESERVE: Bytes = Bytes(64 << 20);
/// The time of one range, and what each process of the server adds, as measured on Linux 6.18.
const RANGE_TIME: (Duration, Duration) = (Duration::from_millis(9), Duration::from_micros(150));

/// What was read of a server and its host; `None` is unknown, or a file that the kernel has not.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The kind of the instance: `postgresql`, or one of Oracle's.
    pub kind: String,
    /// The main segment of its postmaster.
    pub mapping: Option<Mapping>,
    /// The size of base pages.
    pub base: Option<PageSize>,
    /// The size of a range: `hpage_pmd_size`.
    pub range: Option<PageSize>,
    /// The word of `shmem_enabled`.
    pub shmem_enabled: Option<String>,
    /// The word of `hugepages-2048kB/shmem_enabled`.
    pub of_size: Option<String>,
    /// Whether the postmaster may have transparent huge pages (`THP_enabled`).
    pub thp_enabled: Option<bool>,
    /// What it has in transparent huge pages already.
    pub pmd_mapped: Bytes,
    /// The most that a process has resident of shared memory.
    pub resident: Bytes,
    /// The memory policy of the segment.
    pub policy: Option<String>,
    /// The nodes that the server may use, and those of this process.
    pub nodes: [Option<Vec<u32>>; 2],
    /// Whether this process is in the initial user namespace.
    pub is_in_initial_namespace: bool,
    /// Whether it has CAP_SYS_NICE, and may become the server's owner.
    pub is_privileged: bool,
}

impl Candidate {
    /// Why nothing is collapsed; empty if it may begin. `any_node`: ranges may go to other nodes than their pages are on.
    pub fn refusals(&self, any_node: bool) -> Vec<String> {
        if self.kind != "postgresql" {
            return vec![format!("it is an Oracle instance ({})", self.kind)];
        }
        let mut why = Vec::new();
        let mut refuse = |reason: &str| why.push(reason.to_owned());
        if !self.is_in_initial_namespace {
            refuse("this program is in a user namespace, where CAP_SYS_NICE does not count");
        }
        if !self.is_privileged {
            refuse("it takes CAP_SYS_NICE and the rights of the server's owner: run it as root");
        }
        match self.base.map(PageSize::bytes) {
            Some(BASE) => {}
            Some(size) => refuse(&format!("base pages have {size}, and only 4 kB was tried")),
            None => refuse("the size of base pages is unknown"),
        }
        match self.shmem_enabled.as_deref() {
            Some("deny") => refuse("transparent_hugepage/shmem_enabled is deny"),
            Some(_) => {}
            None => refuse(
                "this kernel has no transparent_hugepage/shmem_enabled, or it could not be read",
            ),
        }
        if let Some(word) = self.of_size.as_deref().filter(|word| *word != "inherit") {
            refuse(&format!(
                "transparent_hugepage/hugepages-2048kB/shmem_enabled is {word}, not inherit"
            ));
        }
        if self.thp_enabled == Some(false) {
            refuse("the server has transparent huge pages disabled (PR_SET_THP_DISABLE)");
        }
        why.extend(self.refusal_of_mapping());
        if !any_node {
            why.extend(self.refusal_of_nodes());
        }
        why
    }

    fn refusal_of_mapping(&self) -> Option<String> {
        let Some(range) = self.range else {
            return Some("the kernel has no hpage_pmd_size, or it could not be read".to_owned());
        };
        let Some(mapping) = &self.mapping else {
            return Some("the server's shared memory could not be read".to_owned());
        };
        if mapping.inaccessible > Bytes(0) {
            return Some("parts of its shared memory may not be accessed".to_owned());
        }
        match (mapping.page_size, self.base) {
            (None, _) => return Some("the pages of its shared memory are unknown".to_owned()),
            (Some(size), Some(base)) if size > base => {
                return Some(format!(
                    "its shared memory is in huge pages of {size} already"
                ));
            }
            _ => {}
        }
        if !mapping
            .start
            .wrapping_sub(mapping.offset)
            .is_multiple_of(range.bytes().0)
        {
            return Some(format!(
                "its shared memory begins at {:#x}, which is not aligned to {range}: shmem_enabled was never when it was mapped. \
                 Select advise before the next start",
                mapping.start
            ));
        }
        if self.ranges().is_empty() {
            return Some(format!("its shared memory has no whole range of {range}"));
        }
        let all = range.times(Pages(self.ranges().len() as u64));
        (self.pmd_mapped >= all)
            .then(|| "its shared memory is in transparent huge pages already".to_owned())
    }

    fn refusal_of_nodes(&self) -> Option<String> {
        let [server, own] = &self.nodes;
        let policy = self.policy.as_deref().unwrap_or_default();
        if policy.contains("interleave") {
            return Some(format!(
                "its NUMA policy is {policy}, and each range would go to one node: add --numa-any"
            ));
        }
        (server != own || server.is_none()).then(|| {
            "its cpuset allows other NUMA nodes than this program's, or they are unknown: add --numa-any"
                .to_owned()
        })
    }

    /// The first addresses of all whole ranges.
    pub fn ranges(&self) -> Vec<u64> {
        let (Some(mapping), Some(size)) = (&self.mapping, self.range) else {
            return Vec::new();
        };
        let size = size.bytes().0;
        let first = mapping.start.next_multiple_of(size);
        (first..mapping.end)
            .step_by(usize::try_from(size).unwrap_or(usize::MAX))
            .filter(|start| start.saturating_add(size) <= mapping.end)
            .collect()
    }

    /// The most memory that it takes: what is not resident yet.
    pub fn most(&self) -> Bytes {
        let all = self.mapping.as_ref().map_or(Bytes(0), Mapping::size);
        all.saturating_sub(self.resident)
    }
}

/// The time for `ranges` of a server with `processes`.
pub fn time(ranges: usize, processes: usize) -> Duration {
    let (range, process) = RANGE_TIME;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    range
        .saturating_add(process.saturating_mul(count(processes)))
        .saturating_mul(count(ranges))
}

/// The page tables of a process that has `tables`, and `resident` of shared memory, once that is in ranges.
pub fn tables_after(tables: Bytes, resident: Bytes) -> Bytes {
    // Eight bytes for each base page.
    tables.saturating_sub(Bytes(resident.0 / 512))
}

/// Memory that a range is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The name of it for users.
    pub name: String,
    /// All of it.
    pub total: Bytes,
    /// The part that is available.
    pub available: Bytes,
}

impl Room {
    /// What stays available of it.
    fn reserve(&self, percent: u32) -> Bytes {
        self.total.percent(percent).max(MIN_RESERVE)
    }

    /// What may be taken of it.
    pub fn left(&self, percent: u32) -> Bytes {
        self.available.saturating_sub(self.reserve(percent))
    }
}

/// Why `wanted` is not taken from `rooms`; `None` if it may be. No room at all is no permission.
pub fn brake(rooms: &[Room], percent: u32, wanted: Bytes) -> Option<String> {
    let Some(least) = rooms.iter().min_by_key(|room| room.left(percent)) else {
        return Some("available memory is unknown".to_owned());
    };
    (least.left(percent) < wanted).then(|| {
        format!(
            "{} has {} available, and keeps {}",
            least.name,
            least.available,
            least.reserve(percent)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn size(kib: u64) -> Option<PageSize> {
        PageSize::from_kib(kib)
    }

    /// A server of 512 MB that may be collapsed.
    fn candidate() -> Candidate {
        let start = 0x7f00_0020_0000;
        Candidate {
            kind: "postgresql".to_owned(),
            mapping: Some(Mapping {
                start,
                end: start + 512 * MIB - 4096,
                inaccessible: Bytes(0),
                shared: true,
                offset: 0,
                device: (0, 1),
                inode: 5,
                path: "/dev/zero (deleted)".to_owned(),
                page_size: size(4),
            }),
            base: size(4),
            range: size(2048),
            shmem_enabled: Some("never".to_owned()),
            of_size: Some("inherit".to_owned()),
            thp_enabled: Some(true),
            pmd_mapped: Bytes(0),
            resident: Bytes(200 * MIB),
            policy: Some("default".to_owned()),
            nodes: [Some(vec![0]), Some(vec![0])],
            is_in_initial_namespace: true,
            is_privileged: true,
        }
    }

    #[test]
    fn each_refusal_has_its_reason() {
        assert_eq!(candidate().refusals(false), Vec::<String>::new());
        let mapping = |change: &dyn Fn(&mut Mapping)| {
            let mut found = candidate();
            change(found.mapping.as_mut().unwrap());
            found
        };
        let word = |word: &str| Some(word.to_owned());
        for (server, reason) in [
            (
                Candidate {
                    kind: "asm".to_owned(),
                    ..candidate()
                },
                "Oracle",
            ),
            (
                Candidate {
                    is_in_initial_namespace: false,
                    ..candidate()
                },
                "user namespace",
            ),
            (
                Candidate {
                    is_privileged: false,
                    ..candidate()
                },
                "CAP_SYS_NICE",
            ),
            (
                Candidate {
                    base: size(64),
                    ..candidate()
                },
                "64 kB",
            ),
            (
                Candidate {
                    base: None,
                    ..candidate()
                },
                "base pages is unknown",
            ),
            (
                Candidate {
                    shmem_enabled: word("deny"),
                    ..candidate()
                },
                "deny",
            ),
            (
                Candidate {
                    shmem_enabled: None,
                    ..candidate()
                },
                "could not be read",
            ),
            (
                Candidate {
                    of_size: word("never"),
                    ..candidate()
                },
                "not inherit",
            ),
            (
                Candidate {
                    of_size: word("always"),
                    ..candidate()
                },
                "not inherit",
            ),
            (
                Candidate {
                    thp_enabled: Some(false),
                    ..candidate()
                },
                "PR_SET_THP_DISABLE",
            ),
            (
                Candidate {
                    range: None,
                    ..candidate()
                },
                "hpage_pmd_size",
            ),
            (
                Candidate {
                    mapping: None,
                    ..candidate()
                },
                "shared memory could not be read",
            ),
            (
                Candidate {
                    pmd_mapped: Bytes(512 * MIB),
                    ..candidate()
                },
                "transparent huge pages already",
            ),
            (mapping(&|its| its.start += 4096), "not aligned"),
            (mapping(&|its| its.offset = 4096), "not aligned"),
            (mapping(&|its| its.end = its.start + 8192), "no whole range"),
            (
                mapping(&|its| its.page_size = size(2048)),
                "huge pages of 2 MB already",
            ),
            (
                mapping(&|its| its.page_size = None),
                "pages of its shared memory are unknown",
            ),
            (
                mapping(&|its| its.inaccessible = Bytes(4096)),
                "may not be accessed",
            ),
            (
                Candidate {
                    policy: word("interleave:0-1"),
                    ..candidate()
                },
                "--numa-any",
            ),
            (
                Candidate {
                    policy: word("weighted interleave:0-1"),
                    ..candidate()
                },
                "--numa-any",
            ),
            (
                Candidate {
                    nodes: [Some(vec![0]), Some(vec![0, 1])],
                    ..candidate()
                },
                "--numa-any",
            ),
            (
                Candidate {
                    nodes: [None, None],
                    ..candidate()
                },
                "--numa-any",
            ),
        ] {
            let found = server.refusals(false);
            assert_eq!(found.len(), 1, "{reason}: {found:?}");
            assert!(found[0].contains(reason), "{reason}: {found:?}");
            assert_eq!(
                server.refusals(true).is_empty(),
                reason == "--numa-any",
                "{reason}"
            );
        }
        // Before 6.11 there is no file for the size, and old kernels have no THP_enabled.
        let old = Candidate {
            of_size: None,
            thp_enabled: None,
            ..candidate()
        };
        assert_eq!(old.refusals(false), Vec::<String>::new());
    }

    #[test]
    fn whole_ranges_and_what_they_take() {
        let found = candidate();
        let ranges = found.ranges();
        assert_eq!((ranges.len(), ranges[0]), (255, 0x7f00_0020_0000));
        assert_eq!(found.most(), Bytes(312 * MIB - 4096));
        assert_eq!(time(249, 20), Duration::from_millis(2988));
        assert_eq!(
            tables_after(Bytes(MIB), Bytes(200 * MIB)),
            Bytes(MIB - 400 * 1024)
        );
    }

    #[test]
    fn the_least_room_brakes() {
        let room = |name: &str, total, available| Room {
            name: name.to_owned(),
            total: Bytes(total * MIB),
            available: Bytes(available * MIB),
        };
        let host = room("the host", 10_000, 1002);
        assert_eq!(brake(std::slice::from_ref(&host), 10, Bytes(2 * MIB)), None);
        let node = room("node 1", 5000, 501);
        let why = brake(&[host, node], 10, Bytes(2 * MIB)).unwrap();
        assert!(why.starts_with("node 1 has 501 MB available"), "{why}");
        let small = room("a group", 100, 65);
        assert!(
            brake(&[small], 10, Bytes(2 * MIB))
                .unwrap()
                .ends_with("keeps 64 MB")
        );
        assert!(brake(&[], 10, Bytes(0)).is_some());
    }
}
