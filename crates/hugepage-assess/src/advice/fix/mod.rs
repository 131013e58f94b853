//! The change as a complete text: one template for each target, filled with the numbers of this host.

use std::str::FromStr;

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, setting};
use crate::advice::{hint, message, rules};

/// The kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file of sysctl.d.
    Sysctl,
    /// A unit that reserves the pages early at boot.
    Systemd,
    /// A file of /etc/default/grub.d.
    Grub,
    /// Statements for psql.
    Postgresql,
    /// A playbook.
    Ansible,
    /// A pod.
    Kubernetes,
    /// A Cluster of CloudNativePG.
    Cloudnativepg,
    /// A PostgresCluster of Crunchy's operator.
    Pgo,
    /// A postgresql of Zalando's operator.
    Zalando,
}

/// What operators add to the settings of this server: workers, slots, and libraries.
const FOR_OPERATORS: Bytes = Bytes(16 << 20);

impl Target {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 9] = [
        ("sysctl", Self::Sysctl),
        ("systemd", Self::Systemd),
        ("grub", Self::Grub),
        ("postgresql", Self::Postgresql),
        ("ansible", Self::Ansible),
        ("kubernetes", Self::Kubernetes),
        ("cloudnativepg", Self::Cloudnativepg),
        ("pgo", Self::Pgo),
        ("zalando", Self::Zalando),
    ];
}

impl FromStr for Target {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, target)| *target).ok_or(())
    }
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFix {
    /// The need could not be determined, or the server cannot use huge pages.
    #[error("the number of pages that shared memory needs is unknown")]
    Unknown,
    /// The host cannot hold the pages needed; the numbers, and what helps.
    #[error("the host cannot hold the huge pages that shared memory needs")]
    DoesNotFit(String, Option<String>),
    /// sysctl sets the pool of the default size only.
    #[error("sysctl cannot set the pool of huge pages of {0}")]
    NotTheDefaultSize(PageSize),
}

/// The text for `target`.
pub fn text(target: Target, context: &AdviceContext) -> Result<String, NoFix> {
    if target == Target::Postgresql {
        return Ok(statements(context));
    }
    let context = &context.with_planned_page_size();
    let status = &context.status;
    if status.does_not_fit() {
        return Err(NoFix::DoesNotFit(message(status), hint(status)));
    }
    let (size, needed, pages) =
        match (status.facts.pool_state.huge_page_size, status.needed, status.to_land, status.capacity) {
            (Some(size), Some(needed), Some(pages), Some(_)) => {
                // Never fewer than the pool has: somebody who can't be seen may need them.
                (
                    size,
                    needed.max(status.forecast.needed.unwrap_or(needed)),
                    pages.max(status.recommended.unwrap_or(pages)),
                )
            }
            _ => return Err(NoFix::Unknown),
        };
    let is_default = status.facts.is_default(size);
    let template = match target {
        Target::Sysctl if !is_default => return Err(NoFix::NotTheDefaultSize(size)),
        Target::Sysctl => include_str!("sysctl.conf.in"),
        Target::Systemd => include_str!("hugepages.service.in"),
        Target::Grub => include_str!("grub.cfg.in"),
        Target::Ansible if is_default => include_str!("playbook-sysctl.yml.in"),
        Target::Ansible => include_str!("playbook-tmpfiles.yml.in"),
        Target::Kubernetes => include_str!("pod.yml.in"),
        Target::Cloudnativepg => include_str!("cloudnativepg.yml.in"),
        Target::Pgo => include_str!("pgo.yml.in"),
        Target::Zalando => include_str!("zalando.yml.in"),
        Target::Postgresql => return Err(NoFix::Unknown),
    };
    let text = fill(template, context, size, needed, pages);
    Ok(match status.capacity.and_then(|capacity| capacity.leaves_less(pages, size)) {
        Some((left, percent)) => format!(
            "# Caution: a pool of {pages} pages leaves {left} to base pages, less than {percent}% of memory.\n{text}"
        ),
        None => text,
    })
}

/// All recommendations on the server's own settings.
fn statements(context: &AdviceContext) -> String {
    let all = rules::recommendations(context);
    let of_server = all.iter().filter(|row| row.area == Area::Postgresql);
    let mut text = String::from("-- Run this with psql as a superuser, then restart the server.\n");
    for row in of_server {
        if let Some(command) = &row.command {
            text += &format!("-- {}\n{command}\n", row.reason);
        }
    }
    if !all.iter().any(|row| row.area == Area::Postgresql && row.command.is_some()) {
        text += "-- No setting of the server needs to be changed.\n";
    }
    text
}

fn fill(template: &str, context: &AdviceContext, size: PageSize, needed: Pages, pages: Pages) -> String {
    let requested = &context.status.facts.requested;
    // The segment itself where it is known: its last page has room.
    let segment = context.status.facts.segment_size().filter(|segment| size.pages_to_hold(*segment) == needed);
    let of_operator = segment.unwrap_or(size.times(needed)).saturating_add(FOR_OPERATORS);
    let of_operator = size.times(size.pages_to_hold(of_operator));
    let places = [
        ("@PAGES@", pages.to_string()),
        ("@PAGE_SIZE@", size.to_string()),
        ("@POOL@", format!("/sys/kernel/mm/hugepages/{}", size.sysfs_name())),
        ("@KERNEL_SIZE@", size.kernel_parameter()),
        ("@SIZE_SETTING@", size.setting()),
        ("@SEGMENT_PAGES@", needed.to_string()),
        ("@SHARED_BUFFERS@", setting(requested.shared_buffers)),
        ("@MAX_CONNECTIONS@", context.server.max_connections.to_string()),
        ("@RESOURCE_SIZE@", format!("{}i", size.kernel_parameter())),
        ("@RESOURCE_LIMIT@", quantity(size.times(needed))),
        ("@OPERATOR_LIMIT@", quantity(of_operator)),
        ("@MEMORY_LIMIT@", quantity(size.times(needed).saturating_add(Bytes(1 << 30)))),
        ("@MAJOR@", context.server.major.to_string()),
        ("@DYNAMIC_LIMIT@", quantity(Bytes(context.server.parallel_memory.0.div_ceil(1 << 20).max(64) << 20))),
    ];
    places.iter().fold(template.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// A size as Kubernetes accepts it.
fn quantity(size: Bytes) -> String {
    if size.0.is_multiple_of(1 << 20) { format!("{}Mi", size.0 >> 20) } else { format!("{}Ki", size.0 >> 10) }
}
