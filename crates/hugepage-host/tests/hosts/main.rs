//! What the readers and the whole assessment say of machines that are not at hand, each a tree of files in `fixtures`.

#![allow(clippy::disallowed_methods)]

/// A hint with a number of pages, where other servers are not seen.
macro_rules! alone {
    ($to:literal, $then:literal) => {
        concat!(
            $to,
            "\"",
            $then,
            " The number counts this server and the pages in use; `hugepage-sidecar size` counts the whole host."
        )
    };
}

mod base_pages;
mod placement;
mod readers;
mod servers;
mod surveys;
mod unknown;

use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::mapping::own_mapping;
use hugepage_kernel::{Notes, PageSize, Root};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");
const HOSTS: [&str; 13] = [
    "aarch64-64k",
    "cgroup1-container",
    "cgroup2-container",
    "cgroup2-slices",
    "default-1g",
    "hidepid",
    "linux-2.6.9",
    "no-hugetlb",
    "no-sys",
    "ppc64le-16m",
    "rhel7",
    "shmem-thp",
    "two-nodes",
];

/// The tree of one machine.
fn host(name: &str) -> Root {
    assert!(HOSTS.contains(&name), "{name} is not in HOSTS");
    Root::at(format!("{FIXTURES}/{name}"))
}

fn page_size(bytes: u64) -> PageSize {
    PageSize::new(bytes).unwrap()
}

/// The notes, or one error, with the machine's own paths.
fn without_root(name: &str, text: &str) -> String {
    text.replace(&format!("{FIXTURES}/{name}"), "")
}

fn notes_of(name: &str, notes: Notes) -> Vec<String> {
    notes
        .into_vec()
        .iter()
        .map(|note| without_root(name, note))
        .collect()
}

/// The server's main segment: the one large shared mapping of its process.
fn segment(root: &Root) -> Mapping {
    let large = maps::read(root, maps::SELF, |mapping| {
        mapping.shared && mapping.size().0 > 16 * MIB
    })
    .unwrap();
    assert_eq!(large.len(), 1, "{large:?}");
    own_mapping::at(root, large[0].start + 5 * MIB)
        .unwrap()
        .unwrap()
}

#[test]
fn every_fixture_is_in_the_tables() {
    let entries = std::fs::read_dir(FIXTURES)
        .unwrap()
        .map(|entry| entry.unwrap());
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, HOSTS);
}
