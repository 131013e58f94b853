//! What one server asked for at its start, and asks for at the next one.

use hugepage_assess::model::{
    Asked, Clusterware, CrashRecovery, CurrentStart, KeptPages, Landing, Pending, PoolFact, PoolState, Segment,
};
use hugepage_assess::pools;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, InstanceFiles, PageSize};
use hugepage_server::nodes;
use hugepage_server::server::pool_of_size;

use super::context::{InspectContext, ServerSettings};
use super::discover::DiscoveredServer;
use super::identity::ServerIdentity;
use super::observe::ObservedMemory;
use super::oracle;

/// What a server asked for and has, and what its next start asks for.
pub(super) struct ServerRequest {
    pub(super) asked: Asked,
    /// Whether the files with `asked` have changed since the start.
    pub(super) asked_may_differ: bool,
    pub(super) segment: Option<Segment>,
    pub(super) ground: PoolState,
    pub(super) pending: Pending,
    pub(super) kept_at_crash: KeptPages,
    pub(super) crash_recovery: CrashRecovery,
    pub(super) clusterware: Option<Clusterware>,
}

impl ServerRequest {
    /// What the next start is compared with.
    pub(super) fn current_start(&self) -> CurrentStart<'_> {
        let huge_page_size = self.ground.huge_page_size;
        CurrentStart { asked: self.asked, segment: self.segment.as_ref(), huge_page_size }
    }
}

impl InspectContext<'_> {
    /// What the server asked for, with the sources that show where it landed, the best first.
    pub(super) fn request(
        &self,
        found: &DiscoveredServer,
        files: &InstanceFiles,
        identity: &ServerIdentity,
        settings: ServerSettings,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> (ServerRequest, Vec<&'static str>) {
        let asked = settings.asked();
        let (segment, evidence) = self.segment(identity, &asked, memory, notes);
        let in_use = segment.as_ref().filter(|segment| segment.in_huge_pages > Bytes(0));
        let size = in_use.and_then(|segment| segment.page_size).or(asked.huge_page_size).or(self.default);
        let unchanged = ServerRequest {
            asked,
            asked_may_differ: false,
            ground: self.ground(found.pid, size, notes),
            segment,
            pending: Pending::Unchanged,
            kept_at_crash: KeptPages::default(),
            crash_recovery: CrashRecovery::default(),
            clusterware: None,
        };
        let request = match settings {
            ServerSettings::PostgreSql(settings) => {
                self.postgresql_request(unchanged, found, files, identity, &settings, notes)
            }
            ServerSettings::Oracle(settings) => self.oracle_request(unchanged, identity, *settings, memory, notes),
        };
        (request, evidence)
    }

    fn segment(
        &self,
        identity: &ServerIdentity,
        asked: &Asked,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> (Option<Segment>, Vec<&'static str>) {
        // Where the kernel lacks the size, nothing is rounded up to it.
        let has_pool = |size: &PageSize| pools::of_size(&self.pools, *size).is_some();
        let wanted = asked.huge_page_size.filter(has_pool).or(self.default);
        let shared = memory.shared.as_ref();
        let seen = shared.zip(self.base).and_then(|(shared, base)| shared.segment(base, wanted));
        let found = seen.or_else(|| oracle::logged_segment(identity.last_start.as_ref()?));
        let is_logged = shared.is_none() && found.is_some();
        let segment = match is_logged {
            true => found,
            false => found.map(|segment| self.unless_transparent(segment, identity.pid, notes)),
        };
        let is_in_base_pages = segment.as_ref().is_some_and(|segment| segment.landing == Landing::Base);
        let evidence = [
            shared.map(|shared| shared.source.name()),
            is_logged.then_some("alert log"),
            (memory.has_hugetlb_pages && !is_in_base_pages).then_some("HugetlbPages"),
        ];
        (segment, evidence.into_iter().flatten().collect())
    }

    /// What a start of the server `pid` with pages of `huge_page_size` finds.
    pub(super) fn ground(&self, pid: i32, huge_page_size: Option<PageSize>, notes: &mut Notes) -> PoolState {
        let pool = match huge_page_size.and_then(|size| pools::of_size(&self.pools, size)) {
            Some(row) => PoolFact::Known(row.pool.clone()),
            None => pool_of_size(self.root, huge_page_size, self.meminfo.as_ref(), notes),
        };
        let limits = huge_page_size.and_then(|size| match &self.hierarchy {
            None => {
                notes.add("cgroup limits could not be determined; see the notes on the host");
                None
            }
            Some(None) => Some(CgroupLimits::default()),
            Some(Some(hierarchy)) => Some(hierarchy.limits_of(self.root, pid, size, notes)),
        });
        let nodes = nodes::of(self.root, &pool, &pid.to_string(), |_| MemoryPolicy::Unknown, notes);
        PoolState { huge_page_size, pool, limits, nodes, lock_limit: None }
    }
}
