//! The assessment of one server as a flat row, which SQL, JSON and the files for Oracle show in their own types.

use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::Serialize;

use crate::advice::message::product::ProductTerms;
use crate::advice::{hint, message};
use crate::assessment::{Outlook, Severity, Status};
use crate::model::{Cause, Landing, Product, Segment};

/// One server, with the names that SQL and JSON have. `None` is unknown unless a field says otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct StatusRow {
    /// The gravest severity.
    pub verdict: Severity,
    /// One sentence on the state.
    pub message: String,
    /// One sentence on what to do; `None` if nothing needs to be done.
    pub hint: Option<String>,
    /// Whether all of shared memory is in huge pages of a pool.
    #[serde(skip)]
    pub in_huge_pages: Option<bool>,
    /// The kind of pages.
    pub landed_in: Landing,
    /// The kernel's name of the mapping.
    #[serde(skip)]
    pub mapping: Option<String>,
    /// The page size of the segment.
    pub page_size: Option<Bytes>,
    /// Why it is not as requested; `None` if it is.
    pub cause: Option<Cause>,
    /// `shared_buffers`; of Oracle the SGA.
    #[serde(skip)]
    pub shared_buffers: Bytes,
    /// The whole segment.
    pub shared_memory: Option<Bytes>,
    /// The shared memory in huge pages; `None` also if the landing is unknown.
    pub huge_page_bytes: Option<Bytes>,
    /// The shared memory in base pages; `None` also if the landing is unknown.
    pub base_page_bytes: Option<Bytes>,
    /// PostgreSQL's setting, as in the configuration file; `None` for Oracle.
    pub huge_pages: Option<&'static str>,
    /// Oracle's parameter, likewise; `None` also if it is unknown.
    pub use_large_pages: Option<&'static str>,
    /// The page size that `huge_page_size` selects.
    pub huge_page_size: Option<Bytes>,
    /// Pages of that size that the segment has or would need.
    pub pages_needed: Option<Pages>,
    /// Pages of that size that the segment has.
    pub pages_held: Option<Pages>,
    /// The needed pages that are unavailable now.
    pub pages_missing: Option<Pages>,
    /// The pool of that size.
    #[serde(skip)]
    pub pool: Option<Pool>,
    /// Page tables of the whole host.
    #[serde(skip)]
    pub page_tables_host: Option<Bytes>,
    /// What the next start would get.
    pub restart_outlook: Outlook,
    /// The pool that the host should have.
    pub recommended_nr_hugepages: Option<Pages>,
    /// What the restart after a crash of one process would get; `None` for Oracle, which does not restart itself.
    #[serde(skip)]
    pub crash_outlook: Option<Outlook>,
    /// What a start after the next boot would land in; `None` where nobody has looked.
    #[serde(skip)]
    pub boot_outlook: Option<Outlook>,
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
        let setting = match facts.requested.product {
            Product::Oracle { use_large_pages: None, .. } => None,
            _ => ProductTerms::current(&facts.requested).split_once(" = ").map(|(_, value)| value),
        };
        let is_oracle = matches!(facts.requested.product, Product::Oracle { .. });
        Self {
            verdict: status.verdict().0,
            message: message(status),
            hint: hint(status),
            in_huge_pages: (landed_in != Landing::Unknown).then_some(landed_in == Landing::Hugetlb),
            landed_in,
            mapping: segment.map(|segment| segment.name.clone()),
            page_size: facts.page_size().map(PageSize::bytes),
            cause: status.cause,
            shared_buffers: facts.requested.shared_buffers,
            shared_memory: facts.segment_size(),
            huge_page_bytes: known.map(|segment| segment.in_huge_pages),
            base_page_bytes: known.map(Segment::in_base_pages),
            huge_pages: setting.filter(|_| !is_oracle),
            use_large_pages: setting.filter(|_| is_oracle),
            huge_page_size: facts.pool_state.huge_page_size.map(PageSize::bytes),
            pages_needed: status.needed,
            pages_held: segment.map(|_| status.own),
            pages_missing: status.missing,
            pool: facts.pool_state.pool.known().cloned(),
            page_tables_host: facts.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
            restart_outlook: status.outlook,
            recommended_nr_hugepages: status.recommended,
            crash_outlook: status.crash_outlook(),
            boot_outlook: status.boot_outlook(),
        }
    }
}
