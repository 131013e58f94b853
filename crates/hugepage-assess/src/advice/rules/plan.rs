//! The rows of the steps that the hint names, so that a row and the hint can never differ.

use hugepage_kernel::memory::pool as kernel_pool;
use hugepage_kernel::{Bytes, Pages};

use crate::advice::context::AdviceContext;
use crate::advice::plan::{Plan, Step};
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::advice::{command, message, pool};
use crate::assessment::Severity;
use crate::model::Cause;

/// The rows of `found` with the steps of the hint: a row on the setting of a step gets the step's number, a step without
/// a row gets one. They come in the order of the steps.
pub fn with_steps(context: &AdviceContext, mut found: Vec<Recommendation>) -> Vec<Recommendation> {
    let Some(plan) = Plan::of_verdict(&context.status) else { return found };
    // More pages of the host would be spread over nodes that the server may not use.
    if let Some(Step::SetNodePool { size, .. }) =
        plan.steps.iter().find(|step| matches!(step, Step::SetNodePool { .. }))
    {
        let of_host = pool::setting(*size, context.status.facts.is_default(*size));
        found.retain(|row| row.area != Area::Kernel || row.setting != of_host || row.recommended.is_none());
    }
    // A pool for a server that is first to be made smaller is of no use to the present one.
    let waits = plan.steps.iter().any(|step| matches!(step, Step::Reduce(_)));
    let steps = plan.steps.iter().filter(|step| !(waits && matches!(step, Step::SetPool { .. })));
    let mut rows: Vec<_> = steps.filter_map(|step| row(context, step, &mut found)).collect();
    // A step is as grave as those that wait for it, so that the order stays when rows are sorted.
    let mut gravest = Severity::Ok;
    for row in rows.iter_mut().rev() {
        gravest = gravest.max(row.severity);
        row.severity = gravest;
    }
    rows.extend(found);
    rows
}

/// The row of `step`, with the reason of the row that `found` has for its setting; `None` where another row says it.
fn row(context: &AdviceContext, step: &Step, found: &mut Vec<Recommendation>) -> Option<Recommendation> {
    let status = &context.status;
    let by_choice = status.cause == Some(Cause::Disabled);
    let new = new_row(context, step)?;
    let of_setting = |row: &Recommendation| row.area == new.area && row.setting == new.setting;
    match found.iter().position(of_setting) {
        Some(at) => {
            let row = found.remove(at);
            Some(Recommendation { recommended: new.recommended, command: new.command, ..row })
        }
        // Base pages by choice are worth a row only where the rules say so.
        None => (!by_choice).then_some(new),
    }
}

fn new_row(context: &AdviceContext, step: &Step) -> Option<Recommendation> {
    let status = &context.status;
    let facts = &status.facts;
    let effect = if context.in_huge_pages() { Effect::Now } else { Effect::ServerRestart };
    let row =
        |area, setting: &str, current: Option<String>, recommended: String, command: Option<String>| Recommendation {
            severity: status.verdict().0.max(Severity::Notice),
            area,
            setting: setting.to_owned(),
            current,
            recommended: Some(recommended),
            reason: message::message(status),
            command,
            takes_effect: effect,
            saves: context.saving(),
        };
    let of_server = |setting: &str, current: String, recommended: &str| {
        let command = format!("ALTER SYSTEM SET {setting} = '{recommended}';");
        let row = row(Area::Postgresql, setting, Some(current), recommended.to_owned(), Some(command));
        Recommendation { takes_effect: Effect::ServerRestart, ..row }
    };
    let kernel = |Pages(pages): Pages, setting: &str, now: Pages, command: String, area| {
        row(area, setting, Some(now.to_string()), pages.to_string(), Some(command))
    };
    Some(match step {
        Step::RaiseLimit { path, to } => {
            let levels =
                facts.pool_state.limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation));
            let mut limits = levels.map(|level| (&level.path, level.limit));
            let memory = facts
                .pool_state
                .limits
                .iter()
                .flat_map(|limits| &limits.memory)
                .map(|level| (&level.path, level.limit));
            let current = limits.find(|(of, _)| *of == path).or_else(|| memory.into_iter().find(|(of, _)| *of == path));
            let command = format!("echo {} > {}", to.0, command::quoted(path));
            let row = row(
                Area::Cgroup,
                path,
                current.map(|(_, Bytes(limit))| limit.to_string()),
                to.0.to_string(),
                Some(command),
            );
            Recommendation { takes_effect: Effect::Now, ..row }
        }
        Step::SetPool { size, is_default, pages, .. } => {
            let now = facts.pool_state.pool.known().filter(|pool| pool.page_size == *size)?.persistent();
            let setting = pool::setting(*size, *is_default);
            kernel(*pages, &setting, now, command::set_pool(*size, *is_default, *pages), Area::Kernel)
        }
        Step::SetNodePool { node, size, pages, .. } => {
            let shares = facts.pool_state.nodes.iter().flat_map(|nodes| &nodes.pools);
            let now = shares.into_iter().find(|share| share.node == *node).map(|share| share.pool.persistent())?;
            let setting = kernel_pool::node_file(*node, *size);
            kernel(*pages, &setting, now, command::set_node_pool(*node, *size, *pages), Area::Node)
        }
        Step::SetHugePagesTry => of_server("huge_pages", facts.requested.huge_pages.to_string(), "try"),
        Step::SetMmap => of_server("shared_memory_type", "sysv".to_owned(), "mmap"),
        Step::SetDefaultPageSize => of_server("huge_page_size", facts.requested.huge_page_size?.setting(), "0"),
        Step::SetIoMethodWorker => of_server("io_method", "io_uring".to_owned(), "worker"),
        // Its row is that of shared_buffers, and the others are of Oracle, which has rows of its own.
        Step::Reduce(_)
        | Step::SetShmGroup(_)
        | Step::RaiseMemlock { .. }
        | Step::RaiseOpenFiles { .. }
        | Step::EnableIoUring
        | Step::ReplaceMemoryTarget
        | Step::Restart => {
            return None;
        }
    })
}
