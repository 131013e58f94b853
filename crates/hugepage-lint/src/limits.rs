//! Findings on limits that count more than the segment: of memory, and of huge pages for initdb.

use hugepage_assess::assessment::limits::ROOM_FOR_PRIVATE_MEMORY;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_kernel::Bytes;

use super::finding::LintRule;
use super::judge::Judge;
use super::postgres::USUAL_SIZE;
use super::quantity;

impl Judge<'_> {
    /// Base pages count to the limit of memory always, huge pages on nodes with memory_hugetlb_accounting.
    pub fn memory(&mut self, outlook: Outlook) {
        let memory = self.postgres.resources.quantity("limits", "memory");
        let (Some(need), Some(limit)) = (self.need, memory) else { return };
        let Some(bytes) = limit.bytes else { return };
        let wanted = need.most.saturating_add(ROOM_FOR_PRIVATE_MEMORY);
        let megabytes = Bytes(wanted.0.div_ceil(1 << 20) << 20);
        let hint = Some(format!("Set the limit of memory to {} or more.", quantity::of_bytes(megabytes)));
        let takes = format!("shared memory takes {}", need.least);
        match outlook {
            Outlook::Base if bytes < need.least => {
                let message = format!(
                    "The limit of memory is {}, and {takes}, which counts to it in base pages: the kernel kills processes \
                     of the server (OOM) when its buffers are used.",
                    limit.text
                );
                self.find(LintRule::MemoryLimit, Severity::Critical, Some(&limit.place), message, hint);
            }
            Outlook::Hugetlb | Outlook::Unknown | Outlook::Fails if bytes < wanted && !self.sizes.is_empty() => {
                let message = format!(
                    "The limit of memory is {}, and {takes}. On nodes whose memory cgroups count huge pages (cgroup v2 with \
                     memory_hugetlb_accounting, Linux 6.6), the limit has to hold both.",
                    limit.text
                );
                self.find(LintRule::MemoryLimit, Severity::Notice, Some(&limit.place), message, hint);
            }
            _ => {}
        }
    }

    /// Finds a `limit` that initdb's own server exceeds.
    pub fn initdb(&mut self, limit: Bytes, need: Bytes) {
        // A cluster that is made by initdb asks for the default size, unless the image says otherwise.
        if self.page_size != USUAL_SIZE || limit >= USUAL_SIZE.times(USUAL_SIZE.pages_to_hold(need)) {
            return;
        }
        let wanted = quantity::of_pages(USUAL_SIZE, USUAL_SIZE.pages_to_hold(need));
        let message = format!(
            "initdb starts a server of its own with shared_buffers = 128MB, which takes {need} of huge pages. Where the \
             limit is checked only when a page is touched, it is killed by SIGBUS."
        );
        let hint = Some(format!("Set {} to {wanted} or more.", quantity::resource(USUAL_SIZE)));
        self.find(LintRule::Initdb, Severity::Warning, None, message, hint);
    }
}
