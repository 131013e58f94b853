//! The host with all its rows. Sizes are in bytes; null means unknown.

use hugepage_assess::assessment::Sizing;
use hugepage_assess::assessment::advisory::{Advisories, KernelFinding};
use hugepage_assess::model::PoolHolder;
use hugepage_host::Survey;
use hugepage_host::host_advice;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_kernel::PageSize;
use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use serde::Serialize;

use super::rows::{
    InstanceRow, PoolOutput, RecommendationOutput, StoppedRow, StrangerRow, bytes, instance, pool, recommendation,
    stopped, time,
};

/// The host's memory (/proc/meminfo).
#[derive(Debug, Serialize)]
pub struct MemoryOutput {
    pub total: Option<u64>,
    pub free: Option<u64>,
    pub available: Option<u64>,
    /// Page tables of all processes.
    pub page_tables_host: Option<u64>,
    /// Memory in huge page pools of all sizes.
    pub hugetlb: Option<u64>,
}

/// A host with its instances, pools and recommendations.
#[derive(Debug, Serialize)]
pub struct HostOutput {
    pub host_name: Option<String>,
    pub taken_at: String,
    pub verdict: String,
    pub message: String,
    pub memory: Option<MemoryOutput>,
    pub instances: Vec<InstanceRow>,
    /// The first processes that call themselves servers and do not count.
    pub strangers: Vec<StrangerRow>,
    /// The number of the others.
    pub more_strangers: usize,
    /// The Oracle instances of oratab that do not run.
    pub stopped: Vec<StoppedRow>,
    pub pools: Vec<PoolOutput>,
    /// One for each page size; null if the files of the next boot could not be read.
    pub next_boot: Option<Vec<NextBootOutput>>,
    pub recommendations: Vec<RecommendationOutput>,
    pub notes: Vec<String>,
    /// The programs beside database servers that have huge pages, the largest first.
    pub holders: Vec<HolderOutput>,
    /// The advisories on this kernel that concern one of the instances.
    pub kernel_advisories: Vec<KernelAdvisory>,
}

/// A pool after the next boot.
#[derive(Debug, Serialize)]
pub struct NextBootOutput {
    pub page_size: u64,
    /// The pages; null if unknown, or if nothing sets the pool.
    pub nr_hugepages: Option<u64>,
    /// `set`, `unset` or `unknown`.
    pub state: &'static str,
    /// The file that sets it.
    pub source: Option<String>,
    /// Why it is unknown.
    pub reason: Option<String>,
}

/// The processes of one name and user that have huge pages.
#[derive(Debug, Serialize)]
pub struct HolderOutput {
    pub name: String,
    pub user: String,
    pub processes: u64,
    /// What they have mapped, in bytes.
    pub memory: u64,
    /// In pages; null where pools of several sizes are in use.
    pub pages: Option<u64>,
    /// Whether it is root or a service account.
    pub counts: bool,
}

/// An advisory on this kernel.
#[derive(Debug, Serialize)]
pub struct KernelAdvisory {
    pub name: String,
    /// Whether the advisory applies to this kernel; null if unknown.
    pub applies: Option<bool>,
    pub detail: String,
    /// The instances that the advisory concerns.
    pub instances: Vec<String>,
}

pub fn host(survey: &Survey, sizings: &[Sizing]) -> HostOutput {
    let verdict = HostVerdict::of_survey(survey, sizings);
    let recommendations = host_advice::recommendations(survey, sizings);
    HostOutput {
        host_name: survey.host_name.clone(),
        taken_at: time(survey.taken_at),
        verdict: verdict.name(),
        message: verdict.message(),
        memory: survey.meminfo.as_ref().map(|meminfo| MemoryOutput {
            total: bytes(meminfo.mem_total),
            free: bytes(meminfo.mem_free),
            available: bytes(meminfo.mem_available),
            page_tables_host: bytes(meminfo.page_tables),
            hugetlb: bytes(meminfo.hugetlb),
        }),
        instances: survey.instances.iter().map(|one| instance(one, sizings)).collect(),
        strangers: survey.strangers.first.iter().map(StrangerRow::from).collect(),
        more_strangers: survey.strangers.more,
        stopped: survey.stopped.iter().map(|one| stopped(one, survey, sizings)).collect(),
        pools: survey.pools.iter().map(|row| pool(row, sizings)).collect(),
        next_boot: survey.next_boot.as_ref().map(next_boot),
        recommendations: recommendations.iter().map(recommendation).collect(),
        notes: survey.notes.clone(),
        holders: survey.holders.iter().map(holder).collect(),
        kernel_advisories: kernel_advisories(survey),
    }
}

/// Each pool after the next boot.
fn next_boot(boot: &NextBoot) -> Vec<NextBootOutput> {
    let output = |(size, pool): (PageSize, PoolAtBoot)| {
        let (state, pages, source, reason) = match pool {
            PoolAtBoot::Set { pages, file } => ("set", Some(pages.0), Some(file), None),
            PoolAtBoot::Unset => ("unset", None, None, None),
            PoolAtBoot::Unknown(why) => ("unknown", None, None, Some(why)),
        };
        NextBootOutput { page_size: size.bytes().0, nr_hugepages: pages, state, source, reason }
    };
    boot.pools().into_iter().map(output).collect()
}

fn holder(holder: &PoolHolder) -> HolderOutput {
    HolderOutput {
        name: holder.name.clone(),
        user: holder.user.clone(),
        processes: holder.processes,
        memory: holder.memory.0,
        pages: holder.pages.map(|pages| pages.0),
        counts: holder.counts,
    }
}

/// The advisories on this kernel in the order of the table, each with its instances.
fn kernel_advisories(survey: &Survey) -> Vec<KernelAdvisory> {
    let (known, mut found) = (Advisories::known(), Vec::<KernelAdvisory>::new());
    for instance in survey.instances.iter() {
        for KernelFinding { name, applies, detail } in
            known.concerning(&instance.status.facts, survey.kernel_release.as_deref())
        {
            let Some(detail) = detail else { continue };
            match found.iter_mut().find(|row| row.name == name) {
                Some(row) => row.instances.push(instance.id.name.clone()),
                None => found.push(KernelAdvisory { name, applies, detail, instances: vec![instance.id.name.clone()] }),
            }
        }
    }
    let place = |name: &str| known.advisory.iter().position(|row| name.strip_prefix("kernel_") == Some(&row.name));
    found.sort_by_key(|row| place(&row.name));
    found
}
