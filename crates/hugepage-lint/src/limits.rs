//! Findings on limits that count more than the segment: of memory, and of huge pages for initdb.

use hugepage_assess::assessment::limits::ROOM_FOR_PRIVATE_MEMORY;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::HugePages;
use hugepage_kernel::Bytes;

use super::finding::LintRule;
use super::judge::{Judge, KnownJudge};
use super::postgres::ManifestForm;
use super::quantity;
use super::settings::Initdb;

/// What initdb lives with: it touches 12 pages of 2 MB, dies with 8, and lives with 20 (measured with PostgreSQL 15).
const ENOUGH_FOR_INITDB: Bytes = Bytes(40 << 20);

impl Judge<'_> {
    /// The danger for a new cluster without huge pages, where the settings are unknown.
    pub fn initdb_of_unknown(&mut self) {
        // Patroni gives initdb these options.
        let has_options = self.postgres.place.node.at(&["spec", "patroni", "initdb"]).is_some();
        if self.postgres.form == ManifestForm::Other || !self.sizes.is_empty() || has_options {
            return;
        }
        let message = "The limit of huge pages is 0, and settings of the server do not reach initdb. On a node with a pool, initdb \
                       may be killed by SIGBUS.";
        let hint = format!("Give it {} or more, or use nodes without a pool.", quantity::of_bytes(ENOUGH_FOR_INITDB));
        self.find(LintRule::Initdb, Severity::Notice, None, message.to_owned(), Some(hint));
    }
}

impl KnownJudge<'_, '_> {
    /// Base pages count to the limit of memory always, huge pages on nodes with memory_hugetlb_accounting.
    pub fn memory(&mut self, outlook: Outlook) {
        let memory = self.judge.postgres.resources.quantity("limits", "memory");
        let (need, Some(limit)) = (self.need, memory) else { return };
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
                self.judge.find(LintRule::MemoryLimit, Severity::Critical, Some(&limit.place), message, hint);
            }
            Outlook::Hugetlb | Outlook::Unknown | Outlook::Fails if bytes < wanted && !self.judge.sizes.is_empty() => {
                let message = format!(
                    "The limit of memory is {}, and {takes}. On nodes whose memory cgroups count huge pages (cgroup v2 with \
                     memory_hugetlb_accounting, Linux 6.6), the limit has to hold both.",
                    limit.text
                );
                self.judge.find(LintRule::MemoryLimit, Severity::Notice, Some(&limit.place), message, hint);
            }
            _ => {}
        }
    }

    /// Finds a limit below what initdb touches. Its own server asks for huge pages whatever the settings of the other are.
    pub fn initdb(&mut self) {
        let (Initdb::AsksForPages(cure), Ok(size)) = (&self.settings.initdb, &self.judge.postgres.default_page_size)
        else {
            return;
        };
        let (size, resource) = (*size, quantity::resource(*size));
        let limit = self.judge.limit(size);
        let bytes = limit.as_ref().and_then(|limit| limit.bytes).unwrap_or_default();
        let pages = size.pages_within(bytes);
        if pages.0 >= ENOUGH_FOR_INITDB.0.div_ceil(size.bytes().0) {
            return;
        }
        let has = match &limit {
            Some(limit) => format!("{resource}: {} is {pages} pages of {size}", limit.text),
            None => format!("The limit of {resource} is 0"),
        };
        let message = format!(
            "{has}, and initdb asks for huge pages whatever the settings of the server are. On a node with a pool it is \
             killed by SIGBUS where the limit is checked only when a page is touched. It lives with {}.",
            quantity::of_bytes(ENOUGH_FOR_INITDB)
        );
        // A server that asks for pages needs its own as well.
        let of_server = (self.requested.huge_pages != HugePages::Off).then_some(self.need.most);
        let least = size.times(size.pages_to_hold(of_server.unwrap_or_default().max(ENOUGH_FOR_INITDB)));
        let least = format!("{resource} to {} or more", quantity::of_bytes(least));
        let hint = match cure {
            Some(cure) => format!("Set {cure}, or {least}, or use nodes without a pool."),
            None => format!("Set {least}, or use nodes without a pool."),
        };
        let severity = if pages.0 == 0 { Severity::Notice } else { Severity::Warning };
        self.judge.find(LintRule::Initdb, severity, limit.as_ref().map(|limit| &limit.place), message, Some(hint));
    }
}
