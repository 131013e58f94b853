//! Pages beside those that the server needs: surplus pages for its own pool, and unused pages of other pools.

use hugepage_kernel::Pages;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::Severity;
use crate::model::HugePages;
use crate::pools;

/// Surplus pages are not guaranteed, and cost nothing until they are used: a slightly too small pool can still serve a start.
pub fn overcommit(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let pool = status.facts.pool_state.pool.known()?;
    let size = pool.page_size;
    let applies = context.in_huge_pages()
        && pool.overcommit == Some(Pages(0))
        && size.bytes().0 < 1 << 30
        && status.facts.requested.huge_pages == HugePages::Try
        && status.to_land.is_some_and(|to_land| context.persistent() >= to_land);
    let spare = status.capacity?.within_reserve.min(status.capacity?.most).saturating_sub(context.persistent());
    let wanted = status.needed?.min(spare);
    if !applies || wanted == Pages(0) {
        return None;
    }
    let is_default = status.facts.is_default(size);
    let reason = format!(
        "With {wanted} surplus pages allowed, a start can use free memory if the pool has too few pages; until then they take \
         no memory."
    );
    let setting = pool::setting(size, is_default).replace("nr_hugepages", "nr_overcommit_hugepages");
    Some(Recommendation {
        current: Some("0".to_owned()),
        recommended: Some(wanted.to_string()),
        command: Some(command::set_overcommit(size, is_default, wanted)),
        ..Recommendation::new(Severity::Notice, Area::Kernel, setting, reason)
    })
}

/// Pools of other sizes with unused pages. Without a number: a server that does not run may need them.
pub fn of_others(context: &AdviceContext) -> Vec<Recommendation> {
    let own = context.status.facts.pool_state.huge_page_size;
    let pending = context.status.facts.pending.pool_state().and_then(|pool_state| pool_state.huge_page_size);
    let of_others = pools::of_host(&context.pools).filter(|row| ![own, pending].contains(&Some(row.pool.page_size)));
    let row = |row: &pools::PoolRow| {
        let (size, now) = (row.pool.page_size, row.pool.persistent());
        let unused = now.saturating_sub(row.pool.in_use()?);
        let reason = format!("{unused} of the {now} pages of {size} are unused, and this server cannot use them.");
        let saving = Some(size.times(unused));
        let row = Recommendation::new(Severity::Notice, Area::Kernel, pool::setting(size, row.is_default), reason);
        (unused > Pages(0)).then_some(Recommendation { current: Some(now.to_string()), saving, ..row })
    };
    of_others.filter_map(row).collect()
}
