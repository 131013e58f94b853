//! What the next boot gives the pool, compared with what its users need.

use hugepage_kernel::Pages;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;

use crate::assessment::Status;
use crate::model::HugePages;

/// The pool after the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtBoot {
    /// The pages that it will have.
    pub pages: Pages,
    /// The file that sets them; `None` where no file does.
    pub file: Option<String>,
    /// The pages that the server and all others that can be seen need.
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
    /// The pool of the server after the next boot; `None` where that is unknown, or the next start asks for no pages of it.
    pub fn at_boot(&self) -> Option<AtBoot> {
        let (pages, file) = match self.facts.next_boot.as_ref()? {
            PoolAtBoot::Set { pages, file } => (*pages, Some(file.clone())),
            PoolAtBoot::Unset => (Pages(0), None),
            PoolAtBoot::Unknown(_) => return None,
        };
        let requested = self.facts.requested_next();
        let is_of_pool = self.forecast.huge_page_size == self.facts.pool_state.huge_page_size;
        if requested.huge_pages == HugePages::Off || requested.never_in_huge_pages() || !is_of_pool {
            return None;
        }
        let by_server = self.forecast.needed?;
        Some(AtBoot { pages, file, needed: self.by_others?.saturating_add(by_server), by_server })
    }
}
