//! What is known of one server.

use hugepage_assess::StatusRow;
use hugepage_assess::assessment::Status;
use hugepage_assess::model::Landing;
use hugepage_kernel::Pages;
use hugepage_sizing::Sizing;

use super::identify::ServerIdentity;
use super::observe::ObservedMemory;

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What tells it from others, and what its files tell of it.
    pub id: ServerIdentity,
    /// The memory of its processes.
    pub memory: ObservedMemory,
    /// The assessment.
    pub status: Status,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl Instance {
    /// The kind of pages it is in.
    pub fn landed_in(&self) -> Landing {
        self.status.facts.landing()
    }

    /// Its row, with the recommendation for the host.
    pub fn row(&self, sizings: &[Sizing]) -> StatusRow {
        StatusRow { recommended_nr_hugepages: self.recommended(sizings), ..StatusRow::new(&self.status) }
    }

    /// The recommended pool, which counts all instances of the host.
    pub fn recommended(&self, sizings: &[Sizing]) -> Option<Pages> {
        Sizing::of_size(sizings, self.status.facts.pool_state.huge_page_size?)?.recommended
    }

    /// Whether its memory may not be looked at, which says nothing of its pages.
    pub fn is_closed(&self) -> bool {
        self.memory.shared.is_none() && self.landed_in() == Landing::Unknown
    }
}
