//! Public cases of the next boot: what files of real hosts set, and what is said of it. `tests/cases` has each with its source.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use hugepage_kernel::{PageSize, Root};

/// `- 2M: 599` below "Next boot" in case.md: the default page size, or the pages, `unset` or `unknown` of a pool.
fn expectations(text: &str) -> Vec<(&str, &str)> {
    let section = text.split("## Next boot\n").nth(1).unwrap_or_default().split("\n## ").next().unwrap_or_default();
    section.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": ")).collect()
}

fn size(text: &str) -> Option<PageSize> {
    hugepage_kernel::next_boot::kernel_words::memparse(text)
}

#[test]
fn every_case_of_the_next_boot() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut cases: Vec<_> = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in cases {
        let text = fs::read_to_string(case.join("case.md")).unwrap_or_default();
        let expected = expectations(&text);
        if expected.is_empty() {
            continue;
        }
        let boot = NextBoot::read(&Root::at(case.join("tree"))).unwrap();
        for (what, expected) in expected {
            let said = match what {
                "default" => boot.default_size().map_or("unknown".to_owned(), |size| size.kernel_parameter()),
                _ => match boot.pool(size(what).unwrap()) {
                    PoolAtBoot::Set { pages, .. } => pages.to_string(),
                    PoolAtBoot::Unset => "unset".to_owned(),
                    PoolAtBoot::Unknown(why) => format!("unknown: {why}"),
                },
            };
            compared += 1;
            if said.split(": ").next() != Some(expected) {
                wrong.push(format!("{}: {what} is {said}, expected {expected}", case.display()));
            }
        }
    }
    assert!(compared > 0 && wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}
