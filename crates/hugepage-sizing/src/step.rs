//! The step for a whole host: its pool for all servers that are seen.

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation, counted};
use hugepage_assess::assessment::Severity;
use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use crate::{Misfit, PoolNeed, Sizing};

impl Sizing {
    /// The step that gives `pool` the pages that its servers lack; `None` if it has enough, or the number is unknown.
    pub fn step(&self, pool: &Pool, is_default: bool) -> Option<Step> {
        let (size, pages) = (self.page_size, self.recommended.filter(|pages| *pages > pool.persistent())?);
        let leaves = self.capacity?.leaves_less(pages, size);
        Some(Step::SetPool { size, is_default, pages, after_stop: false, leaves })
    }

    /// The row of that step. `holder`: a clause on who else holds pages that count.
    pub fn row(&self, pool: &Pool, is_default: bool, severity: Severity, holder: &str) -> Option<Recommendation> {
        let command = self.step(pool, is_default)?.command();
        let (now, pages) = (pool.persistent(), self.recommended?);
        let who = match &self.needs[..] {
            [one] => format!("{} needs", one.name),
            all => format!("The {} instances of this host need", all.len()),
        };
        let fit = if self.misfits.is_empty() { "" } else { " for what fits" };
        let stopped = self.by_stopped().map_or(fit.to_owned(), |clause| format!("{fit} ({clause})"));
        let text =
            pool::shortfall(&who, (self.fitting(), &stopped), self.counted_others(), (now, pages), self.page_size);
        let strangers = self.strangers.clause();
        let caution = pool::caution(pages, self.page_size, self.capacity);
        let clause = |one: &Misfit| format!("; {} would need {} and does not fit", one.name, one.pages);
        let misfits: String = self.misfits.iter().map(clause).collect();
        let setting = pool::setting(self.page_size, is_default);
        Some(
            Recommendation {
                current: Some(now.to_string()),
                recommended: Some(pages.to_string()),
                command,
                takes_effect: Effect::ServerRestart,
                ..Recommendation::new(
                    severity,
                    Area::Kernel,
                    setting,
                    format!("{text}{holder}{strangers}{caution}{misfits}."),
                )
            }
            .counting(&counted(Some(Pages(0)))),
        )
    }

    /// A clause on servers that do not run, which other outputs may not count: `of which 72 for 1 stopped server`.
    pub fn by_stopped(&self) -> Option<String> {
        let fits = |need: &&PoolNeed| self.misfits.iter().all(|misfit| misfit.name != need.name);
        let stopped: Vec<_> = self.needs.iter().filter(|need| !need.is_running).filter(fits).collect();
        let pages = stopped.iter().map(|need| need.pages.0).fold(0, u64::saturating_add);
        let servers = if stopped.len() == 1 { "server" } else { "servers" };
        (!stopped.is_empty()).then(|| format!("of which {pages} for {} stopped {servers}", stopped.len()))
    }
}
