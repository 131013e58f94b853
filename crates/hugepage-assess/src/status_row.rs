//! The assessment of one server as a flat row, which SQL, JSON and the files for Oracle show in their own types.

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::message::product::ProductTerms;
use crate::advice::{hint, message};
use crate::assessment::{Outlook, Severity, Status};
use crate::model::{Cause, Landing, Product, Segment};

/// One server. `None` is unknown unless a field says otherwise.
#[derive(Clone, Debug)]
pub struct StatusRow {
    /// The gravest severity.
    pub verdict: Severity,
    /// One sentence on the state.
    pub message: String,
    /// One sentence on what to do; `None` if nothing needs to be done.
    pub hint: Option<String>,
    /// Whether all of shared memory is in huge pages of a pool.
    pub in_huge_pages: Option<bool>,
    /// The kind of pages.
    pub landed_in: Landing,
    /// The kernel's name of the mapping.
    pub mapping: Option<String>,
    /// The page size of the segment.
    pub page_size: Option<PageSize>,
    /// Why it is not as requested; `None` if it is.
    pub cause: Option<Cause>,
    /// `shared_buffers`; of Oracle the SGA.
    pub shared_buffers: Bytes,
    /// The whole segment.
    pub shared_memory: Option<Bytes>,
    /// The shared memory in huge pages; `None` also if the landing is unknown.
    pub huge_page_bytes: Option<Bytes>,
    /// The shared memory in base pages; `None` also if the landing is unknown.
    pub base_page_bytes: Option<Bytes>,
    /// The value of `huge_pages`, of Oracle `use_large_pages`, as written in the configuration; `None` if unknown.
    pub setting: Option<&'static str>,
    /// The page size that `huge_page_size` selects.
    pub huge_page_size: Option<PageSize>,
    /// Pages of that size that the segment has or would need.
    pub needed: Option<Pages>,
    /// Pages of that size that the segment has.
    pub own: Option<Pages>,
    /// The needed pages that are unavailable now.
    pub missing: Option<Pages>,
    /// Pages of the pool, surplus included.
    pub nr: Option<Pages>,
    /// The pages of the pool that are not yet touched.
    pub free: Option<Pages>,
    /// The free pages that a mapping has reserved.
    pub resv: Option<Pages>,
    /// Above the configured pool size.
    pub surplus: Option<Pages>,
    /// Free and not reserved.
    pub available: Option<Pages>,
    /// Page tables of the whole host.
    pub page_tables_host: Option<Bytes>,
    /// What the next start would get.
    pub outlook: Outlook,
    /// The pool that the host should have.
    pub recommended: Option<Pages>,
    /// What the restart after a crash of one process would get; `None` for Oracle, which does not restart itself.
    pub crash_outlook: Option<Outlook>,
}

impl From<&Status> for StatusRow {
    fn from(status: &Status) -> Self {
        Self::with_landing(status, status.facts.landing())
    }
}

impl StatusRow {
    /// `landed_in`: the landing by all evidence, which may be better than that of the mapping.
    pub fn with_landing(status: &Status, landed_in: Landing) -> Self {
        let facts = &status.facts;
        let segment = facts.segment.as_ref();
        let known = segment.filter(|segment| segment.landing != Landing::Unknown);
        let pool = facts.pool_state.pool.known();
        Self {
            verdict: status.verdict().0,
            message: message(status),
            hint: hint(status),
            in_huge_pages: (landed_in != Landing::Unknown).then_some(landed_in == Landing::Hugetlb),
            landed_in,
            mapping: segment.map(|segment| segment.name.clone()),
            page_size: facts.page_size(),
            cause: status.cause,
            shared_buffers: facts.requested.shared_buffers,
            shared_memory: facts.segment_size(),
            huge_page_bytes: known.map(|segment| segment.in_huge_pages),
            base_page_bytes: known.map(Segment::in_base_pages),
            setting: match facts.requested.product {
                Product::Oracle { use_large_pages: None, .. } => None,
                _ => ProductTerms::current(&facts.requested).split_once(" = ").map(|(_, value)| value),
            },
            huge_page_size: facts.pool_state.huge_page_size,
            needed: status.needed,
            own: segment.map(|_| status.own),
            missing: status.missing,
            nr: pool.map(|pool| pool.nr),
            free: pool.map(|pool| pool.free),
            resv: pool.and_then(|pool| pool.resv),
            surplus: pool.and_then(|pool| pool.surplus),
            available: pool.and_then(|pool| pool.available()),
            page_tables_host: facts.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
            outlook: status.outlook,
            recommended: status.recommended,
            crash_outlook: status.crash_outlook(),
        }
    }
}
