//! The host with all its rows. Sizes are in bytes; null means unknown.

use hugepage_assess::columns;
use hugepage_assess::model::PoolHolder;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::{Stranger, Survey};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_sizing::Sizing;
use serde::Serialize;

use super::rows::{InstanceRow, PoolOutput, StoppedRow, time};

/// What is said of a host without any pool.
pub const NO_POOLS: &str = "This kernel has no huge page pools, or they are not visible.";

/// Whom the recommended number of a pool counts, behind its name.
pub const RECOMMENDED_COUNTS: &str = "counts all servers seen here, with what they run with where their next start is unknown, \
                                      and is never less than the pool keeps; `hugepage-sidecar size` counts all of the host";

columns! {
    /// The host's memory (/proc/meminfo).
    MemoryOutput(meminfo: &Meminfo) {
        total: Option<Bytes> = meminfo.mem_total,
        free: Option<Bytes> = meminfo.mem_free,
        available: Option<Bytes> = meminfo.mem_available,
        /// Page tables of all processes.
        page_tables_host: Option<Bytes> = meminfo.page_tables,
        /// Memory in huge page pools of all sizes.
        hugetlb: Option<Bytes> = meminfo.hugetlb,
    }
}

columns! {
    /// A host with its instances, pools and recommendations.
    HostOutput(survey: &Survey, sizings: &[Sizing]) where {
        let host = &survey.host;
        let said = HostVerdict::of_survey(survey, sizings);
        let boot = next_boot(survey);
        let why = boot.iter().find_map(|pool| pool.reason.as_ref()).filter(|_| !survey.instances.is_empty());
        let of_boot = why.map(|why| format!("what the pools have after the next boot is unknown: {why}"));
    } {
        host_name: Option<String> = host.host_name.clone(),
        taken_at: String = time(host.taken_at),
        verdict: String = said.name(),
        message: String = said.message(),
        memory: Option<MemoryOutput> = host.meminfo.as_ref().map(MemoryOutput::new),
        instances: Vec<InstanceRow> = survey.instances.iter().map(|one| InstanceRow::new(one, sizings)).collect(),
        /// The first processes that call themselves servers and do not count.
        strangers: Vec<Stranger> = host.strangers.first.clone(),
        /// The number of the others.
        more_strangers: usize = host.strangers.more,
        /// The Oracle instances of oratab that do not run.
        stopped: Vec<StoppedRow> = host.stopped.iter().map(|one| StoppedRow::new(one, survey, sizings)).collect(),
        pools: Vec<PoolOutput> = host.pools.iter().map(|row| PoolOutput::new(row, sizings)).collect(),
        /// One for each page size.
        next_boot: Vec<NextBootOutput> = boot,
        recommendations: Vec<HostRecommendation> = host_advice::recommendations(survey, sizings),
        notes: Vec<String> = host.notes.iter().cloned().chain(of_boot).collect(),
        /// The programs beside database servers that have huge pages, the largest first.
        holders: Vec<PoolHolder> = host.holders.clone(),
    }
}

/// A pool after the next boot.
#[derive(Debug, Serialize)]
pub struct NextBootOutput {
    pub page_size: PageSize,
    /// The pages; null if unknown, or if nothing sets the pool.
    pub nr_hugepages: Option<Pages>,
    /// `set`, `unset` or `unknown`.
    pub state: &'static str,
    /// The file that sets it.
    pub source: Option<String>,
    /// Why it is unknown.
    pub reason: Option<String>,
}

/// Each pool after the next boot.
fn next_boot(survey: &Survey) -> Vec<NextBootOutput> {
    let sizes = survey.host.pools.iter().filter(|row| row.node.is_none()).map(|row| row.pool.page_size);
    let output = |page_size: PageSize| {
        let (state, nr_hugepages, source, reason) = match survey.host.next_boot.pool(page_size) {
            PoolAtBoot::Set(pages, file) => ("set", Some(pages), Some(file), None),
            PoolAtBoot::Unset => ("unset", None, None, None),
            PoolAtBoot::Unknown(why) => ("unknown", None, None, Some(why)),
        };
        NextBootOutput { page_size, nr_hugepages, state, source, reason }
    };
    sizes.map(output).collect()
}
