//! Resources that Kubernetes refuses before anything starts.

use hugepage_assess::assessment::Severity;

use super::finding::LintRule;
use super::judge::Judge;
use super::postgres::{ManifestForm, Quantity, Resources};
use super::{edit, quantity};

impl Judge<'_> {
    /// Finds quantities that the API server refuses (validation.go of Kubernetes), before anything starts.
    pub fn refusals(&mut self) {
        let resources = &self.postgres.resources;
        let Resources::Container { .. } = resources else { return };
        if let Some(name) = resources.unknown_page_size() {
            let message = format!(
                "No node has the resource {name}: its pages are named hugepages-2Mi, hugepages-1Gi and the like."
            );
            self.find(LintRule::Refused, Severity::Critical, None, message, None);
        }
        for size in self.sizes.clone() {
            let name = quantity::resource(size);
            let [limit, request] = ["limits", "requests"].map(|part| resources.quantity(part, &name));
            if let Some(odd) = [&limit, &request].into_iter().flatten().find(|found| found.bytes.is_none()) {
                // A variable that something replaces later may be one.
                if !odd.text.contains(['$', '{']) {
                    let message = format!("Kubernetes refuses {name}: {}: it is not a quantity.", odd.text);
                    self.find(LintRule::Refused, Severity::Critical, Some(&odd.place), message, None);
                }
                continue;
            }
            let divides = |found: &&Quantity| found.bytes.is_some_and(|bytes| bytes.0 % size.bytes().0 != 0);
            if let Some(odd) = [&limit, &request].into_iter().flatten().find(divides) {
                let message = format!("Kubernetes refuses {name}: {}: it is not a multiple of {size}.", odd.text);
                self.find(LintRule::Refused, Severity::Critical, Some(&odd.place), message, None);
                continue;
            }
            match (limit, request) {
                (Some(limit), Some(request)) if limit.bytes != request.bytes => {
                    let message = format!(
                        "Kubernetes refuses the request of {name}, {}, which differs from the limit, {}.",
                        request.text, limit.text
                    );
                    let hint = Some(format!("Set both to {}.", limit.text));
                    self.find(LintRule::Refused, Severity::Critical, Some(&request.place), message, hint);
                    let edit = edit::replace(self.text(&request.place), &request.place, &limit.text);
                    self.edit(edit.map(|edit| vec![edit]));
                }
                (None, Some(request)) => {
                    let message = format!("Kubernetes refuses a request of {name} without a limit.");
                    let hint = Some(format!("Set the limit to {} as well.", request.text));
                    self.find(LintRule::Refused, Severity::Critical, Some(&request.place), message, hint);
                    let edits = edit::huge_pages(self.text(&request.place), resources, size, &request.text, false);
                    self.edit(edits);
                }
                _ => {}
            }
        }
        self.needs_memory();
    }

    /// Finds huge pages without memory or processors.
    fn needs_memory(&mut self) {
        let resources = &self.postgres.resources;
        let has = |name: &str| ["limits", "requests"].iter().any(|part| resources.quantity(part, name).is_some());
        // The operator of Zalando adds its defaults.
        if !self.sizes.is_empty() && self.postgres.form != ManifestForm::Zalando && !has("memory") && !has("cpu") {
            let message = "Kubernetes refuses huge pages without a request of memory or cpu.".to_owned();
            self.find(
                LintRule::Refused,
                Severity::Critical,
                None,
                message,
                Some("Add a request of memory.".to_owned()),
            );
        }
    }

    /// Finds settings that the server's major does not have.
    pub fn names(&mut self) {
        for setting in &self.postgres.nonexistent {
            let major = self.postgres.major.map(|major| format!(" {major}")).unwrap_or_default();
            let (severity, consequence) = match self.postgres.form.has_patroni() {
                true => (Severity::Warning, "Patroni leaves it out"),
                false => (Severity::Critical, "the server does not start"),
            };
            let message = format!("PostgreSQL{major} has no setting {}: {consequence}.", setting.name);
            let hint = Some("Compare the name with the documentation of this major.".to_owned());
            self.find(LintRule::Settings, severity, setting.place.as_ref(), message, hint);
        }
    }
}
