//! What refuses a running Oracle instance huge pages, and what it asks for at the next start.

use hugepage_assess::assessment::Start;
use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::{CurrentStart, Demand, LockLimit, Pending, PoolState, Segment};
use hugepage_facts::{Landing, LockRights, OracleSettings, Parameters};
use hugepage_kernel::fields::value;
use hugepage_kernel::{Bytes, KernelLimits, Notes, Rlimit, Root};

use crate::readers::parameters::{memory_target, sga_max_size, unclear};
use crate::readers::startup::refusal;
use crate::settings::{SIZED_BY, not_computed, requested_by};
use crate::sga::{EXTRA, are_of, rounded};
use crate::start_limits;

/// A running instance, as far as the kernel cares.
pub struct RunningLimits<'a> {
    /// The kernel's limits.
    pub kernel: &'a KernelLimits,
    /// What the kernel lets its PMON lock.
    pub rights: Option<&'a LockRights>,
    /// The memory that it may lock.
    pub memlock: Option<Rlimit>,
    /// `vm.hugetlb_shm_group`.
    pub group: Option<u64>,
}

impl RunningLimits<'_> {
    /// Whether the kernel may refuse it segments of `size` in huge pages, which it lets it have now, once `vm.hugetlb_shm_group` is
    /// `group`.
    pub fn loses_by(&self, group: Option<u64>, size: Bytes) -> bool {
        let then = RunningLimits { group, ..*self };
        self.lacks(false).is_none()
            && then
                .lacks(false)
                .is_some_and(|limit| limit.refuses(size) || limit.may_refuse(size))
    }

    /// What the kernel requires for System V segments in huge pages and the instance lacks: CAP_IPC_LOCK, `vm.hugetlb_shm_group`, or
    /// before 5.18 a limit on locked memory of at least their size. Whoever `is_let` has what its kernel requires.
    fn lacks(&self, is_let: bool) -> Option<LockLimit> {
        let gid = lacks_group(self.rights?, self.group?)?;
        match (
            Advisories::known().affects("shm_memlock", self.kernel.release.as_deref()?),
            self.memlock?,
        ) {
            // It is not in the group, so if it is let, it is by memlock.
            (counts, Rlimit::At(limit)) if counts.unwrap_or(is_let) => Some(LockLimit::Memlock {
                limit,
                others: Bytes(0),
            }),
            (Some(true), _) => None,
            _ if is_let => None,
            (Some(false), _) => Some(LockLimit::ShmGroup { gid }),
            (None, limit) => Some(LockLimit::Either {
                gid,
                limit: limit.bytes(),
            }),
        }
    }
}

/// Reads those of `pid`; `None` if they are not visible.
pub(crate) fn lock_rights(root: &Root, pid: i32) -> Option<LockRights> {
    let parse = |text: &str| {
        let numbers = |name| {
            value(text, name)
                .into_iter()
                .flat_map(str::split_ascii_whitespace)
        };
        let groups = numbers("Gid").chain(numbers("Groups"));
        Some(LockRights {
            capabilities: u64::from_str_radix(value(text, "CapEff")?.trim(), 16).ok()?,
            // The second of four.
            gid: numbers("Gid").nth(1)?.parse().ok()?,
            groups: groups.filter_map(|gid| gid.parse().ok()).collect(),
        })
    };
    root.read_short(&format!("/proc/{pid}/status"), parse)
        .ok()?
}

/// Its group, if it has neither CAP_IPC_LOCK nor the group of `vm.hugetlb_shm_group`.
fn lacks_group(rights: &LockRights, hugetlb_shm_group: u64) -> Option<u32> {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let is_let =
        rights.capabilities & CAP_IPC_LOCK != 0 || rights.groups.contains(&hugetlb_shm_group);
    (!is_let).then_some(rights.gid)
}

/// What refuses the running instance huge pages, and what its next start asks for.
pub fn next_start(
    settings: &OracleSettings,
    current: &CurrentStart<'_>,
    limits: &RunningLimits<'_>,
    notes: &mut Notes,
) -> (Option<LockLimit>, Pending) {
    let is_let = current
        .segment
        .is_some_and(|segment| segment.in_huge_pages > Bytes(0));
    let landed = current.landing();
    // A part of the segments may be small enough for memlock.
    let not_huge = current.segment.filter(|_| landed != Landing::Hugetlb);
    let missing = not_huge.and_then(|segment| {
        let is_cause = |limit: &LockLimit| !is_let || limit.refuses(segment.to_reserve);
        limits.lacks(is_let).filter(is_cause)
    });
    let logged = || refusal(settings.start.as_ref()?, current.segment?.to_reserve);
    let is_short = matches!(landed, Landing::Base | Landing::Mixed);
    let lock_limit = missing.or_else(|| logged().filter(|_| is_short));
    if missing.is_none() && lock_limit == Some(LockLimit::Unexplained) {
        notes.add(
            "the start found enough huge pages and did not take all of them: compare kernel.shmall, the NUMA policy and the \
                 limits of its owner with the alert log",
        );
    }
    let pending = match (&settings.parameters, current.segment) {
        _ if current.requested.is_automatic_asm() => Pending::Unchanged,
        (None, _) if settings.is_unread => Pending::Unknown,
        (_, None) => Pending::Unchanged,
        (Some(next), Some(segment))
            if let Some(why) = not_computed(settings, &[SIZED_BY[0], SIZED_BY[1], "lock_sga"])
                .or_else(|| unclear(next, sga_max_size(next).max(Some(segment.size)))) =>
        {
            notes.add(format!("{why}, so what the next start needs is unknown"));
            Pending::Unknown
        }
        (next, Some(segment)) => {
            let requested = current.requested;
            let shared_memory = segment.to_reserve;
            let unchanged = Demand {
                requested,
                max_connections: 0,
                shared_memory,
            };
            let demand = next
                .as_ref()
                .map_or(unchanged, |next| demand(next, segment, settings, current));
            let size = next.as_ref().and_then(sga_max_size).unwrap_or(segment.size);
            let refuses = || {
                start_limits::of_host(limits.kernel, size, segment.size)
                    .or_else(|| limits.lacks(is_let))
            };
            let refused = (demand != unchanged).then(refuses).flatten();
            let is_lost = demand.requested.may_have_huge_pages()
                && is_let
                && matches!(limits.lacks(false), Some(LockLimit::ShmGroup { .. }));
            if is_lost {
                notes.add("vm.hugetlb_shm_group is not what it was at the start");
            }
            let lock_limit = refused.or(is_lost.then_some(LockLimit::Unexplained));
            let margin = current
                .pool_state
                .huge_page_size
                .filter(|_| demand.shared_memory != unchanged.shared_memory)
                .map_or(Bytes(0), |page| page.times(EXTRA));
            let outlook = |size: Bytes| {
                let start = Start {
                    requested: demand.requested,
                    size: Some(size),
                    pool_state: current.pool_state,
                    own: current.own(),
                };
                start.forecast().outlook
            };
            let most = demand.shared_memory;
            let least = demand.shared_memory.saturating_sub(margin);
            if demand == unchanged && lock_limit.is_none() {
                Pending::Unchanged
            } else if outlook(most) != outlook(least) {
                notes.add(format!(
                    "whether the pool has the few pages that a start takes beyond {size} is unknown"
                ));
                Pending::Unknown
            } else {
                let pool_state = PoolState {
                    lock_limit,
                    ..current.pool_state.clone()
                };
                Pending::Changed(demand, pool_state)
            }
        }
    };
    (lock_limit, pending)
}

/// What the next start asks for. Without `use_large_pages` that of the running one remains, because its default differs between releases
/// and on Exadata.
fn demand(
    next: &Parameters,
    segment: &Segment,
    settings: &OracleSettings,
    current: &CurrentStart<'_>,
) -> Demand {
    let setting = next.get("use_large_pages");
    let is_automatic = memory_target(next).is_some();
    let mut requested = requested_by(
        setting,
        settings.version(),
        is_automatic,
        sga_max_size(next),
    );
    if setting.is_none() {
        requested.huge_pages = current.requested.huge_pages;
        requested.product = current.requested.product.with_memory_target(is_automatic);
    }
    let page = current.pool_state.huge_page_size;
    let same_size = match (&settings.start, sga_max_size(next), page) {
        (_, None, _) => true,
        (Some(start), size, _) if !start.parameters.is_empty() => {
            sga_max_size(&start.parameters) == size
        }
        (_, Some(size), Some(page)) => are_of(page.pages_to_hold(segment.to_reserve), size, page),
        _ => true,
    };
    let is_same = requested.huge_pages == current.requested.huge_pages
        && requested.product == current.requested.product;
    let (requested, shared_memory) = match (sga_max_size(next), page) {
        _ if same_size && is_same => (current.requested, segment.to_reserve),
        (Some(size), Some(page)) if !same_size => (
            requested,
            page.times(page.pages_to_hold(rounded(size)).saturating_add(EXTRA)),
        ),
        _ => (requested, segment.to_reserve),
    };
    // An assessment does not use the number of connections.
    Demand {
        requested,
        max_connections: 0,
        shared_memory,
    }
}
