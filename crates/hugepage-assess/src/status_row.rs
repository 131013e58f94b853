//! The assessment of one server as a flat row, which SQL, JSON and the files for Oracle show in their own types.

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::message::product::ProductTerms;
use crate::advice::{hint, message};
use crate::assessment::{Outlook, Severity, Status};
use crate::columns::NamedValue;
use crate::model::{Cause, Landing, Segment};
use crate::{columns, pools, row};

columns! {
    /// One server, with the names that SQL, JSON and Oracle have. `None` is unknown unless a field says otherwise.
    StatusRow(status: &Status) where {
        let facts = &status.facts;
        let segment = facts.segment.as_ref();
        let known = segment.filter(|segment| segment.landing != Landing::Unknown);
        let setting = |name: &str| ProductTerms::known(&facts.requested).filter(|(of, _)| *of == name).map(|(_, value)| value);
    } {
        /// The most severe severity.
        verdict: Severity = status.verdict().0,
        /// One sentence on the state.
        message: String = message(status),
        /// One sentence on what to do; `None` if nothing needs to be done.
        hint: Option<String> = hint(status),
        /// The kind of pages.
        landed_in: Landing = facts.landing(),
        /// The page size of the segment.
        page_size: Option<Bytes> = facts.page_size().map(PageSize::bytes),
        /// Why it is not as requested; `None` if it is.
        cause: Option<Cause> = status.cause,
        /// The whole segment.
        shared_memory: Option<Bytes> = facts.segment_size(),
        /// The shared memory in huge pages; `None` also if the landing is unknown.
        huge_page_bytes: Option<Bytes> = known.map(|segment| segment.in_huge_pages),
        /// The shared memory in base pages; `None` also if the landing is unknown.
        base_page_bytes: Option<Bytes> = known.map(Segment::in_base_pages),
        /// PostgreSQL's setting, as in the configuration file; `None` for Oracle.
        huge_pages: Option<&'static str> = setting("huge_pages"),
        /// Oracle's parameter, likewise; `None` also if it is unknown.
        use_large_pages: Option<&'static str> = setting("use_large_pages"),
        /// The page size that `huge_page_size` selects.
        huge_page_size: Option<Bytes> = facts.pool_state.huge_page_size.map(PageSize::bytes),
        /// Pages of that size that the segment has or would need.
        pages_needed: Option<Pages> = status.needed,
        /// Pages of that size that the segment has.
        pages_held: Option<Pages> = segment.map(|_| status.own),
        /// The needed pages that are unavailable now.
        pages_missing: Option<Pages> = status.missing,
        /// What the next start would get.
        restart_outlook: Outlook = status.outlook,
        /// The pool that the host should have.
        recommended_nr_hugepages: Option<Pages> = status.recommended,
    }
}

/// What SQL and Oracle's files have beside [`StatusRow`]; in JSON, the host and its pools have it.
pub fn beside(status: &Status) -> impl Iterator<Item = NamedValue> + use<> {
    let facts = &status.facts;
    let of_server = row! {
        mapping: facts.segment.as_ref().map(|segment| &segment.name),
        page_tables_host: facts.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
    };
    of_server.into_iter().chain(pools::counters(facts.pool_state.pool.known()))
}
