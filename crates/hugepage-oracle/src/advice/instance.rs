//! Settings of an instance and limits of its owner that prevent huge pages for the SGA.

use hugepage_assess::advice::command::{memlock_of_service, quoted};
use hugepage_assess::advice::message;
use hugepage_assess::advice::message::product::ProductTerms;
use hugepage_assess::advice::recommendation::{Area, Recommendation};
use hugepage_assess::assessment::{Severity, Status};
use hugepage_assess::model::{Cause, HugePages, Landing, PoolFact};
use hugepage_kernel::proc::rlimit::Rlimit;

use crate::advice::recommendation;

/// A running instance, with what every server has.
#[derive(Clone, Copy, Debug)]
pub struct AdvisedOracle<'a> {
    /// The SID.
    pub name: &'a str,
    /// The name of its user.
    pub owner: Option<&'a str>,
    /// The systemd service that started it.
    pub service: Option<&'a str>,
    /// The memory that it may lock.
    pub memlock: Option<Rlimit>,
    /// The assessment.
    pub status: &'a Status,
}

/// The recommendations for one instance.
pub fn recommendations(instance: &AdvisedOracle<'_>) -> Vec<Recommendation> {
    [kernel_without(instance), memlock(instance)].into_iter().flatten().collect()
}

/// The kernel was built without huge pages (`CONFIG_HUGETLBFS`), or its machine has none.
fn kernel_without(instance: &AdvisedOracle<'_>) -> Option<Recommendation> {
    let facts = &instance.status.facts;
    let has_none = matches!(&facts.pool_state.pool, PoolFact::Unsupported(sizes) if sizes.is_empty());
    let terms = ProductTerms::current(&facts.requested);
    let current = terms.split_once(" = ").map(|(_, value)| value.to_owned());
    let asks = facts.requested.huge_pages != HugePages::Off && !facts.requested.never_in_huge_pages();
    (has_none && asks).then(|| Recommendation {
        severity: instance.status.verdict().0,
        finding: Some(instance.status.verdict().1.name()),
        command: Some("ALTER SYSTEM SET use_large_pages = FALSE SCOPE=SPFILE;".to_owned()),
        ..recommendation("use_large_pages", current, Some("FALSE".to_owned()), message(instance.status))
    })
}

/// The memlock limit of the instance is below its SGA.
fn memlock(instance: &AdvisedOracle<'_>) -> Option<Recommendation> {
    let segment = instance.status.facts.segment.as_ref()?;
    let Some(Rlimit::At(limit)) = instance.memlock else { return None };
    if limit >= segment.to_reserve || instance.status.cause == Some(Cause::MemoryTarget) {
        return None;
    }
    let is_in_huge_pages = segment.landing == Landing::Hugetlb;
    let wanted = segment.to_reserve.0.div_ceil(1024);
    let owner = instance.owner.filter(|owner| !owner.contains(char::is_whitespace)).unwrap_or("oracle");
    let (command, place) = match instance.service {
        // CRS_LIMIT_MEMLOCK holds for all that the stack starts.
        Some(service) if service.contains("ohasd") => (
            None,
            format!(
                "{service} started it, to which limits.conf does not apply: set CRS_LIMIT_MEMLOCK in \
                 crs/install/s_crsconfig_HOST_env.txt of the Grid Infrastructure home and restart the stack"
            ),
        ),
        Some(service) => (
            Some(memlock_of_service(service, &(wanted * 1024).to_string())),
            format!("{service} started it, to which limits.conf does not apply"),
        ),
        None => (
            Some(format!(
                "echo {} > /etc/security/limits.d/90-oracle-memlock.conf",
                quoted(&format!("{owner} - memlock {wanted}"))
            )),
            "limits.conf(5) has it for new sessions of its owner".to_owned(),
        ),
    };
    Some(Recommendation {
        severity: if is_in_huge_pages { Severity::Notice } else { Severity::Warning },
        area: Area::Limits,
        command,
        ..recommendation(
            "memlock",
            Some(limit.0.to_string()),
            Some((wanted * 1024).to_string()),
            format!(
                "The memlock limit of {} is {limit}, and its SGA takes {} (MOS 2049901.1); {place}.",
                instance.name, segment.to_reserve
            ),
        )
    })
}
