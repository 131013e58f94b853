//! Plans for the pages that rings of io_uring keep at a crash.

use hugepage_kernel::Pages;

use super::{Plan, Step};
use crate::assessment::{Finding, Outlook, Status};
use crate::model::NodePools;

impl Plan {
    /// Whether `finding` is about the pages that rings of io_uring keep at a crash.
    pub fn is_of_crash(status: &Status, finding: &Finding) -> bool {
        let is_of_crash = match finding {
            Finding::CrashLoses => true,
            Finding::OutlookUnknown => status.outlook != Outlook::Unknown,
            _ => false,
        };
        is_of_crash && status.facts.kept_at_crash.at_most > Pages(0)
    }

    /// The two ways to keep huge pages at a crash of a server whose rings keep pages: a pool that is enough for some
    /// crashes, and no rings. `None` for a way that does not help.
    pub fn of_rings(status: &Status) -> [Option<Self>; 2] {
        let size = status.facts.pool_state.huge_page_size;
        // More pages of the host would be spread over nodes that the server may not use.
        let is_restricted = status.facts.pool_state.nodes.as_ref().is_some_and(NodePools::is_restricted);
        let pages = status.to_land.filter(|_| !status.does_not_fit() && !is_restricted);
        let pool = size.zip(pages).map(|(size, pages)| {
            let leaves = status.capacity.and_then(|capacity| capacity.leaves_less(pages, size));
            let is_default = status.facts.is_default(size);
            vec![Step::SetPool { size, is_default, pages, after_stop: false, leaves }]
        });
        let worker = Some(vec![Step::SetIoMethodWorker, Step::Restart]);
        [pool, worker].map(|steps| Some(Self { steps: steps? }).filter(|plan| plan.helps(status)))
    }
}
