//! The pages in which shared memory lands with the huge pages of the manifest.

use hugepage_assess::assessment::status::MIN_WARNING_SIZE;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::HugePages;

use super::edit::{self, Insertion};
use super::finding::LintRule;
use super::judge::Judge;
use super::postgres::{ManifestForm, Quantity, Resources};
use super::quantity;

/// The factor by which pages exceed the need when they are wasted, as for a host's pool.
const WASTE: u64 = 2;

impl Judge<'_> {
    /// Whether shared memory lands in huge pages, and what follows if it does not.
    pub fn landing(&mut self, limit: Option<&Quantity>, outlook: Outlook) {
        let postgres = self.postgres;
        if self.requested.huge_pages == HugePages::Off {
            let by_whom = match postgres.place_of("huge_pages") {
                None => "Crunchy's operator sets huge_pages to off, because no set of instances has huge pages.",
                Some(_) => "huge_pages is off: shared memory is in base pages.",
            };
            self.find(LintRule::Off, Severity::Notice, postgres.place_of("huge_pages"), by_whom.to_owned(), None);
            if !self.sizes.is_empty() {
                let message = "The manifest has huge pages, and huge_pages is off.".to_owned();
                self.find(LintRule::Waste, Severity::Warning, postgres.place_of("huge_pages"), message, None);
            }
            return;
        }
        if self.requested.sysv {
            let message = "shared_memory_type = sysv never uses huge pages.".to_owned();
            let severity = self.severity_of_base_pages();
            let hint = Some("Set shared_memory_type to mmap.".to_owned());
            self.find(LintRule::NoPages, severity, postgres.place_of("shared_memory_type"), message, hint);
            return;
        }
        if let Some(refused) = self.need.and_then(|need| need.refused.clone()) {
            let message = format!("The server refuses the settings: {}.", refused.trim_end_matches('.'));
            self.find(LintRule::Settings, Severity::Critical, None, message, None);
        }
        if let Resources::Elsewhere(why) = &postgres.resources {
            self.find(LintRule::Unknown, Severity::Notice, None, format!("The resources are unknown: {why}."), None);
            return;
        }
        match limit {
            None => self.no_pages(),
            Some(limit) => self.pages(limit, outlook),
        }
        let used = self.page_size;
        for size in self.sizes.clone().into_iter().filter(|size| *size != used && limit.is_some()) {
            let message = format!("PostgreSQL never uses the pages of {size}: huge_page_size is {used}.");
            self.find(LintRule::Waste, Severity::Warning, None, message, None);
        }
    }

    fn severity_of_base_pages(&self) -> Severity {
        match self.requested.huge_pages {
            HugePages::On => Severity::Critical,
            _ if self.need.is_none_or(|need| need.most >= MIN_WARNING_SIZE) => Severity::Warning,
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
        let postgres = self.postgres;
        if let (Some(size), None) = (self.sizes.first().copied(), self.requested.huge_page_size) {
            let message = format!(
                "The manifest has {}, and huge_page_size is 0: PostgreSQL asks for the node's default size, usually {}. {}",
                quantity::resource(size),
                self.page_size,
                self.consequence()
            );
            let hint = format!("Set huge_page_size to {}.", size.setting());
            let severity = self.severity_of_base_pages().max(Severity::Warning);
            self.find(LintRule::OtherPageSize, severity, None, message, Some(hint));
            let home = postgres.settings_home.as_ref();
            let edits = home.and_then(|home| {
                edit::insert(self.text(home), home, "huge_page_size", &Insertion::Text(size.setting()))
                    .map(|edit| vec![edit])
            });
            self.edit(edits);
            return;
        }
        let mut severity = self.severity_of_base_pages();
        let rule = match self.sizes.is_empty() {
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
        let hint = self.wanted().map(|wanted| match severity {
            Severity::Notice => format!("Set {name} to {wanted}, or huge_pages to off."),
            _ => format!("Set {name} to {wanted}."),
        });
        self.find(rule, severity, postgres.place_of("huge_pages"), message, hint);
        if severity >= Severity::Warning {
            self.change_pages();
        }
        self.unknown_need();
    }

    fn pages(&mut self, limit: &Quantity, outlook: Outlook) {
        let (name, size) = (quantity::resource(self.page_size), self.page_size);
        let Some(bytes) = limit.bytes else {
            let message = format!("{name}: \"{}\" is not a quantity.", limit.text);
            self.find(LintRule::Refused, Severity::Critical, Some(&limit.place), message, None);
            return;
        };
        let pages = size.pages_within(bytes);
        let needs = self.need_text();
        let has = format!("{name}: {} is {pages} pages of {size}, and shared memory takes {needs}.", limit.text);
        let hint = self.wanted().map(|wanted| format!("Set {name} to {wanted}."));
        match (outlook, self.need) {
            (_, None) => {}
            (Outlook::Hugetlb, Some(need)) => {
                let most = need.pages(size).1;
                if pages.0 >= most.0.saturating_mul(WASTE) && pages.0 > most.0 + 1 {
                    self.find(LintRule::Waste, Severity::Warning, Some(&limit.place), has, None);
                }
            }
            (Outlook::Unknown, Some(need)) if pages >= need.pages(size).1 => {
                let names = need.libraries.join(", ");
                let message = format!("{has} How much {names} adds in shared_preload_libraries is unknown.");
                let hint = Some("Compare with shared_memory_size_in_huge_pages of a running server.".to_owned());
                self.find(LintRule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
            }
            (Outlook::Unknown, Some(_)) => {
                let message = format!("{has} Whether they suffice is unknown.");
                self.find(LintRule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
                self.change_pages();
            }
            (_, Some(_)) => {
                let severity = self.severity_of_base_pages().max(Severity::Warning);
                let accepted = match self.postgres.form {
                    ManifestForm::Cloudnativepg if bytes >= self.requested.shared_buffers => {
                        " CloudNativePG accepts it, because it compares only shared_buffers."
                    }
                    _ => "",
                };
                let message = format!("{has}{accepted} {}", self.consequence());
                self.find(LintRule::TooFewPages, severity, Some(&limit.place), message, hint);
                self.change_pages();
            }
        }
        self.unknown_need();
    }

    fn unknown_need(&mut self) {
        if let Some(why) = &self.postgres.settings_unknown {
            let message = format!("The settings of the server are unknown: {why}.");
            self.find(LintRule::Unknown, Severity::Notice, None, message, None);
        }
    }

    /// Adds the change of the quantity to the last finding. A finding on unequal quantities is superseded by it.
    fn change_pages(&mut self) {
        let Some(wanted) = self.wanted() else { return };
        let (Resources::Limits(home) | Resources::Single(home)) = &self.postgres.resources else { return };
        let adds_memory = self.postgres.form != ManifestForm::Zalando;
        let edits = edit::huge_pages(self.text(home), &self.postgres.resources, self.page_size, &wanted, adds_memory);
        if edits.is_some() {
            for refused in self.findings.iter_mut().filter(|finding| finding.rule == LintRule::Refused) {
                refused.edits.clear();
                refused.hint = None;
            }
        }
        self.edit(edits);
    }
}
