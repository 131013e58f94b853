//! What is said of an Oracle instance that does not run: how severe that is, one sentence on it, and one on what to do.

use hugepage_assess::advice::message::{is_of_pool, shortfall};
use hugepage_assess::advice::recommendation::counted;
use hugepage_assess::assessment::{Forecast, Outlook, Severity};
use hugepage_assess::model::{Cause, PoolFact, Product};
use hugepage_kernel::Pages;
use hugepage_sizing::{Sizing, Wants};

use crate::stopped::{StoppedOracle, StoppedState};

const ORACLE: Product = Product::Oracle { memory_target: false, may_mix: true, use_large_pages: None, is_asm: false };

const SGA_TARGET: &str = "Set SGA_TARGET and PGA_AGGREGATE_TARGET in place of MEMORY_TARGET";

impl StoppedOracle {
    /// What its next start would get; `Base` if it asks for no huge pages.
    pub fn outlook(&self) -> Outlook {
        match (&self.wants, &self.forecast) {
            (_, Some(forecast)) => forecast.outlook,
            (Wants::None(_), None) if self.lacks_dev_shm() => Outlook::Fails,
            (Wants::None(_), None) => Outlook::Base,
            _ => Outlook::Unknown,
        }
    }

    /// How severe it is that it does not run, or how it would start.
    pub fn severity(&self) -> Severity {
        let of_forecast = self.forecast.as_ref().map(|forecast| forecast.outlook);
        severity(self.state, self.starts_at_boot, of_forecast.or(self.lacks_dev_shm().then_some(Outlook::Fails)))
    }

    /// Whether /dev/shm is too small for MEMORY_TARGET (ORA-00845).
    fn lacks_dev_shm(&self) -> bool {
        self.memory_target.zip(self.dev_shm).is_some_and(|(needed, size)| size < needed)
    }

    /// The state, and what the next start would get.
    pub fn message(&self) -> String {
        let state = match self.state {
            StoppedState::Stopped => "The instance is stopped".to_owned(),
            StoppedState::Failed => {
                let errors = self.errors();
                let gravest = errors.clone().find(|error| error.starts_with("ORA-")).or_else(|| errors.clone().next());
                format!("The last start failed ({})", gravest.map_or("", |error| error.trim_end_matches('.')))
            }
        };
        let next = match (&self.wants, &self.forecast) {
            (_, Some(forecast)) if forecast.cause == Some(Cause::ShmLimit) => {
                format!("its next start would fail: {}", self.lacks(forecast))
            }
            (Wants::None(_), Some(forecast)) => self.fails(forecast),
            (Wants::None(_), None) if self.lacks_dev_shm() => {
                let (needed, size) = (self.memory_target.unwrap_or_default(), self.dev_shm.unwrap_or_default());
                format!("its next start would fail: MEMORY_TARGET needs {needed} in /dev/shm, whose size is {size}")
            }
            (Wants::None(why), None) => format!("its next start asks for no huge pages: {why}"),
            (Wants::Unknown(_), _) | (_, None) => "the huge pages that its next start needs are unknown".to_owned(),
            (Wants::Pages(pages, _), Some(forecast)) => {
                let size = forecast.huge_page_size.map_or(String::new(), |size| format!(" of {size}"));
                let lacks = self.lacks(forecast);
                match forecast.outlook {
                    Outlook::Hugetlb => format!("its next start would get its {pages} huge pages{size}"),
                    Outlook::Mixed => format!("its next start would not get all of its huge pages: {lacks}"),
                    Outlook::Base => format!("its next start would get no huge pages: {lacks}"),
                    Outlook::Fails => self.fails(forecast),
                    Outlook::Unknown => {
                        format!("whether its next start gets its {pages} huge pages{size} is unknown: {lacks}")
                    }
                }
            }
        };
        format!("{state}; {next}.")
    }

    /// What to do; `None` if nothing, or nothing that is known here would help.
    pub fn hint(&self, sizings: &[Sizing]) -> Option<String> {
        if let Some(hint) = self.hint_on_parameters() {
            return Some(hint);
        }
        let failed = self.last_start.as_ref().filter(|_| self.state == StoppedState::Failed);
        let lacked_shm = failed.is_some_and(|start| start.dev_shm.is_some());
        if self.forecast.is_none() && lacked_shm && self.dev_shm.is_some() {
            return Some("Start the instance: the host now has what it lacked.".to_owned());
        }
        let forecast = self.forecast.as_ref()?;
        // What the kernel refuses, whatever the pool has.
        if let Some(limit) = self.pool_state.lock_limit.filter(|limit| Some(limit.cause()) == forecast.cause)
            && let Some((name, value)) = limit.sysctl()
        {
            let run = format!("Run \"sysctl -w {name}={value}\"");
            return Some(format!("{run} and put it into /etc/sysctl.d, then start the instance."));
        }
        if matches!(&self.pool_state.pool, PoolFact::Unsupported(sizes) if sizes.is_empty()) {
            return Some("Set use_large_pages = FALSE, or boot a kernel that has huge pages.".to_owned());
        }
        let size = forecast.huge_page_size?;
        match forecast.cause {
            Some(cause) if is_of_pool(cause) => {
                let sizing = Sizing::of_size(sizings, size)?;
                if let Some(misfit) = sizing.misfits.iter().find(|misfit| misfit.name == self.name) {
                    return Some(format!("Reduce SGA_MAX_SIZE: the host cannot hold {} of these pages.", misfit.over));
                }
                let command = sizing.step(self.pool_state.pool.known()?, true)?.command()?;
                Some(format!("Run \"{command}\" ({}) and start the instance.", counted(Some(Pages(0)))))
            }
            Some(Cause::MemlockLimit) => {
                let kb = size.times(forecast.needed?).0.div_ceil(1024);
                Some(format!("Raise the memlock limit of the owner of the instance to at least {kb} kB, and start it."))
            }
            None if lacked_shm || self.lacked_pages() => {
                Some("Start the instance: the host now has what it lacked.".to_owned())
            }
            None if self.state == StoppedState::Failed => {
                Some("The pool has enough pages: see the error in the alert log.".to_owned())
            }
            _ => None,
        }
    }

    /// What to do where the parameters exclude each other, whatever the pool has (Database Error Messages, ORA-27138 and ORA-27107).
    fn hint_on_parameters(&self) -> Option<String> {
        let is_by_memory_target = self.forecast.as_ref().is_some_and(|one| one.cause == Some(Cause::MemoryTarget));
        let kb = self.memory_target.unwrap_or_default().0.div_ceil(1024);
        let enlarge = format!("{SGA_TARGET}, or run \"mount -o remount,size={kb}k /dev/shm\"");
        let change = if self.forecast.is_none() && self.lacks_dev_shm() {
            &*enlarge
        } else if is_by_memory_target || self.has_error(27138) && self.memory_target.is_some() {
            SGA_TARGET
        } else if [27138, 27107].iter().any(|code| self.has_error(*code))
            || self.errors().any(|error| error.contains("not a supported setting for database on Exadata"))
        {
            "Set use_large_pages to a value that this release and the other parameters allow (on Exadata ONLY or AUTO_ONLY)"
        } else {
            return None;
        };
        Some(format!("{change}, and start the instance."))
    }

    /// Huge pages were missing, or the kernel refused them to the owner.
    fn lacked_pages(&self) -> bool {
        let mut errors = self.errors();
        [27137, 27106, 27125].iter().any(|code| self.has_error(*code))
            || errors.any(|error| !error.starts_with("ORA-") && error.to_ascii_lowercase().contains("large pages"))
    }

    fn has_error(&self, code: u32) -> bool {
        self.errors().any(|error| error.strip_prefix("ORA-").is_some_and(|rest| rest.starts_with(&code.to_string())))
    }

    fn errors(&self) -> impl Iterator<Item = &String> + Clone {
        self.last_start.iter().filter(|_| self.state == StoppedState::Failed).flat_map(|start| &start.errors)
    }

    fn fails(&self, forecast: &Forecast) -> String {
        let setting = self.use_large_pages.as_deref().unwrap_or("TRUE");
        format!("its next start would fail: use_large_pages = {setting}, and {}", self.lacks(forecast))
    }

    fn lacks(&self, forecast: &Forecast) -> String {
        if forecast.cause.is_none() && forecast.outlook == Outlook::Unknown {
            return "other instances that are stopped need pages, memlock or System V memory, too".to_owned();
        }
        shortfall(forecast, Some(&self.pool_state), ORACLE)
    }
}

/// `outlook`: what its next start would get; `None` if it asks for no huge pages or its need is unknown. An instance
/// that nobody starts at boot is often a line that was left in oratab, so it is no warning.
fn severity(state: StoppedState, starts_at_boot: bool, outlook: Option<Outlook>) -> Severity {
    match (state, outlook) {
        (StoppedState::Failed, _) => Severity::Critical,
        (_, Some(Outlook::Mixed | Outlook::Base | Outlook::Fails)) if starts_at_boot => Severity::Warning,
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
            assert_eq!(format!("{state} {}", severity(state, starts_at_boot, outlook)), expected);
        }
    }
}
