//! `explain`: what a cause, a finding or a kernel advisory means, as docs/findings.md says it, and what to do about an alert, as
//! docs/monitoring.md says it.
//!
//! ```text
//! $ hugepage-sidecar explain pool_empty
//! The pool has no pages of the size that the server asks for.
//!
//! - Check: `grep . /sys/kernel/mm/hugepages/*/nr_hugepages`.
//! - Do: follow the hint. Then keep the pool for the next boot (`boot_unknown`).
//! - Risk: if memory is fragmented, the kernel gives fewer pages without an error.
//!
//! ```

use crate::exit::Exit;
use crate::output::table::wrapped;
use crate::output::{complain, say};

const FINDINGS: &str = include_str!("../../../../docs/findings.md");
const MONITORING: &str = include_str!("../../../../docs/monitoring.md");

/// Prints what the name means, or all names.
pub fn run(name: Option<&str>) -> Exit {
    let Some(name) = name else {
        let line = |(name, text)| wrapped(&format!("{name}: {}", first_sentence(text)), 0, 4);
        for line in sections().chain(alerts()).map(line) {
            say!("{line}");
        }
        return Exit::Ok;
    };
    // As the log has it, and as other programs write it.
    let wanted = name
        .trim_matches(['[', ']'])
        .replace('-', "_")
        .to_ascii_lowercase();
    match sections()
        .chain(alerts())
        .find(|(found, _)| found.to_ascii_lowercase() == wanted)
    {
        Some((name, text)) => {
            say!("{name}\n\n{}", text.trim());
            Exit::Ok
        }
        None => {
            complain!(
                "hugepage-sidecar: nothing is called \"{name}\"; \"hugepage-sidecar explain\" lists all names"
            );
            Exit::Usage
        }
    }
}

/// Each name with its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    FINDINGS
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
}

/// Each alert of Prometheus with its runbook.
fn alerts() -> impl Iterator<Item = (&'static str, &'static str)> {
    MONITORING
        .split("\n### ")
        .filter_map(|section| section.split_once('\n'))
        .filter(|(name, _)| name.starts_with("Hugepages"))
}

/// The first sentence, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.trim().replace('\n', " ");
    text.split(". ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hugepage_assess::assessment::Finding;
    use hugepage_assess::assessment::advisory::Advisories;
    use hugepage_facts::Cause;

    use super::*;

    #[test]
    fn every_cause_finding_and_advisory_is_explained() {
        let causes = Cause::ALL.iter().map(ToString::to_string);
        let advisories = Advisories::known()
            .advisory
            .iter()
            .map(|row| format!("kernel_{}", row.name));
        let findings = Finding::NAMES.iter().map(ToString::to_string);
        let names: BTreeSet<_> = causes.chain(findings).chain(advisories).collect();
        let explained: Vec<_> = sections().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(explained.iter().cloned().collect::<BTreeSet<_>>(), names);
        assert_eq!(explained.len(), names.len(), "each once");
    }

    #[test]
    fn what_it_means_how_to_check_what_to_do_and_what_can_go_wrong() {
        for (name, text) in sections() {
            let items: Vec<_> = text
                .split("\n- ")
                .skip(1)
                .filter_map(|item| item.split_once(": "))
                .collect();
            let what: Vec<_> = items.iter().map(|(what, _)| *what).collect();
            let wanted: Vec<_> = ["Check", "Do", "Risk"]
                .into_iter()
                .filter(|item| *item == "Do" || what.contains(item))
                .collect();
            assert_eq!(what, wanted, "{name}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 88),
                "{name}"
            );
        }
    }

    /// Code counts as one word.
    #[test]
    fn sentences_are_short() {
        for (name, text) in sections() {
            let words: Vec<_> = text.split('`').step_by(2).collect();
            let text = words.join(" code ").replace("\n- ", ". ");
            for sentence in text.split(['.', ';', ':']) {
                assert!(
                    sentence.split_whitespace().count() <= 25,
                    "{name}: {sentence}"
                );
            }
        }
    }
}
