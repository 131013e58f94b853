//! The host, with a flat row for each instance and pool, named as in `hugepage_status` and `hugepage_pools`. Null is unknown.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hugepage_assess::StatusRow;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::columns;
use hugepage_assess::pools::PoolColumns;
use hugepage_facts::{Cause, PoolHolder, PoolRow, Stranger, pools};
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::memory::by_page_size;
use hugepage_host::{HostVerdict, Instance, Survey};
use hugepage_kernel::{Bytes, Meminfo, PageSize, Pages, PoolAtBoot, Rlimit};
use hugepage_oracle::stopped::{StoppedOracle, StoppedState};
use hugepage_sizing::Sizing;
use serde::Serialize;

/// The last second of the year 9999.
pub const LAST_SECOND: u64 = 253_402_300_799;

/// What is said of a host without any pool.
pub const NO_POOLS: &str = "This kernel has no huge page pools, or they are not visible.";

/// Whom the recommended number of a pool counts, behind its name.
pub const RECOMMENDED_COUNTS: &str = "counts all servers seen here, by their present need where the next start is unknown, \
                                      and is never less than the pool keeps; `hugepage-sidecar size` counts the whole host";

columns! {
    /// The host's memory (/proc/meminfo).
    MemoryOutput(meminfo: &Meminfo) {
        total: Option<Bytes> = meminfo.mem_total,
        free: Option<Bytes> = meminfo.mem_free,
        available: Option<Bytes> = meminfo.mem_available,
        page_tables_host: Option<Bytes> = meminfo.page_tables,
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
        strangers: Vec<Stranger> = host.strangers.first.clone(),
        more_strangers: usize = host.strangers.more,
        stopped: Vec<StoppedRow> = survey.stopped.iter().map(|one| StoppedRow::new(one, survey, sizings)).collect(),
        pools: Vec<PoolOutput> = host.pools.iter().map(|row| PoolOutput::new(row, sizings)).collect(),
        next_boot: Vec<NextBootOutput> = boot,
        recommendations: Vec<HostRecommendation> = host_advice::recommendations(survey, sizings),
        notes: Vec<String> =
            survey.notes.iter().cloned().chain(host_advice::notes(survey, sizings)).chain(of_boot).collect(),
        holders: Vec<PoolHolder> = host.holders.clone(),
    }
}

/// A pool after the next boot.
#[derive(Debug, Serialize)]
pub struct NextBootOutput {
    pub page_size: PageSize,
    /// The pages; null if unknown, or if nothing sets the pool.
    pub nr_hugepages: Option<Pages>,
    /// `set`, `remembered`, `told`, `made`, `unset`, `unseen` or `unknown`.
    pub state: &'static str,
    /// The file that sets it, or who does so, as root says.
    pub source: Option<String>,
    /// Why it is unknown.
    pub reason: Option<String>,
}

/// Each pool after the next boot.
fn next_boot(survey: &Survey) -> Vec<NextBootOutput> {
    let sizes = pools::of_host(&survey.host.pools).map(|row| row.pool.page_size);
    let output = |page_size: PageSize| {
        let pool = survey.host.next_boot.pool(page_size);
        let why = pool.unknown().map(str::to_owned);
        let (state, nr_hugepages, source, reason) = match pool {
            PoolAtBoot::Set(pages, file) => ("set", Some(pages), Some(file), None),
            PoolAtBoot::Remembered(pages) => ("remembered", Some(pages), None, None),
            PoolAtBoot::Told(pages, who) => ("told", Some(pages), Some(who), None),
            PoolAtBoot::Made { pages, .. } => (
                "made",
                Some(pages),
                Some("hugepage-reserve.service".to_owned()),
                None,
            ),
            PoolAtBoot::Unset => ("unset", None, None, None),
            PoolAtBoot::Unseen { .. } => ("unseen", None, None, None),
            PoolAtBoot::Unknown(_) | PoolAtBoot::OfHost => ("unknown", None, None, why),
        };
        NextBootOutput {
            page_size,
            nr_hugepages,
            state,
            source,
            reason,
        }
    };
    sizes.map(output).collect()
}

columns! {
    /// A running instance.
    InstanceRow(instance: &Instance, sizings: &[Sizing]) where {
        let memlock = instance.memory.memlock;
    } {
        kind: String = instance.id.kind(),
        name: String = instance.id.name.clone(),
        pid: i32 = instance.id.pid,
        #[serde(flatten)]
        status: StatusRow = instance.row(sizings),
        processes: u64 = instance.memory.page_tables.processes,
        page_tables_total: Option<Bytes> = instance.memory.page_tables.total,
        memlock: Option<Bytes> = memlock.and_then(Rlimit::bytes),
        memlock_unlimited: Option<bool> = memlock.map(|limit| limit == Rlimit::Unlimited),
        version: Option<String> = instance.id.version.clone(),
        oracle_home: Option<String> = instance.id.oracle().and_then(|oracle| oracle.home.clone()),
        data_directory: Option<String> = instance.id.postgresql().and_then(|server| server.directory.as_ref()).map(|_| instance.id.name.clone()),
        started: Option<String> = instance.id.started.map(time),
        notes: Vec<String> = instance.notes.clone(),
        by_page_size: Vec<PageSizeShare> = instance.memory.shared.iter().flat_map(|mappings| by_page_size(mappings))
            .map(|(page_size, bytes)| PageSizeShare { page_size, bytes }).collect(),
        crash_outlook: Option<Outlook> = instance.status.crash_outlook(),
        pod: Option<String> = instance.id.pod.clone(),
        container: Option<String> = instance.id.runtime.clone(),
    }
}

columns! {
    /// An Oracle instance of oratab that does not run.
    StoppedRow(one: &StoppedOracle, survey: &Survey, sizings: &[Sizing]) where {
        let forecast = one.forecast.as_ref();
        let size = survey.host.default_page_size();
        let sizing = size.and_then(|size| Sizing::of_size(sizings, size));
    } {
        kind: String = one.kind.to_string(),
        name: String = one.name.clone(),
        state: StoppedState = one.state,
        starts_at_boot: bool = one.starts_at_boot,
        verdict: Severity = one.severity(),
        message: String = one.message(),
        hint: Option<String> = host_advice::hint_of_stopped(survey, one, sizings),
        oracle_home: String = one.home.clone(),
        version: Option<String> = one.last_start.as_ref().and_then(|start| start.version.clone()),
        use_large_pages: Option<String> = one.use_large_pages.clone(),
        memory_target: bool = one.memory_target.is_some(),
        huge_page_size: Option<PageSize> = size,
        pages_needed: Option<Pages> = one.wants.pages(),
        pages_missing: Option<Pages> = forecast.and_then(|forecast| forecast.missing),
        cause: Option<Cause> = forecast.and_then(|forecast| forecast.cause),
        restart_outlook: Outlook = one.outlook(),
        recommended_nr_hugepages: Option<Pages> = sizing.and_then(|sizing| sizing.recommended),
        notes: Vec<String> = one.notes.clone(),
    }
}

/// The shared memory in pages of one size.
#[derive(Debug, Serialize)]
pub struct PageSizeShare {
    /// The page size in bytes; null if the kernel does not report it.
    pub page_size: Option<PageSize>,
    pub bytes: Bytes,
}

columns! {
    /// A pool of the host or of a NUMA node.
    PoolOutput(row: &PoolRow, sizings: &[Sizing]) where {
        let sizing = Sizing::of_size(sizings, row.pool.page_size).filter(|_| row.node.is_none());
        let held = |sizing: &Sizing| sizing.needs.iter().map(|need| need.held).sum::<Pages>();
        // Without a number, somebody's pages are not known.
        let known = sizing.filter(|sizing| sizing.recommended.is_some());
    } {
        #[serde(flatten)]
        pool: PoolColumns = PoolColumns::new(row),
        held_by_instances: Option<Pages> = known.map(held),
        held_by_others: Option<Pages> = known.map(|sizing| sizing.others),
        held_by_strangers: Option<Pages> = sizing.map(|sizing| sizing.strangers.pages),
        recommended_nr_hugepages: Option<Pages> = sizing.and_then(|sizing| sizing.recommended),
    }
}

/// A timestamp: `2026-11-21T10:00:00Z`. Who wrote what was read may have put any time there.
pub fn time(at: SystemTime) -> String {
    let at = at.clamp(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(LAST_SECOND));
    humantime::format_rfc3339_seconds(at).to_string()
}
