//! The pages in which shared memory lands with the huge pages of the manifest.

use hugepage_assess::assessment::status::MIN_WARNING_SIZE;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::HugePages;

use hugepage_kernel::Bytes;

use super::edit::{self, Insertion};
use super::finding::LintRule;
use super::judge::KnownJudge;
use super::postgres::{ManifestForm, Quantity, Resources};
use super::quantity;

/// The largest limit that is meant for initdb, where the server itself uses base pages.
const MOST_FOR_INITDB: Bytes = Bytes(150 << 20);
/// The factor by which pages exceed the need when they are wasted, as for a host's pool.
const WASTE: u64 = 2;

impl KnownJudge<'_, '_> {
    /// Whether shared memory lands in huge pages, and what follows if it does not.
    pub fn landing(&mut self, limit: Option<&Quantity>, outlook: Outlook) {
        let settings = self.settings;
        if self.requested.huge_pages == HugePages::Off {
            self.off(limit);
            return;
        }
        if self.requested.sysv {
            let message = "shared_memory_type = sysv never uses huge pages.".to_owned();
            let severity = self.severity_of_base_pages();
            let hint = Some("Set shared_memory_type to mmap.".to_owned());
            self.judge.find(LintRule::NoPages, severity, settings.place_of("shared_memory_type"), message, hint);
            return;
        }
        if let Some(refused) = self.need.refused.clone() {
            let message = format!("The server refuses the settings: {}.", refused.trim_end_matches('.'));
            self.judge.find(LintRule::Settings, Severity::Critical, None, message, None);
        }
        match limit {
            None => self.no_pages(),
            Some(limit) => self.pages(limit, outlook),
        }
        let used = self.page_size;
        for size in self.judge.sizes.clone().into_iter().filter(|size| *size != used && limit.is_some()) {
            let message = format!("PostgreSQL never uses the pages of {size}: huge_page_size is {used}.");
            self.judge.find(LintRule::Waste, Severity::Warning, None, message, None);
        }
    }

    /// Base pages by choice.
    fn off(&mut self, limit: Option<&Quantity>) {
        let place = self.settings.place_of("huge_pages");
        let message = match place {
            None => "The operator sets huge_pages to off, because no set of instances has huge pages.",
            Some(_) => "huge_pages is off: shared memory is in base pages.",
        };
        self.judge.find(LintRule::Off, Severity::Notice, place, message.to_owned(), None);
        let of_initdb = limit.and_then(|limit| limit.bytes).is_some_and(|limit| limit <= MOST_FOR_INITDB);
        if !self.judge.sizes.is_empty() && !of_initdb {
            let message = "The manifest has huge pages, and huge_pages is off.".to_owned();
            self.judge.find(LintRule::Waste, Severity::Warning, place, message, None);
        }
    }

    fn severity_of_base_pages(&self) -> Severity {
        match self.requested.huge_pages {
            HugePages::On => Severity::Critical,
            _ if self.need.most >= MIN_WARNING_SIZE => Severity::Warning,
            _ => Severity::Notice,
        }
    }

    /// The consequence of too few pages.
    fn consequence(&self) -> &'static str {
        match self.requested.huge_pages {
            HugePages::On => "The server does not start.",
            _ => {
                "With huge_pages = try the server falls back to base pages and says nothing, or is killed by SIGBUS where \
                 the container's limit is checked only when a page is touched."
            }
        }
    }

    fn no_pages(&mut self) {
        let settings = self.settings;
        if let (Some(size), None) = (self.judge.sizes.first().copied(), self.requested.huge_page_size) {
            let message = format!(
                "The manifest has {}, and huge_page_size is 0: PostgreSQL asks for the node's default size, usually {}. {}",
                quantity::resource(size),
                self.page_size,
                self.consequence()
            );
            let has_setting = settings.has_setting("huge_page_size");
            let hint = match has_setting {
                true => format!("Set huge_page_size to {}.", size.setting()),
                false => {
                    format!("Set {} instead: this major has no huge_page_size.", quantity::resource(self.page_size))
                }
            };
            let severity = self.severity_of_base_pages().max(Severity::Warning);
            self.judge.find(LintRule::OtherPageSize, severity, None, message, Some(hint));
            let edits = settings.home.as_ref().filter(|_| has_setting).and_then(|home| {
                edit::insert(self.judge.text(home), home, "huge_page_size", &Insertion::Text(size.setting()))
                    .map(|edit| vec![edit])
            });
            self.judge.edit(edits);
            return;
        }
        let mut severity = self.severity_of_base_pages();
        let rule = match self.judge.sizes.is_empty() {
            true => LintRule::NoPages,
            false => LintRule::OtherPageSize,
        };
        if rule == LintRule::OtherPageSize {
            severity = severity.max(Severity::Warning);
        }
        let name = quantity::resource(self.page_size);
        let message = format!(
            "PostgreSQL asks for huge pages of {}, and the manifest has no {name}. It needs {}. {}",
            self.page_size,
            self.need_text(),
            self.consequence()
        );
        let hint = Some(self.hint());
        self.judge.find(rule, severity, settings.place_of("huge_pages"), message, hint);
        if severity >= Severity::Warning {
            self.change_pages();
        }
    }

    fn pages(&mut self, limit: &Quantity, outlook: Outlook) {
        let (name, size) = (quantity::resource(self.page_size), self.page_size);
        let Some(bytes) = limit.bytes else { return };
        let pages = size.pages_within(bytes);
        let needs = self.need_text();
        let has = format!("{name}: {} is {pages} pages of {size}, and shared memory takes {needs}.", limit.text);
        let hint = Some(self.hint());
        let most = self.need.pages(size).1;
        match outlook {
            Outlook::Hugetlb => {
                if pages.0 >= most.0.saturating_mul(WASTE) && pages.0 > most.0 + 1 {
                    self.judge.find(LintRule::Waste, Severity::Warning, Some(&limit.place), has, None);
                }
            }
            Outlook::Unknown if pages >= most => {
                let names = self.need.libraries.join(", ");
                let message = format!("{has} How much {names} adds in shared_preload_libraries is unknown.");
                let hint = Some("Compare with shared_memory_size_in_huge_pages of a running server.".to_owned());
                self.judge.find(LintRule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
            }
            Outlook::Unknown => {
                let message = format!("{has} Whether they suffice is unknown.");
                self.judge.find(LintRule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
                self.change_pages();
            }
            _ => {
                let severity = self.severity_of_base_pages().max(Severity::Warning);
                let accepted = match self.judge.postgres.form {
                    ManifestForm::Cloudnativepg if bytes >= self.requested.shared_buffers => {
                        " CloudNativePG accepts it, because it compares only shared_buffers."
                    }
                    _ => "",
                };
                let message = format!("{has}{accepted} {}", self.consequence());
                self.judge.find(LintRule::TooFewPages, severity, Some(&limit.place), message, hint);
                self.change_pages();
            }
        }
    }

    /// Adds the change of the quantity to the last finding. A finding on unequal quantities is superseded by it.
    fn change_pages(&mut self) {
        // A number that may be too small is no cure.
        if !self.need.libraries.is_empty() {
            return;
        }
        let wanted = self.wanted();
        let postgres = self.judge.postgres;
        let Resources::Container { home, .. } = &postgres.resources else { return };
        let adds_memory = postgres.form != ManifestForm::Zalando;
        let edits = edit::huge_pages(self.judge.text(home), &postgres.resources, self.page_size, &wanted, adds_memory);
        if edits.is_some() {
            for refused in self.judge.findings.iter_mut().filter(|finding| finding.rule == LintRule::Refused) {
                refused.edits.clear();
                refused.hint = None;
            }
        }
        self.judge.edit(edits);
    }
}
