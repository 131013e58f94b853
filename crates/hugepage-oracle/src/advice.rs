//! What is said of an Oracle instance that does not run: how severe that is, one sentence on it, and one on what to do.

use hugepage_assess::advice::message::{is_of_pool, of_permission, shortfall};
use hugepage_assess::assessment::{Forecast, Outlook, Severity};
use hugepage_assess::model::Product;
use hugepage_facts::{Cause, LastStart};
use hugepage_kernel::{Bytes, Pages};
use hugepage_sizing::{Sizing, Wants};

use crate::readers::startup::lacked_memory;
use crate::start_limits::LackedMemlock;
use crate::stopped::{NO_CALL, StoppedOracle, StoppedState};

const ORACLE: Product = Product::Oracle {
    memory_target: false,
    may_mix: true,
    use_large_pages: None,
    is_asm: false,
};

const SEE_LOG: &str = "See the error in the alert log.";

const REDUCE: &str = "The kernel had no memory for a process of the start: reduce the pool if it keeps pages that nobody needs \
                      (hugepage-sidecar size), and start the instance.";

const SGA_TARGET: &str = "Set SGA_TARGET and PGA_AGGREGATE_TARGET in place of MEMORY_TARGET";

impl StoppedOracle {
    /// What its next start would get; `Base` if it asks for no huge pages.
    pub fn outlook(&self) -> Outlook {
        match (&self.wants, &self.forecast) {
            (_, Some(forecast)) => forecast.outlook,
            (Wants::None(_), None) if self.lacks_dev_shm() => Outlook::Fails,
            (Wants::None(_), None) if self.memlock.is_none() => Outlook::Base,
            _ => Outlook::Unknown,
        }
    }

    /// How severe it is that it does not run, or how it would start.
    pub fn severity(&self) -> Severity {
        let of_forecast = self.forecast.as_ref().map(|forecast| forecast.outlook);
        severity(
            self.state,
            self.starts_at_boot,
            of_forecast.or(self.lacks_dev_shm().then_some(Outlook::Fails)),
        )
    }

    /// Whether /dev/shm is too small for MEMORY_TARGET (ORA-00845).
    fn lacks_dev_shm(&self) -> bool {
        self.memory_target
            .zip(self.dev_shm)
            .is_some_and(|(needed, size)| size < needed)
    }

    /// The state, and what the next start would get.
    pub fn message(&self) -> String {
        let state = match self.state {
            StoppedState::Stopped => "The instance is stopped".to_owned(),
            StoppedState::Failed => {
                let errors = self.errors();
                let gravest = errors
                    .clone()
                    .find(|error| error.starts_with("ORA-"))
                    .or_else(|| errors.clone().next());
                format!(
                    "The last start failed ({})",
                    gravest.map_or("PMON did not start", |error| error.trim_end_matches('.'))
                )
            }
        };
        let next = match (&self.wants, &self.forecast) {
            (_, Some(forecast)) if forecast.cause == Some(Cause::ShmLimit) => {
                format!("its next start would fail: {}", self.lacks(forecast))
            }
            (Wants::None(_), Some(forecast)) => self.fails(forecast),
            (Wants::None(_), None) if self.lacks_dev_shm() => {
                let needed = self.memory_target.unwrap_or_default();
                let size = self.dev_shm.unwrap_or_default();
                format!(
                    "its next start would fail: MEMORY_TARGET needs {needed} in /dev/shm, whose size is {size}"
                )
            }
            (Wants::None(why), None) => {
                let memlock = self
                    .memlock
                    .map(of_memlock)
                    .map(|lacks| format!("; {lacks}"));
                format!(
                    "its next start asks for no huge pages: {why}{}",
                    memlock.unwrap_or_default()
                )
            }
            (Wants::Unknown(_), _) | (_, None) => {
                "the huge pages that its next start needs are unknown".to_owned()
            }
            (Wants::Pages(pages), Some(forecast)) => {
                let size = forecast
                    .huge_page_size
                    .map_or(String::new(), |size| format!(" of {size}"));
                let lacks = self.lacks(forecast);
                match forecast.outlook {
                    Outlook::Hugetlb => {
                        format!("its next start would get its {pages} huge pages{size}")
                    }
                    Outlook::Mixed => {
                        format!("its next start would not get all of its huge pages: {lacks}")
                    }
                    Outlook::Base => format!("its next start would get no huge pages: {lacks}"),
                    Outlook::Fails => self.fails(forecast),
                    Outlook::Unknown => {
                        format!(
                            "whether its next start gets its {pages} huge pages{size} is unknown: {lacks}"
                        )
                    }
                }
            }
        };
        format!("{state}; {next}.")
    }

    /// What to do, in the order in which the obstacles stop a start; `None` if nothing, or nothing that is known here would help.
    pub fn hint(&self, sizings: &[Sizing]) -> Option<String> {
        let of_parameters = self.hint_on_parameters();
        if of_parameters.is_some() {
            return of_parameters;
        }
        let failed = self.failed_start();
        let no_memory = Some(libc::ENOMEM.unsigned_abs());
        if failed.is_some_and(|start| start.has_error(NO_CALL) && start.os_error == no_memory) {
            return Some(REDUCE.to_owned());
        }
        // The last pages of a guess are not why it failed.
        let is_of_log = failed.is_some_and(|start| !lacked_memory(start));
        let is_guess = is_of_log && self.outlook() == Outlook::Unknown;
        let memlock = self.memlock.map(|memlock| {
            let kb = memlock.needed.0.div_ceil(1024);
            format!(
                "raise the memlock limit of whatever starts the instance to at least {kb} kB (LimitMEMLOCK= of its unit, --ulimit \
                 memlock of its container, else limits.conf), unless it was raised since its last start"
            )
        });
        let limits = self.limits.iter().filter_map(|limit| limit.sysctl());
        let limits = limits.map(|(name, value)| {
            format!("run \"sysctl -w {name}={value}\" and put it into /etc/sysctl.d")
        });
        let steps: Vec<_> = memlock
            .into_iter()
            .chain(limits)
            .chain(self.pool_step(sizings).filter(|_| !is_guess))
            .collect();
        let mut steps = steps.join("; ");
        if let Some(first) = steps.get_mut(..1) {
            first.make_ascii_uppercase();
            let counted = if steps.contains("nr_hugepages") {
                " The number counts all servers seen here; `hugepage-sidecar size` counts the whole host."
            } else {
                ""
            };
            return Some(format!("{steps}, then start the instance.{counted}"));
        }
        let is_possible = self
            .forecast
            .as_ref()
            .map_or(self.dev_shm.is_some(), |one| {
                one.outlook == Outlook::Hugetlb
            });
        match failed {
            Some(_) if is_of_log => Some(SEE_LOG.to_owned()),
            Some(_) if is_possible => {
                Some("Start the instance: the host now has what it lacked.".to_owned())
            }
            _ => None,
        }
    }

    /// The step that gives the pool what a start lacks.
    fn pool_step(&self, sizings: &[Sizing]) -> Option<String> {
        let forecast = self.lacks_pages()?;
        let sizing = Sizing::of_size(sizings, forecast.huge_page_size?)?;
        let command = || sizing.step(self.pool_state.pool.known()?, true)?.command();
        if let Some(removal) = sizing.strangers.removal() {
            let command = command().map_or(String::new(), |one| format!(", run \"{one}\""));
            return Some(format!("to free the pool {removal}{command}"));
        }
        let mut misfits = sizing.misfits.iter();
        if let Some(misfit) = misfits.find(|misfit| misfit.key == self.key()) {
            let over = misfit.over;
            return Some(format!(
                "reduce SGA_MAX_SIZE (the host cannot hold {over} of these pages)"
            ));
        }
        command().map(|command| format!("run \"{command}\""))
    }

    /// The forecast, if the pool lacks pages for it.
    fn lacks_pages(&self) -> Option<&Forecast> {
        let is_short = |forecast: &&Forecast| {
            forecast.cause.is_some_and(is_of_pool) || forecast.missing > Some(Pages(0))
        };
        self.forecast.as_ref().filter(is_short)
    }

    /// What to do where the parameters exclude each other, whatever the pool has (Database Error Messages, ORA-27138 and ORA-27107).
    fn hint_on_parameters(&self) -> Option<String> {
        let is_by_memory_target = self
            .forecast
            .as_ref()
            .is_some_and(|one| one.cause == Some(Cause::MemoryTarget));
        let kb = self.memory_target.unwrap_or_default().0.div_ceil(1024);
        let enlarge = format!("{SGA_TARGET}, or run \"mount -o remount,size={kb}k /dev/shm\"");
        let change = if self.forecast.is_none() && self.lacks_dev_shm() {
            &*enlarge
        } else if is_by_memory_target || self.has_error(27138) && self.memory_target.is_some() {
            SGA_TARGET
        } else if self.has_error(27138)
            || self.has_error(27107)
            || self
                .errors()
                .any(|error| error.contains("not a supported setting for database on Exadata"))
        {
            "Set use_large_pages to a value that this release and the other parameters allow (on Exadata ONLY or AUTO_ONLY)"
        } else {
            return None;
        };
        Some(format!("{change}, and start the instance."))
    }

    /// The last start, if it failed.
    fn failed_start(&self) -> Option<&LastStart> {
        let is_failed = self.state == StoppedState::Failed;
        self.last_start.as_ref().filter(|_| is_failed)
    }

    fn has_error(&self, code: u32) -> bool {
        self.failed_start()
            .is_some_and(|start| start.has_error(code))
    }

    fn errors(&self) -> impl Iterator<Item = &String> + Clone {
        self.failed_start()
            .into_iter()
            .flat_map(LastStart::all_errors)
    }

    fn fails(&self, forecast: &Forecast) -> String {
        let setting = self.use_large_pages.as_deref().unwrap_or("TRUE");
        format!(
            "its next start would fail: use_large_pages = {setting}, and {}",
            self.lacks(forecast)
        )
    }

    /// What stops a start, in that order; or what may stop it, if nothing does for certain.
    fn lacks(&self, forecast: &Forecast) -> String {
        let needed = forecast.huge_page_size.zip(forecast.needed);
        let needed = needed.map_or(Bytes(0), |(size, pages)| size.times(pages));
        let of_pool = self.lacks_pages().map(|forecast| {
            let cause = forecast.cause.filter(|cause| is_of_pool(*cause));
            let forecast = Forecast {
                cause: cause.or(Some(Cause::PoolTooSmall)),
                ..forecast.clone()
            };
            shortfall(&forecast, Some(&self.pool_state), ORACLE)
        });
        let limits = self.limits.iter();
        let all: Vec<_> = self
            .memlock
            .map(of_memlock)
            .into_iter()
            .chain(limits.map(|limit| of_permission(limit.cause(), Some(*limit), needed)))
            .chain(of_pool)
            .collect();
        match (forecast.cause, forecast.outlook) {
            _ if !all.is_empty() => all.join("; "),
            (None, Outlook::Unknown)
                if self
                    .failed_start()
                    .is_some_and(|start| !lacked_memory(start)) =>
            {
                "its last start failed for another reason".to_owned()
            }
            (None, Outlook::Unknown) => {
                "other instances that are stopped need pages, memlock or System V memory, too"
                    .to_owned()
            }
            _ => shortfall(forecast, Some(&self.pool_state), ORACLE),
        }
    }
}

fn of_memlock(LackedMemlock { limit, needed }: LackedMemlock) -> String {
    match limit {
        Some(limit) => {
            format!("its last start had a memlock limit of {limit}, and {needed} is needed")
        }
        None => {
            format!("it needs a memlock limit of {needed}, and that of its last start is not known")
        }
    }
}

/// `outlook`: what its next start would get; `None` if it asks for no huge pages or its need is unknown. An instance
/// that nobody starts at boot is often a line that was left in oratab, so it is no warning.
fn severity(state: StoppedState, starts_at_boot: bool, outlook: Option<Outlook>) -> Severity {
    match (state, outlook) {
        (StoppedState::Failed, _) => Severity::Critical,
        (_, Some(Outlook::Mixed | Outlook::Base | Outlook::Fails)) if starts_at_boot => {
            Severity::Warning
        }
        _ => Severity::Notice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities() {
        use StoppedState::{Failed, Stopped};
        for (state, starts_at_boot, outlook, expected) in [
            (Failed, false, Some(Outlook::Hugetlb), "failed critical"),
            (Stopped, true, Some(Outlook::Base), "stopped warning"),
            (Stopped, false, Some(Outlook::Base), "stopped notice"),
            (Stopped, true, Some(Outlook::Hugetlb), "stopped notice"),
            (Stopped, true, None, "stopped notice"),
        ] {
            assert_eq!(
                format!("{state} {}", severity(state, starts_at_boot, outlook)),
                expected
            );
        }
    }
}
