//! One sentence on an Oracle instance that does not run, and one on what to do.

use hugepage_assess::advice::message::product::ProductTerms;
use hugepage_assess::advice::message::{Shortfall, is_of_pool};
use hugepage_assess::advice::pool;
use hugepage_assess::assessment::stopped::StoppedState;
use hugepage_assess::assessment::{Forecast, Outlook, Sizing};
use hugepage_assess::model::{Cause, HugePages, PoolFact, Product};
use hugepage_assess::stopped_databases::Wants;

use crate::stopped::StoppedOracle;

const ORACLE: Product = Product::Oracle { memory_target: false, may_mix: true, use_large_pages: None, is_asm: false };

impl StoppedOracle {
    /// The state, and what the next start would get.
    pub fn message(&self) -> String {
        let state = match self.state {
            StoppedState::Stopped => "The instance is stopped".to_owned(),
            StoppedState::Failed => {
                let errors = self.last_start.iter().flat_map(|start| &start.errors);
                let gravest = errors.clone().find(|error| error.starts_with("ORA-")).or_else(|| errors.clone().next());
                format!("The last start failed ({})", gravest.map_or("", |error| error.trim_end_matches('.')))
            }
        };
        let next = match (&self.wants, &self.forecast) {
            (Wants::None(_), Some(forecast)) => {
                let setting = ProductTerms::of_product(ORACLE).setting(self.huge_pages);
                format!("its next start would fail: {setting}, and {}", self.lacks(forecast))
            }
            (Wants::None(why), None) => format!("its next start asks for no huge pages: {why}"),
            (Wants::Unknown(_), _) | (_, None) => "the huge pages that its next start needs are unknown".to_owned(),
            (Wants::Pages(pages, _), Some(forecast)) => {
                let size = forecast.huge_page_size.map_or(String::new(), |size| format!(" of {size}"));
                let setting = ProductTerms::of_product(ORACLE).setting(self.huge_pages);
                match forecast.outlook {
                    Outlook::Hugetlb => format!("its next start would get its {pages} huge pages{size}"),
                    Outlook::Mixed => {
                        format!("its next start would not get all of its huge pages: {}", self.lacks(forecast))
                    }
                    Outlook::Base => format!("its next start would get no huge pages: {}", self.lacks(forecast)),
                    Outlook::Fails => format!("its next start would fail: {setting}, and {}", self.lacks(forecast)),
                    Outlook::Unknown => {
                        format!(
                            "whether its next start gets its {pages} huge pages{size} is unknown: {}",
                            self.lacks(forecast)
                        )
                    }
                }
            }
        };
        format!("{state}; {next}.")
    }

    /// What to do; `None` if nothing, or nothing that is known here would help.
    pub fn hint(&self, sizings: &[Sizing]) -> Option<String> {
        let forecast = self.forecast.as_ref()?;
        if matches!(&self.pool_state.pool, PoolFact::Unsupported(sizes) if sizes.is_empty()) {
            return Some("Set use_large_pages = FALSE, or boot a kernel that has huge pages.".to_owned());
        }
        let size = forecast.huge_page_size?;
        let sizing = Sizing::of_size(sizings, size);
        match forecast.cause {
            Some(cause) if is_of_pool(cause) => {
                let sizing = sizing?;
                match sizing.misfits.iter().find(|misfit| misfit.name == self.name) {
                    Some(misfit) => {
                        Some(format!("Reduce SGA_MAX_SIZE: the host cannot hold {} of these pages.", misfit.over))
                    }
                    None => {
                        let command = pool::change(sizing, self.pool_state.pool.known()?, true)?;
                        Some(format!("Run \"{command}\" and start the instance{}.", self.with()))
                    }
                }
            }
            Some(Cause::MemlockLimit) => {
                let kb = size.times(forecast.needed?).0.div_ceil(1024);
                Some(format!(
                    "Raise the memlock limit of the owner of the instance to at least {kb} kB, and start it{}.",
                    self.with()
                ))
            }
            None if self.state == StoppedState::Failed && self.is_about_pages() => {
                Some(format!("Start the instance{}: the pool has enough pages now.", self.with()))
            }
            None if self.state == StoppedState::Failed => {
                Some("The pool has enough pages: see the error in the alert log.".to_owned())
            }
            _ => None,
        }
    }

    /// The command of Grid Infrastructure that starts it, where there is one.
    fn with(&self) -> String {
        let command = self.clusterware.as_ref().and_then(|clusterware| Some(clusterware.commands()?.start));
        command.map_or(String::new(), |command| format!(" with \"{command}\""))
    }

    /// ORA-27137 and ORA-27125: huge pages were refused.
    fn is_about_pages(&self) -> bool {
        let errors = self.last_start.iter().flat_map(|start| &start.errors);
        errors
            .into_iter()
            .any(|error| error.starts_with("ORA-27137") || error.to_ascii_lowercase().contains("large pages"))
    }

    fn lacks(&self, forecast: &Forecast) -> String {
        let shortfall = Shortfall {
            cause: forecast.cause,
            page_size: forecast.huge_page_size,
            needed: forecast.needed.unwrap_or_default(),
            guaranteed: forecast.guaranteed.unwrap_or_default(),
            pool: Some(&self.pool_state.pool),
            lock_limit: self.pool_state.lock_limit,
            nodes: None,
            off: ProductTerms::of_product(ORACLE).setting(HugePages::Off),
            rings: &forecast.rings,
        };
        shortfall.to_string()
    }
}
