//! Steps as rows: the setting, its value and the command of each step that a finding leads to.

use hugepage_kernel::memory::pool as kernel_pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Plan, Step};
use crate::advice::message::product::ProductTerms;
use crate::advice::recommendation::{Area, Effect, Recommendation, setting};
use crate::advice::{message, pool};
use crate::assessment::{Finding, Severity, Status};
use crate::model::{Cause, HugePages, Landing};

/// The rows of all findings, the most severe first, and those of one finding in the order of its steps. What two findings lead to
/// is the row of the graver one.
pub fn of_findings(status: &Status) -> Vec<Recommendation> {
    let mut rows: Vec<Recommendation> = Vec::new();
    for (severity, finding) in &status.findings {
        let Some(plan) = Plan::of_finding(status, finding) else { continue };
        // If the server has to be made smaller first, a pool for it does not help the present one.
        let waits = plan.steps.iter().any(|step| matches!(step, Step::Reduce { .. }));
        let steps = plan.steps.iter().filter(|step| !(waits && matches!(step, Step::SetPool { .. })));
        for row in steps.filter_map(|step| of_step(status, step, (*severity, finding))) {
            if !rows.iter().any(|known| (known.area, &known.setting) == (row.area, &row.setting)) {
                rows.push(row);
            }
        }
    }
    rows
}

/// The row of `step`; `None` for a step that sets nothing, and for Oracle's memlock, of which its own rules know more.
fn of_step(status: &Status, step: &Step, (severity, finding): (Severity, &Finding)) -> Option<Recommendation> {
    let facts = &status.facts;
    let asked = facts.requested_next();
    let terms = ProductTerms::of_product(asked.product);
    let row = |area, name: &str, current: Option<String>, value: String| Recommendation {
        current,
        recommended: Some(value),
        command: step.command(),
        takes_effect: if facts.landing() == Landing::Hugetlb { Effect::Now } else { Effect::ServerRestart },
        finding: Some(finding.name()),
        ..Recommendation::new(severity, area, name, message::of_finding(status, finding))
    };
    let of_server = |name: &str, current: String, value: &str| {
        let row = row(terms.area, name, Some(current), value.to_owned());
        let command = Some(terms.statement(name, value));
        Recommendation { command, takes_effect: Effect::ServerRestart, ..row }
    };
    let row = match step {
        Step::RaiseLimit { path, to } => {
            let current = limit_of(status, path).map(|Bytes(limit)| limit.to_string());
            let row = row(Area::Cgroup, path, current, to.0.to_string());
            Recommendation { takes_effect: Effect::Now, ..row }
        }
        Step::Reduce { shared_buffers, .. } => {
            let buffers = setting((*shared_buffers)?);
            of_server("shared_buffers", setting(asked.shared_buffers), &buffers)
        }
        Step::SetPool { size, is_default, pages, .. } => {
            let share = status.share.filter(|_| facts.pool_state.huge_page_size == Some(*size));
            let now = known_pool(status, *size)?;
            let setting = pool::setting(*size, *is_default);
            let row = row(Area::Kernel, &setting, Some(now.to_string()), pages.to_string());
            // Beside surplus pages, the pages of the pool are not those that it keeps.
            let has_surplus = now < facts.pool_state.pool.known().map_or(now, |pool| pool.nr);
            match share.filter(|_| *pages > now && !has_surplus && status.cause != Some(Cause::Disabled)) {
                Some(share) => {
                    let others = share.others.saturating_sub(facts.strangers.pages);
                    let needs = pages.saturating_sub(others);
                    let is_alone = facts.others_lack.is_none_or(|lack| lack == Pages(0));
                    let who = if is_alone { "This server needs" } else { "The servers of this host need" };
                    let text = pool::shortfall(who, (needs, ""), others, (now, *pages), *size);
                    let strangers = facts.strangers.clause();
                    let caution = pool::caution(*pages, *size, status.capacity);
                    Recommendation { reason: format!("{text}{strangers}{caution}."), ..row }
                }
                None => Recommendation { saving: Some(size.times(now.saturating_sub(*pages))).filter(|saved| *saved > Bytes(0)), ..row },
            }
        }
        Step::SetNodePool { node, size, pages, .. } => {
            let shares = facts.pool_state.nodes.iter().flat_map(|nodes| &nodes.pools);
            let now = shares.into_iter().find(|share| share.node == *node).map(|share| share.pool.persistent())?;
            let file = kernel_pool::node_file(*node, *size);
            row(Area::Node, &file, Some(now.to_string()), pages.to_string())
        }
        Step::SetPoolAtBoot { size, is_default, pages, file } => {
            let current = status.at_boot().filter(|_| file.is_some()).map(|boot| boot.pages.to_string());
            let setting = pool::setting(*size, *is_default);
            let row = row(Area::Boot, &setting, current, pages.to_string());
            Recommendation { takes_effect: Effect::Reboot, ..row }
        }
        Step::SetShmLimit { name, value } => row(Area::Kernel, name, None, value.to_string()),
        Step::SetHugePagesTry => {
            let (name, off) = terms.setting(HugePages::Off).split_once(" = ")?;
            of_server(name, off.to_owned(), terms.setting(HugePages::Try).split_once(" = ")?.1)
        }
        Step::SetMmap => of_server("shared_memory_type", "sysv".to_owned(), "mmap"),
        Step::SetDefaultPageSize => of_server("huge_page_size", asked.huge_page_size?.setting(), "0"),
        Step::SetHugePageSize { size, available, needed } => {
            let current = asked.huge_page_size.map_or("0".to_owned(), PageSize::setting);
            let row = of_server("huge_page_size", current, &size.setting());
            let reason = format!("{} {available} pages of {size} are available, and the server needs {needed}.", row.reason);
            Recommendation { reason, ..row }
        }
        Step::ReplaceMemoryTarget => Recommendation {
            command: Some(
                "ALTER SYSTEM RESET memory_target SCOPE=SPFILE; ALTER SYSTEM RESET memory_max_target SCOPE=SPFILE; ALTER \
                 SYSTEM SET sga_target = ... SCOPE=SPFILE; ALTER SYSTEM SET pga_aggregate_target = ... SCOPE=SPFILE;"
                    .to_owned(),
            ),
            current: None,
            ..of_server("memory_target", String::new(), "0")
        },
        Step::FreePages { .. } | Step::RaiseMemlock { .. } | Step::Restart => return None,
    };
    Some(row.counting(facts.others_lack))
}

/// What the pool of `size` keeps now; `None` if unknown.
fn known_pool(status: &Status, size: PageSize) -> Option<Pages> {
    let of_pending = status.facts.pending.pool_state().and_then(|pool_state| pool_state.pool.known());
    let pools = [status.facts.pool_state.pool.known(), of_pending];
    pools.into_iter().flatten().find(|pool| pool.page_size == size).map(|pool| pool.persistent())
}

/// What the limit in the file `path` is now.
fn limit_of(status: &Status, path: &str) -> Option<Bytes> {
    let limits = status.facts.pool_state.limits.as_ref()?;
    let pages = limits.fault.iter().chain(&limits.reservation).map(|level| (&level.path, level.limit));
    let memory = limits.memory.iter().map(|level| (&level.path, level.limit));
    pages.chain(memory).find(|(of, _)| *of == path).map(|(_, limit)| limit)
}
