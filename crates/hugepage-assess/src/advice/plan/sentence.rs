//! A plan as a sentence, and another on whom its number of pages counts.

use hugepage_kernel::Pages;
use hugepage_kernel::cgroups::cgroup::is_of_pod;

use super::{Plan, Step, UNLESS};
use crate::advice::command;
use crate::advice::message::ProductTerms;
use crate::assessment::{Finding, Status};
use crate::model::HugePages;

impl Plan {
    /// What to do about `finding`, and whom the number of pages counts.
    pub fn sentence(&self, status: &Status, finding: &Finding) -> String {
        let terms = ProductTerms::of_product(status.facts.requested.product);
        let texts = self.texts(status);
        let mut text = match texts.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        };
        if self.steps.contains(&Step::SetHugePagesTry) && self.steps.contains(&Step::Restart) {
            text += " to use huge pages";
        } else if self.steps.iter().any(Step::is_setting) && !self.steps.contains(&Step::Restart) {
            text += &format!(", or do not restart the {}", terms.server);
        } else if self
            .steps
            .iter()
            .any(|step| matches!(step, Step::RaiseMemlock { .. }))
        {
            text += " (MOS 2049901.1)";
        }
        if self.reduces() && status.forecast.obstacle().is_none() {
            text += &format!(", or set {}", terms.setting(HugePages::Off));
        }
        if let Finding::PoolWasted { .. } = finding {
            text += UNLESS;
        }
        let leaves = |step: &Step| {
            if let Step::SetPool { leaves, .. } = step {
                *leaves
            } else {
                None
            }
        };
        if let Some((left, percent)) = self.steps.iter().find_map(leaves) {
            text += &format!("; this leaves {left} of memory to base pages, less than {percent}%");
        }
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
            text.push('.');
        }
        let sets_pool =
            |step: &Step| matches!(step, Step::SetPool { .. } | Step::SetPoolAtBoot { .. });
        if !matches!(finding, Finding::PoolWasted { .. }) && self.steps.iter().any(sets_pool) {
            text += &format!(" The number counts {}.", self.counted(status));
        }
        text
    }

    /// A clause for each step, and one for a stop that steps wait for.
    fn texts(&self, status: &Status) -> Vec<String> {
        let terms = ProductTerms::of_product(status.facts.requested.product);
        let waits = self.steps.iter().any(Step::waits) && self.steps.contains(&Step::Restart);
        // The memory is there when all have stopped that are to move.
        let (whom, them) = match status.facts.others_lack {
            Some(Pages(1..)) => (
                format!("this {} and all others that lack pages", terms.server),
                "them".to_owned(),
            ),
            _ => (
                format!("the {}", terms.server),
                format!("the {}", terms.server),
            ),
        };
        let mut texts = Vec::new();
        for step in &self.steps {
            if waits && step.waits() {
                texts.push(format!("stop {whom}"));
            }
            texts.push(match step {
                Step::Restart if waits => format!("start {them}"),
                step if step.is_setting()
                    && status.of_pending
                    && status.facts.is_in_huge_pages() =>
                {
                    step.text(terms) + " in the configuration"
                }
                Step::RaiseMemlock { .. } if let Some(setting) = &status.facts.memlock_setting => {
                    format!("{} ({setting})", step.text(terms))
                }
                step => step.text(terms),
            });
        }
        texts
    }

    /// Whom its number of pages counts.
    fn counted(&self, status: &Status) -> String {
        let when = match self.steps.contains(&Step::SetHugePagesTry) {
            _ if self.reduces() => ", after that reduction",
            true => ", with this one in huge pages",
            false => "",
        };
        let who = match status.facts.others_lack {
            None => "this server and the pages in use",
            Some(_) => "all servers seen here",
        };
        format!("{who}{when}; `hugepage-sidecar size` counts the whole host")
    }

    /// Whether shared memory is first to be made smaller.
    pub(super) fn reduces(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Reduce { .. }))
    }
}

impl Step {
    /// The command for a root shell, or the line of a manifest; `None` for what has none, or has one of its own in each product.
    pub fn command(&self) -> Option<String> {
        Some(match self {
            Self::SetPool {
                size,
                is_default,
                pages,
                ..
            } => command::set_pool(*size, *is_default, *pages),
            Self::SetPoolAtBoot {
                size,
                is_default,
                pages,
                file,
            } => {
                return command::set_pool_at_boot(*size, *is_default, *pages, file.as_deref());
            }
            Self::SetShmLimit { name, value } => format!("sysctl -w {name}={value}"),
            Self::RaiseLimit { path, to } if is_of_pod(path) => {
                format!("{path}: {}", to.kubernetes_quantity())
            }
            Self::RaiseLimit { path, to } => format!("echo {} > {}", to.0, command::quoted(path)),
            _ => return None,
        })
    }

    const fn waits(&self) -> bool {
        matches!(
            self,
            Self::SetPool {
                after_stop: true,
                ..
            }
        )
    }

    fn text(&self, terms: &ProductTerms) -> String {
        let server = terms.server;
        match self {
            Self::RaiseLimit { path, to } if is_of_pod(path) => {
                let to = to.kubernetes_quantity();
                format!("set the limit {path} of the pod to at least {to} in its manifest")
            }
            Self::RaiseLimit { path, to } => format!("set {path} to at least {} bytes", to.0),
            Self::FreePages {
                pages, strangers, ..
            } => {
                if let Some(removal) = strangers.removal() {
                    return removal;
                }
                let (all, holder) = (strangers.pages, strangers.holder());
                let some = if *pages < all {
                    format!("{pages} of ")
                } else {
                    String::new()
                };
                format!("free {some}the {all} huge pages that {holder} holds")
            }
            Self::Reduce { to } => format!("reduce {} at most {to}", terms.reduce),
            Self::SetPoolAtBoot {
                size,
                pages,
                file: Some(file),
                ..
            } if self.command().is_none() => {
                format!("change the pages of {size} in {file} to {pages}")
            }
            Self::SetPool { .. } | Self::SetPoolAtBoot { .. } | Self::SetShmLimit { .. } => {
                format!("run \"{}\"", self.command().unwrap_or_default())
            }
            Self::RaiseMemlock { to } => {
                format!(
                    "raise the memlock limit of the {server} to at least {} kB",
                    to.0.div_ceil(1024)
                )
            }
            Self::SetHugePagesTry => format!("set {}", terms.setting(HugePages::Try)),
            Self::SetMmap => "set shared_memory_type = mmap".to_owned(),
            Self::ReplaceMemoryTarget => {
                "set SGA_TARGET and PGA_AGGREGATE_TARGET in place of MEMORY_TARGET".to_owned()
            }
            Self::Restart => format!("restart the {server}"),
        }
    }
}
