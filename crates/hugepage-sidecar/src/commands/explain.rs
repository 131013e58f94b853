//! `explain`: what a cause, a finding or a kernel advisory means, as docs/findings.md says it.

use clap::Args;

use crate::exit::{self, Exit};
use crate::output::table::wrapped;
use crate::output::{complain, say};

const FINDINGS: &str = include_str!("../../../../docs/findings.md");

/// Options of `explain`.
#[derive(Clone, Debug, Args)]
pub struct ExplainOptions {
    /// A cause, a finding or a kernel advisory, such as `pool_empty`; without it all names are listed
    name: Option<String>,
}

pub fn run(options: &ExplainOptions) -> Exit {
    let Some(name) = &options.name else {
        let line = |(name, text)| wrapped(&format!("{name}: {}", first_sentence(text)), 0, 4);
        sections().map(line).for_each(|line| say!("{line}"));
        return exit::OK;
    };
    // As the log has it, and as other programs write it.
    let wanted = name.trim_matches(['[', ']']).replace('-', "_").to_ascii_lowercase();
    match sections().find(|(found, _)| *found == wanted) {
        Some((name, text)) => {
            say!("{name}\n\n{}", text.trim());
            exit::OK
        }
        None => {
            complain!("hugepage-sidecar: nothing is called \"{name}\"; \"hugepage-sidecar explain\" lists all names");
            exit::USAGE
        }
    }
}

/// Each name with its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    FINDINGS.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// The first sentence, on one line.
fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _)| first).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hugepage_assess::assessment::Finding;
    use hugepage_assess::assessment::advisory::Advisories;
    use hugepage_assess::model::Cause;

    use super::*;

    #[test]
    fn every_cause_finding_and_advisory_is_explained() {
        let causes = Cause::ALL.iter().map(ToString::to_string);
        let advisories = Advisories::known().advisory.iter().map(|row| format!("kernel_{}", row.name));
        let findings = Finding::NAMES.iter().map(ToString::to_string);
        let names: BTreeSet<_> = causes.chain(findings).chain(advisories).collect();
        let explained: Vec<_> = sections().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(explained.iter().cloned().collect::<BTreeSet<_>>(), names);
        assert_eq!(explained.len(), names.len(), "each once");
    }

    #[test]
    fn what_it_means_how_to_see_it_what_to_do_and_what_can_go_wrong() {
        for (name, text) in sections() {
            let items: Vec<_> = text.split("\n- ").skip(1).filter_map(|item| item.split_once(": ")).collect();
            assert_eq!(items.iter().map(|(what, _)| *what).collect::<Vec<_>>(), ["See it", "Do", "Risk"], "{name}");
            assert!(text.lines().all(|line| line.chars().count() <= 88), "{name}");
        }
    }

    /// Code counts as one word.
    #[test]
    fn sentences_are_short() {
        for (name, text) in sections() {
            let words: Vec<_> = text.split('`').step_by(2).collect();
            let text = words.join(" code ").replace("\n- ", ". ");
            for sentence in text.split(['.', ';', ':']) {
                assert!(sentence.split_whitespace().count() <= 25, "{name}: {sentence}");
            }
        }
    }
}
