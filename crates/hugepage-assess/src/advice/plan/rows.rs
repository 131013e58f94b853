//! The recommendations for one server as rows: the steps that its findings lead to.

use hugepage_facts::{Cause, PageTables};
use hugepage_kernel::cgroups::cgroup::is_of_pod;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Plan, Step};
use crate::advice::message::ProductTerms;
use crate::advice::recommendation::{Area, Effect, Recommendation, setting};
use crate::advice::{message, pool};
use crate::assessment::{Finding, Severity, Status};
use crate::model::HugePages;

/// All recommendations, the most severe first. `page_tables`: those of the server's processes.
pub fn recommendations(status: &Status, page_tables: &PageTables) -> Vec<Recommendation> {
    // What huge pages would save now.
    let saving = page_tables
        .of_shared_memory
        .filter(|_| !status.facts.is_in_huge_pages());
    let mut rows = of_findings(status);
    for row in &mut rows {
        row.saving = row.saving.or(saving);
    }
    rows
}

/// The rows of all findings, the most severe first, and those of one finding in the order of its steps. What two findings lead to
/// is the row of the graver one.
pub fn of_findings(status: &Status) -> Vec<Recommendation> {
    let mut rows: Vec<Recommendation> = Vec::new();
    for (severity, finding) in &status.findings {
        let Some(plan) = Plan::of_finding(status, finding) else {
            continue;
        };
        // If the server has to be made smaller first, a pool for it does not help the present one. Below a limit of a cgroup that is
        // too low, huge pages kill a server: its setting is for when the limit is raised, also for whoever takes one row alone.
        let raises_limit = plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::RaiseLimit { .. }));
        let steps = plan.steps.iter().filter(|step| match step {
            Step::SetPool { .. } => !plan.reduces(),
            step => !(raises_limit && step.is_setting()),
        });
        for row in steps.filter_map(|step| {
            PlannedStep {
                status,
                severity: *severity,
                finding,
                step,
            }
            .row()
        }) {
            if !rows
                .iter()
                .any(|known| (known.area, &known.setting) == (row.area, &row.setting))
            {
                rows.push(row);
            }
        }
    }
    rows
}

/// A step with the finding that leads to it.
struct PlannedStep<'a> {
    status: &'a Status,
    severity: Severity,
    finding: &'a Finding,
    step: &'a Step,
}

impl PlannedStep<'_> {
    /// The row of the step; `None` for a step that sets nothing.
    fn row(&self) -> Option<Recommendation> {
        Some(match self.step {
            Step::RaiseLimit { path, to } => {
                let limits = self.status.facts.pool_state.limits.as_ref();
                let level = limits.and_then(|all| {
                    all.fault
                        .iter()
                        .chain(&all.reservation)
                        .find(|level| level.path == *path)
                });
                let (text, takes_effect): (fn(Bytes) -> String, _) = if is_of_pod(path) {
                    (Bytes::kubernetes_quantity, Effect::ServerRestart)
                } else {
                    (|bytes| bytes.0.to_string(), Effect::Now)
                };
                let current = level.map(|level| text(level.limit));
                Recommendation {
                    takes_effect,
                    ..self.setting(Area::Cgroup, path, current, text(*to))
                }
            }
            Step::SetPool {
                size,
                is_default,
                pages,
                ..
            } => {
                let now = known_pool(self.status, *size)?;
                let name = pool::setting(*size, *is_default);
                let row = self.setting(
                    Area::Kernel,
                    &name,
                    Some(now.to_string()),
                    pages.to_string(),
                );
                let saving =
                    Some(size.times(now.saturating_sub(*pages))).filter(|saved| *saved > Bytes(0));
                let reason = shortfall(self.status, *size, now, *pages)
                    .unwrap_or_else(|| row.reason.clone());
                Recommendation {
                    reason,
                    saving,
                    ..row
                }
            }
            Step::SetPoolAtBoot {
                size,
                is_default,
                pages,
                file,
            } => {
                let current = self
                    .status
                    .at_boot()
                    .filter(|_| file.is_some())
                    .map(|boot| boot.pages.to_string());
                let row = self.setting(
                    Area::Boot,
                    &pool::setting(*size, *is_default),
                    current,
                    pages.to_string(),
                );
                Recommendation {
                    takes_effect: Effect::Reboot,
                    ..row
                }
            }
            Step::SetShmLimit { name, value } => {
                self.setting(Area::Kernel, name, None, value.to_string())
            }
            Step::RaiseMemlock { to } => {
                self.setting(Area::Limits, "memlock", None, to.0.to_string())
            }
            Step::FreePages { .. } | Step::Restart => return None,
            of_server => return self.row_of_server(of_server),
        })
    }

    /// The row of a step that changes the server's configuration.
    fn row_of_server(&self, step: &Step) -> Option<Recommendation> {
        let asked = self.status.facts.requested_next();
        let terms = ProductTerms::of_product(asked.product);
        let row = |name: &str, current: String, value: &str| Recommendation {
            command: Some(terms.statement(name, value)),
            takes_effect: Effect::ServerRestart,
            ..self.setting(terms.area, name, Some(current), value.to_owned())
        };
        Some(match step {
            Step::Reduce { .. } if !asked.is_oracle() => Recommendation {
                recommended: None,
                command: None,
                ..row("shared_buffers", setting(asked.shared_buffers), "")
            },
            Step::SetHugePagesTry => {
                let (name, off) = terms.setting(HugePages::Off).split_once(" = ")?;
                let mut row = row(name, off.to_owned(), terms.setting(HugePages::Try).split_once(" = ")?.1);
                row.command = row.command.filter(|_| !self.status.facts.huge_pages_is_option);
                row
            }
            Step::SetMmap => row("shared_memory_type", "sysv".to_owned(), "mmap"),
            Step::ReplaceMemoryTarget => Recommendation {
                command: Some(
                    "ALTER SYSTEM RESET memory_target SCOPE=SPFILE; ALTER SYSTEM RESET memory_max_target SCOPE=SPFILE; \
                     ALTER SYSTEM SET sga_target = ... SCOPE=SPFILE; ALTER SYSTEM SET pga_aggregate_target = ... SCOPE=SPFILE;"
                        .to_owned(),
                ),
                current: None,
                ..row("memory_target", String::new(), "0")
            },
            _ => return None,
        })
    }

    /// A row that sets `name`.
    fn setting(
        &self,
        area: Area,
        name: &str,
        current: Option<String>,
        value: String,
    ) -> Recommendation {
        let is_landed = self.status.facts.is_in_huge_pages();
        Recommendation {
            current,
            recommended: Some(value),
            command: self.step.command(),
            takes_effect: if is_landed {
                Effect::Now
            } else {
                Effect::ServerRestart
            },
            finding: Some(self.finding.name()),
            ..Recommendation::new(
                self.severity,
                area,
                name,
                message::of_finding(self.status, self.finding),
            )
        }
    }
}

/// Why a pool of `now` pages is to have more; `None` where the finding itself says it.
fn shortfall(status: &Status, size: PageSize, now: Pages, pages: Pages) -> Option<String> {
    let facts = &status.facts;
    // Beside surplus pages, the pages of the pool are not those that it keeps.
    let has_surplus = now < facts.pool().map_or(now, |pool| pool.nr);
    let is_said = pages <= now || has_surplus || status.cause == Some(Cause::Disabled);
    let share = status
        .share
        .filter(|_| facts.pool_state.huge_page_size == Some(size) && !is_said)?;
    let others = share.others.saturating_sub(facts.strangers.pages);
    let is_alone = facts.others_lack.is_none_or(|lack| lack == Pages(0));
    let who = if is_alone {
        "This server needs"
    } else {
        "The servers of this host need"
    };
    let text = pool::shortfall(
        who,
        (pages.saturating_sub(others), ""),
        others,
        (now, pages),
        size,
    );
    Some(format!(
        "{text}{}{}.",
        facts.strangers.clause(),
        pool::caution(pages, size, status.capacity)
    ))
}

/// What the pool of `size` keeps now; `None` if unknown.
fn known_pool(status: &Status, size: PageSize) -> Option<Pages> {
    let pools =
        [&status.facts.pool_state, status.facts.next_pool_state()].map(|found| found.pool.known());
    pools
        .into_iter()
        .flatten()
        .find(|pool| pool.page_size == size)
        .map(|pool| pool.persistent())
}
