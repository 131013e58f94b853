//! What refuses a running Oracle instance huge pages, and what it asks for at the next start.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::{
    CurrentStart, Demand, HugePages, Landing, LockLimit, Pending, PoolState, Product, Segment,
};
use hugepage_kernel::fields::value;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, Notes, PageSize, Root};

use crate::readers::{LastStart, OracleKind, Parameters};
use crate::settings::{Settings, requested_by};
use crate::sga::{EXTRA, rounded};
use crate::start_limits::{self, StartLimits};

/// A running instance, as far as the kernel cares.
pub struct RunningLimits<'a> {
    /// The host.
    pub root: &'a Root,
    /// The group of its PMON that does not let it have huge pages ([`lacks_group`]).
    pub gid: Option<u32>,
    /// The user of its PMON; `None` in a container, whose accounts are not the host's.
    pub owner: Option<u32>,
    /// The memory that it may lock.
    pub memlock: Option<Rlimit>,
}

impl RunningLimits<'_> {
    /// What the kernel requires for System V segments in huge pages and the instance lacks: CAP_IPC_LOCK, `vm.hugetlb_shm_group`, or
    /// before 5.18 a limit on locked memory of at least their size. Whoever `is_let` has what its kernel requires.
    fn lacks(&self, is_let: bool) -> Option<LockLimit> {
        let gid = self.gid?;
        match (Advisories::known().affects("shm_memlock", &KernelRelease::text(self.root)?), self.memlock?) {
            (Some(true), Rlimit::At(limit)) => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
            // It is not in the group, so memlock let it.
            (None, Rlimit::At(limit)) if is_let => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
            (Some(true), Rlimit::Unlimited) => None,
            _ if is_let => None,
            (Some(false), _) => Some(LockLimit::ShmGroup { gid }),
            (None, limit) => Some(LockLimit::Either { gid, limit: limit.bytes() }),
        }
    }

    /// What may refuse a start what the running instance has: the group or limits.conf has changed since.
    fn lost(&self, start: Option<&LastStart>, current: &CurrentStart<'_>, notes: &mut Notes) -> Option<LockLimit> {
        let segment = current.segment.filter(|_| self.owner.and(self.gid).is_some())?;
        let is_asm = matches!(current.requested.product, Product::Oracle { is_asm: true, .. });
        let kind = if is_asm { OracleKind::Asm } else { OracleKind::Database };
        let start = &LastStart { memlock: self.memlock, ..start.cloned().unwrap_or_default() };
        let (size, is_let) = (segment.size, segment.in_huge_pages > Bytes(0));
        let limits =
            StartLimits { root: self.root, held: &|_| Bytes(0), owner: self.owner, kind, start: Some(start), is_let };
        let found = limits.permission(size, notes).filter(|limit| limit.refuses(size) || limit.may_refuse(size));
        found.or_else(|| self.lacks(false).filter(|limit| matches!(limit, LockLimit::ShmGroup { .. })))?;
        notes.add("vm.hugetlb_shm_group or the memlock limit of its owner is not what it was at the start");
        Some(LockLimit::Unexplained)
    }
}

/// The group of PMON if it has neither CAP_IPC_LOCK nor the group of `vm.hugetlb_shm_group`.
pub fn lacks_group(root: &Root, pid: i32) -> Option<u32> {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let text = root.read_short(&format!("/proc/{pid}/status"), str::to_owned).ok()?;
    let line = |name: &str| value(&text, name);
    let capabilities = line("CapEff").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())?;
    let group = sysctl::running(root, "vm.hugetlb_shm_group").ok().flatten()?;
    let mut all = line("Gid").into_iter().chain(line("Groups")).flat_map(str::split_ascii_whitespace);
    let is_let = capabilities & CAP_IPC_LOCK != 0 || all.any(|gid| gid == group);
    // The effective group is the second of four (proc(5)).
    line("Gid")?.split_ascii_whitespace().nth(1)?.parse().ok().filter(|_| !is_let)
}

/// What refuses the running instance huge pages, and what its next start asks for. `pool_state`: what a start finds.
pub fn next_start(
    settings: &Settings,
    current: &CurrentStart<'_>,
    pool_state: &PoolState,
    limits: &RunningLimits<'_>,
    notes: &mut Notes,
) -> (Option<LockLimit>, Pending) {
    let is_let = current.segment.is_some_and(|segment| segment.in_huge_pages > Bytes(0));
    let missing = limits.lacks(false).filter(|_| !is_let);
    let lock_limit = missing.or_else(|| logged_refusal(settings.start.as_ref()?, current.segment?));
    if missing.is_none() && lock_limit == Some(LockLimit::Unexplained) {
        notes.add(
            "the start found enough huge pages and took none of them: compare kernel.shmall, the NUMA policy and the \
                 limits of its owner with the alert log",
        );
    }
    let pending = match (&settings.parameters, current.segment) {
        _ if current.requested.is_automatic_asm() => Pending::Unchanged,
        (None, _) if settings.is_unread => Pending::Unknown,
        (_, None) => Pending::Unchanged,
        (Some(next), Some(segment)) if let Some(why) = next.unclear(next.sga_max_size().max(Some(segment.size))) => {
            notes.add(format!("{why}, so what the next start needs is unknown"));
            Pending::Unknown
        }
        (next, Some(segment)) => {
            let (requested, shared_memory) = (current.requested, segment.to_reserve);
            let unchanged = Demand { requested, max_connections: 0, shared_memory };
            let demand = next.as_ref().map_or(unchanged, |next| demand(next, segment, settings, current));
            let size = next.as_ref().and_then(Parameters::sga_max_size).unwrap_or(segment.size);
            let refuses = || start_limits::of_host(limits.root, size, segment.size).or_else(|| limits.lacks(is_let));
            let refused = (demand != unchanged).then(refuses).flatten();
            let asks = demand.requested.huge_pages != HugePages::Off && !demand.requested.never_in_huge_pages();
            let lost = || limits.lost(settings.start.as_ref(), current, notes);
            let lock_limit = refused.or_else(|| (asks && missing.is_none()).then(lost)?);
            match demand == unchanged && lock_limit.is_none() {
                true => Pending::Unchanged,
                false => Pending::Changed(demand, PoolState { lock_limit, ..pool_state.clone() }),
            }
        }
    };
    (lock_limit, pending)
}

/// What refused huge pages at a start whose table in the log has enough available pages and allocated none of them: the memlock limit
/// in the log if it was too small, else something that is not visible. `None` if the table shows something else.
fn logged_refusal(start: &LastStart, segment: &Segment) -> Option<LockLimit> {
    let mut huge = start.page_sizes.iter().filter(|row| !row.is_base && row.expected.is_some_and(|pages| pages.0 > 0));
    let is_refused = huge.all(|row| row.available >= row.expected && row.allocated.is_some_and(|pages| pages.0 == 0));
    if !is_refused || segment.landing != Landing::Base || start.page_sizes.iter().all(|row| row.is_base) {
        return None;
    }
    match start.memlock {
        Some(Rlimit::At(limit)) if limit < segment.to_reserve => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
        _ => Some(LockLimit::Unexplained),
    }
}

/// What the next start asks for. Without `use_large_pages` that of the running one remains, because its default differs between releases
/// and on Exadata.
fn demand(next: &Parameters, segment: &Segment, settings: &Settings, current: &CurrentStart<'_>) -> Demand {
    let (setting, is_automatic) = (next.get("use_large_pages"), next.memory_target().is_some());
    let mut requested = requested_by(setting, settings.version(), is_automatic, next.sga_max_size());
    if setting.is_none() {
        requested.huge_pages = current.requested.huge_pages;
        requested.product = current.requested.product.with_memory_target(is_automatic);
    }
    let same_size = match (&settings.start, next.sga_max_size(), current.huge_page_size) {
        (_, None, _) => true,
        (Some(start), size, _) if !start.parameters.is_empty() => start.parameters.sga_max_size() == size,
        (_, Some(size), Some(page)) => is_about(segment, size, page),
        _ => true,
    };
    let is_same =
        requested.huge_pages == current.requested.huge_pages && requested.product == current.requested.product;
    let (requested, shared_memory) = match (next.sga_max_size(), current.huge_page_size) {
        _ if same_size && is_same => (current.requested, segment.to_reserve),
        (Some(size), Some(page)) if !same_size => {
            (requested, page.times(page.pages_to_hold(rounded(size)).saturating_add(EXTRA)))
        }
        _ => (requested, segment.to_reserve),
    };
    // An assessment does not use the number of connections.
    Demand { requested, max_connections: 0, shared_memory }
}

/// Whether a segment is that of an SGA with this SGA_MAX_SIZE, which the instance rounds.
fn is_about(segment: &Segment, size: Bytes, page: PageSize) -> bool {
    let wanted = page.pages_to_hold(rounded(size));
    let has = page.pages_to_hold(segment.to_reserve);
    has >= page.pages_to_hold(size) && has <= wanted.saturating_add(EXTRA).saturating_add(EXTRA)
}
