//! What the next boot gives the pool, compared with what its users need.

use hugepage_facts::Cause;
use hugepage_kernel::Pages;
use hugepage_kernel::next_boot::{PoolAtBoot, TOLD};

use crate::assessment::{Outlook, Status};
use crate::model::{HugePages, Pending};

/// The pool after the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtBoot {
    /// The pages that it will have.
    pub pages: Pages,
    /// The file that sets them, or who does, and the file that says so; `None` if no file does.
    pub file: Option<String>,
    /// Whether that is known: a file sets it, root has said so, or a boot was seen.
    pub is_known: bool,
    /// The smaller number that sysctl(8) may set at any time, and its file.
    pub smaller: Option<(Pages, String)>,
    /// The pages that the server and all others that can be seen and fit need.
    pub needed: Pages,
    /// The pages that the next start of the server needs.
    pub by_server: Pages,
}

impl AtBoot {
    /// Whether the pool is too small for the server alone.
    pub fn server_lacks(&self) -> bool {
        self.pages < self.by_server
    }
}

impl Status {
    /// What a start after the next boot would land in; `None` if nobody has looked what sets the pool then.
    pub fn boot_outlook(&self) -> Option<Outlook> {
        self.facts.next_boot.as_ref()?;
        let requested = self.facts.requested_next();
        let lacks = self.forecast.without;
        Some(match self.facts.pending {
            Pending::Unknown | Pending::Refused(_) => self.forecast.outlook,
            _ if !requested.may_have_huge_pages() => lacks,
            _ => self
                .at_boot()
                .filter(|boot| boot.is_known)
                .map_or(Outlook::Unknown, |boot| self.outlook_of(&boot, lacks)),
        })
    }

    /// `lacks`: what a pool without enough pages comes to.
    fn outlook_of(&self, boot: &AtBoot, lacks: Outlook) -> Outlook {
        // What limits the use of the pool now limits it then, too.
        let is_limited = !matches!(
            self.forecast.cause,
            None | Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken)
        );
        match () {
            () if boot.server_lacks() && !self.may_get_more(boot) => lacks,
            // Who starts first gets them, or the kernel adds some.
            () if boot.pages < boot.needed
                || self.facts.others_beyond > Pages(0)
                || is_limited
                || self.forecast.outlook == Outlook::Unknown =>
            {
                Outlook::Unknown
            }
            () => Outlook::Hugetlb,
        }
    }

    /// Whether a start may get what the pool then lacks: as surplus pages, or because Oracle asks the kernel.
    pub fn may_get_more(&self, boot: &AtBoot) -> bool {
        let overcommit = self.facts.pool().and_then(|pool| pool.overcommit);
        let surplus = overcommit.unwrap_or(Pages(u64::MAX));
        boot.pages.saturating_add(surplus) >= boot.by_server
            || self.facts.requested_next().asks_kernel()
    }

    /// Whether the server does not start then, because it is started with "on".
    pub fn fails_at_boot(&self, boot: &AtBoot) -> bool {
        let asks_on = self.facts.requested_next().huge_pages == HugePages::On;
        boot.server_lacks() && asks_on && !self.may_get_more(boot)
    }

    /// The pool of the server after the next boot; `None` if that is unknown, or the next start asks for no pages of it.
    pub fn at_boot(&self) -> Option<AtBoot> {
        let next_boot = self.facts.next_boot.as_ref()?;
        let pages = next_boot.pages()?;
        let file = match next_boot {
            PoolAtBoot::Set(_, file) => Some(file.clone()),
            PoolAtBoot::Told(_, who) => Some(format!("{who} and {TOLD}")),
            _ => None,
        };
        let requested = self.facts.requested_next();
        let pool_state = &self.facts.pool_state;
        let next = match self.facts.pending {
            // As it runs, as long as what is on disk is unknown.
            Pending::Unknown => &self.crash,
            _ => &self.forecast,
        };
        if !requested.may_have_huge_pages() || next.huge_page_size != pool_state.huge_page_size {
            return None;
        }
        let by_server = next.needed?;
        let needed = self.by_others?.saturating_add(by_server);
        let (is_known, smaller) = match next_boot {
            PoolAtBoot::Unseen { .. } => (false, None),
            // It counts anew what it does not know yet.
            PoolAtBoot::Made { smaller, .. } => (pages >= needed, smaller.clone()),
            // The kernel spreads them over all nodes.
            PoolAtBoot::Set(..) if pages >= by_server => {
                (pool_state.on_nodes(pages) >= by_server, None)
            }
            _ => (true, None),
        };
        Some(AtBoot {
            pages,
            file,
            is_known,
            smaller: smaller.filter(|(smaller, _)| *smaller < needed),
            needed,
            by_server,
        })
    }
}
