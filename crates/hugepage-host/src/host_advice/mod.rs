//! The recommendations for a host with several servers, from the steps that the findings of each lead to.

pub mod verdict;

use std::cmp::Reverse;

use hugepage_assess::advice::Recommendation;
use hugepage_assess::advice::plan::{Plan, Step, rows};
use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect};
use hugepage_assess::assessment::Severity;
use hugepage_facts::{InstanceKey, Landing};
use hugepage_kernel::{KernelRelease, PageSize, PoolAtBoot};
use hugepage_oracle::manual;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::{Misfit, Sizing};
use serde::Serialize;

use crate::{Instance, Survey};

/// A recommendation for one server or for the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostRecommendation {
    /// The server's name; `None` for the host.
    pub instance: Option<String>,
    /// Which server that is.
    #[serde(skip)]
    pub key: Option<InstanceKey>,
    /// What to set.
    #[serde(flatten)]
    pub recommendation: Recommendation,
    /// Whether it is a step of an instance's hint.
    #[serde(skip)]
    pub is_in_hint: bool,
}

/// All recommendations, the most severe first.
pub fn recommendations(survey: &Survey, sizings: &[Sizing]) -> Vec<HostRecommendation> {
    let of_host = |recommendation| HostRecommendation {
        instance: None,
        key: None,
        recommendation,
        is_in_hint: false,
    };
    let mut all = Vec::new();
    for sizing in sizings {
        all.extend(of_pool(survey, sizing));
        all.extend(
            sizing
                .misfits
                .iter()
                .map(|misfit| of_host(of_misfit(survey, sizing.page_size, misfit))),
        );
    }
    let mut of_instances = Vec::new();
    for instance in &survey.instances {
        let in_hint = Some(instance.status.verdict().1.name());
        let only = Some(instance)
            .filter(|_| is_made_at_boot(survey, sizings))
            .and_then(|one| manual::use_large_pages(one.landed_in(), &one.status.facts.requested));
        for recommendation in rows::of_findings(&instance.status).into_iter().chain(only) {
            let key = (!matches!(recommendation.area, Area::Kernel | Area::Boot))
                .then(|| instance.id.key());
            let is_in_hint = recommendation.finding.is_some() && recommendation.finding == in_hint;
            of_instances.push(HostRecommendation {
                instance: key.as_ref().map(|key| key.name.clone()),
                key,
                recommendation,
                is_in_hint,
            });
        }
    }
    // Of a setting of the host there is one row: the one above, or that of the most severe instance.
    of_instances.sort_by_key(|one| Reverse(one.recommendation.severity));
    let key = |of: &HostRecommendation| {
        (
            of.key.clone(),
            of.recommendation.area,
            of.recommendation.setting.clone(),
        )
    };
    for one in of_instances {
        if one.instance.is_some() || all.iter().all(|known| key(known) != key(&one)) {
            all.push(one);
        }
    }
    let host = &survey.host;
    if has_oracle(survey)
        && let Some(now) = &host.transparent_hugepage
        && let Some(kernel) = &host.kernel.release
    {
        all.extend(manual::transparent_hugepage(kernel, now).map(of_host));
    }
    all.extend(of_shmem(survey).map(of_host));
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|one| Reverse(one.recommendation.severity));
    all
}

/// What aligns the memory of a server that lacks huge pages, so that `collapse` can work after its next start: now, and at each boot. None
/// where other programs would get huge pages as well, and with them more memory, or where the kernel cannot collapse.
fn of_shmem(survey: &Survey) -> impl Iterator<Item = Recommendation> {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let host = &survey.host;
    let lacks = |one: &Instance| {
        one.landed_in() == Landing::Base && one.status.verdict().0 >= Severity::Warning
    };
    let is_of_use = host.shmem_enabled.as_deref() == Some("never")
        && !has_oracle(survey)
        && !host.others.runs_guests
        && host.kernel.base_page_size == PageSize::from_kib(4)
        && host
            .kernel
            .release
            .as_deref()
            .and_then(KernelRelease::parse)
            .is_none_or(|release| !release.is_before(6, 1, 0))
        && survey.instances.iter().any(lacks);
    let row = |area, reason, command, takes_effect| Recommendation {
        current: Some("never".to_owned()),
        recommended: Some("advise".to_owned()),
        command: Some(command),
        takes_effect,
        ..Recommendation::new(
            Severity::Notice,
            area,
            "transparent_hugepage/shmem_enabled",
            reason,
        )
    };
    let rows = [
        row(
            Area::Kernel,
            "From its next start on \"hugepage-sidecar collapse\" can then give a server transparent huge pages while it runs. \
             Programs that ask for them, such as those of guests, get them for their shared memory and may take more memory.",
            format!("echo advise > {FILE}"),
            Effect::ServerRestart,
        ),
        row(
            Area::Boot,
            "The kernel forgets it at each boot, and it is no sysctl.",
            format!("echo 'w {FILE} - - - - advise' > /etc/tmpfiles.d/shmem-thp.conf"),
            Effect::Reboot,
        ),
    ];
    rows.into_iter().filter(move |_| is_of_use)
}

fn has_oracle(survey: &Survey) -> bool {
    let mut running = survey.instances.iter();
    !survey.stopped.is_empty() || running.any(|one| one.id.oracle().is_some())
}

/// Whether sysctl.d has the pages of the default pool that all servers need.
fn is_made_at_boot(survey: &Survey, sizings: &[Sizing]) -> bool {
    let at_boot = |size: PageSize| {
        let needed = Sizing::of_size(sizings, size)?.recommended?;
        Some(
            matches!(survey.host.next_boot.pool(size), PoolAtBoot::Set(pages, _) if pages >= needed),
        )
    };
    survey.host.default_page_size().and_then(at_boot) == Some(true)
}

/// What is no finding on one server: pages that nobody needs.
pub fn notes(survey: &Survey, sizings: &[Sizing]) -> Vec<String> {
    let host = &survey.host;
    // A finding on an instance says it, with what that would need.
    let mut findings = survey.instances.iter().flat_map(|one| &one.status.findings);
    if findings.any(|(_, finding)| finding.name() == "pool_wasted") {
        return Vec::new();
    }
    let idle = |sizing: &Sizing| {
        let pool = host.pool(sizing.page_size)?;
        let needed = sizing.total.saturating_add(sizing.strangers.pages);
        let idle = sizing
            .page_size
            .times(pool.persistent().saturating_sub(needed));
        let meminfo = host.meminfo.as_ref()?;
        meminfo.is_much(idle).then(|| {
            let (size, beside) = (sizing.page_size, meminfo.beside(idle));
            let note = format!("{idle} of the pool of {size} pages is unused, and no server that is seen here needs it.{beside}");
            note.trim_end_matches('.').to_owned()
        })
    };
    sizings.iter().filter_map(idle).collect()
}

/// The hint of an instance that does not run.
pub fn hint_of_stopped(
    survey: &Survey,
    stopped: &StoppedOracle,
    sizings: &[Sizing],
) -> Option<String> {
    Some(pool::hint(stopped.hint(sizings)?, given_fewer(survey)))
}

/// Why the command that sets the default pool has failed already; `None` if that is not known.
fn given_fewer(survey: &Survey) -> Option<String> {
    let size = survey.host.default_page_size()?;
    let now = survey.host.pool(size)?.persistent();
    pool::given_fewer(&survey.host.next_boot.pool(size), now)
}

/// The step that gives a pool the pages that servers lack.
pub fn pool_step(survey: &Survey, sizing: &Sizing) -> Option<Step> {
    sizing.step(
        survey.host.pool(sizing.page_size)?,
        survey.is_default(sizing.page_size),
    )
}

fn of_pool(survey: &Survey, sizing: &Sizing) -> Option<HostRecommendation> {
    let pool = survey.host.pool(sizing.page_size)?;
    let is_default = survey.is_default(sizing.page_size);
    let step = pool_step(survey, sizing)?;
    // As severe as the most severe that lacks pages.
    let lacking = survey
        .instances
        .iter()
        .filter(|instance| lacks_pages(instance, sizing.page_size));
    let severity = lacking
        .map(|instance| instance.status.verdict().0)
        .max()
        .unwrap_or(Severity::Notice);
    let holder = survey.host.holders.iter().find(|holder| holder.counts);
    let holder = holder
        .map(|holder| holder.clause(sizing.counted_others()))
        .unwrap_or_default();
    let is_in_hint = survey.instances.iter().any(|instance| {
        let plan = Plan::of_finding(&instance.status, instance.status.verdict().1);
        plan.is_some_and(|plan| plan.steps.iter().any(|of| of.command() == step.command()))
    });
    let row = sizing.row(pool, is_default, severity, &holder)?;
    let command = row
        .command
        .as_deref()
        .filter(|_| given_fewer(survey).is_some());
    Some(HostRecommendation {
        instance: None,
        key: None,
        recommendation: Recommendation {
            command: command.and_then(pool::retried).or(row.command),
            ..row
        },
        is_in_hint,
    })
}

/// Whether a finding on an instance leads to a larger pool of `size`.
fn lacks_pages(instance: &Instance, size: PageSize) -> bool {
    let findings = instance.status.findings.iter();
    let plans = findings.filter_map(|(_, finding)| Plan::of_finding(&instance.status, finding));
    let sets_pool = |step: &Step| matches!(step, Step::SetPool { size: of, .. } if *of == size);
    plans
        .flat_map(|plan| plan.steps)
        .any(|step| sets_pool(&step))
}

fn of_misfit(survey: &Survey, size: PageSize, misfit: &Misfit) -> Recommendation {
    let reason = format!(
        "{} would need {} pages of {size} and does not fit: they are {} more than this host can hold beside the other users and the \
         memory in use; it counts with {}.",
        misfit.name, misfit.pages, misfit.over, misfit.counted
    );
    Recommendation {
        current: survey.host.pool(size).map(|pool| pool.nr.to_string()),
        takes_effect: Effect::ServerRestart,
        ..Recommendation::new(
            Severity::Warning,
            Area::Kernel,
            pool::setting(size, survey.is_default(size)),
            reason,
        )
    }
}

impl Survey {
    /// Whether mappings that request no size get huge pages of `size`.
    fn is_default(&self, size: PageSize) -> bool {
        self.host.default_page_size() == Some(size)
    }
}
