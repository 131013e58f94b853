//! The assessment of one server as a flat row, which SQL, JSON and the files for Oracle show in their own types.

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Meminfo, PageSize, Pages};

use crate::advice::message::ProductTerms;
use crate::advice::{hint, message};
use crate::assessment::{Outlook, Severity, Status};
use crate::columns;
use crate::model::Segment;

columns! {
    /// One server, with the columns that SQL, JSON and Oracle have. `None` is NULL.
    StatusRow(status: &Status) where {
        let facts = &status.facts;
        let segment = facts.segment.as_ref();
        let known = segment.filter(|segment| segment.landing != Landing::Unknown);
        let setting = |name: &str| {
            let known = ProductTerms::known(&facts.requested).filter(|(of, _)| *of == name);
            known.filter(|_| !facts.requested_is_assumed).map(|(_, value)| value)
        };
    } {
        verdict: Severity = status.verdict().0,
        message: String = message(status),
        hint: Option<String> = hint(status),
        landed_in: Landing = facts.landing(),
        page_size: Option<Bytes> = facts.page_size().map(PageSize::bytes),
        cause: Option<Cause> = status.cause,
        shared_memory: Option<Bytes> = facts.segment_size(),
        huge_page_bytes: Option<Bytes> = known.map(|segment| segment.in_huge_pages),
        base_page_bytes: Option<Bytes> = known.map(Segment::in_base_pages),
        huge_pages: Option<&'static str> = setting("huge_pages"),
        use_large_pages: Option<&'static str> = setting("use_large_pages"),
        huge_page_size: Option<Bytes> = facts.pool_state.huge_page_size.map(PageSize::bytes),
        pages_needed: Option<Pages> = status.crash.needed,
        pages_held: Option<Pages> = segment.map(|_| status.facts.own()),
        pages_missing: Option<Pages> = status.missing,
        restart_outlook: Outlook = status.forecast.outlook,
        recommended_nr_hugepages: Option<Pages> = status.recommended,
    }
}

columns! {
    /// What SQL and Oracle's files have of a server beside [`StatusRow`]; in JSON, the host and its pools have it.
    HostOfServer(segment: Option<&Segment>, meminfo: Option<&Meminfo>, pool: Option<&Pool>) {
        mapping: Option<String> = segment.map(|segment| segment.name.clone()),
        page_tables_host: Option<Bytes> = meminfo.and_then(|meminfo| meminfo.page_tables),
        nr_hugepages: Option<Pages> = pool.map(|pool| pool.nr),
        free_hugepages: Option<Pages> = pool.map(|pool| pool.free),
        resv_hugepages: Option<Pages> = pool.and_then(|pool| pool.resv),
        surplus_hugepages: Option<Pages> = pool.and_then(|pool| pool.surplus),
        available_hugepages: Option<Pages> = pool.and_then(Pool::available),
    }
}

impl HostOfServer {
    /// That of the running server.
    pub fn of_status(status: &Status) -> Self {
        let facts = &status.facts;
        Self::new(facts.segment.as_ref(), Some(&facts.meminfo), facts.pool())
    }
}
