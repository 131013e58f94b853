//! The order of the crates, and which of their files only decide. `tests/unit/test_circles.py` looks for circles of files.

#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate, and those of the workspace that it may name: what Cargo.toml says, in the order that is meant.
const CRATES: [(&str, &[&str]); 8] = [
    ("kernel", &[]),
    ("facts", &["kernel"]),
    ("start", &["facts", "kernel"]),
    ("assess", &["facts", "kernel"]),
    ("server", &["assess", "facts", "kernel"]),
    ("sizing", &["assess", "facts", "kernel"]),
    ("oracle", &["assess", "facts", "kernel", "sizing"]),
    (
        "host",
        &[
            "assess", "facts", "kernel", "oracle", "server", "sizing", "start",
        ],
    ),
];

/// What the extension names of the workspace: nothing that reads Oracle's files, and nothing that reads other servers.
const OF_THE_EXTENSION: [&str; 5] = ["assess", "facts", "kernel", "server", "start"];

/// What the types of a decision have in their names.
const DECIDED: [&str; 10] = [
    "Advice",
    "Finding",
    "Forecast",
    "Hint",
    "Outlook",
    "Pending",
    "Recommendation",
    "Severity",
    "Status",
    "Verdict",
];
/// The files of hugepage-host that decide what `status` shows: they read nothing.
const DECIDING: [&str; 11] = [
    "anonymous",
    "assess",
    "next_start",
    "pool_needs",
    "postgresql_settings",
    "segment",
    "server",
    "server_start",
    "stopped_needs",
    "strangers",
    "survey",
];

/// `CRATES` says that nothing that decides is below hugepage-facts, so what it has of its own is all that a snapshot can have.
#[test]
fn a_fact_was_not_decided() {
    let top = workspace().join("crates/hugepage-facts/src");
    let mut fields = 0;
    for path in rust_files(&top) {
        for line in fs::read_to_string(path).unwrap().lines() {
            // A field of a struct or of a variant, and the types of a variant without names.
            let line = line.trim().trim_start_matches("pub ");
            let field = line.strip_suffix(',').and_then(|line| {
                let of_variant = || line.strip_suffix(')')?.split_once('(');
                line.split_once(": ").or_else(of_variant)
            });
            let Some((name, types)) = field else {
                continue;
            };
            if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                fields += 1;
                let decided = DECIDED.iter().find(|word| types.contains(**word));
                assert_eq!(decided, None, "{line}");
            }
        }
    }
    assert!(fields > 150, "the {fields} fields are found");
}

#[test]
fn what_decides_reads_nothing() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hugepage-host/src");
    for name in DECIDING {
        let text = fs::read_to_string(top.join(format!("{name}.rs"))).unwrap();
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let reads = ["Root", "InstanceFiles", "InspectContext"];
        let found: Vec<_> = product
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .filter(|line| {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                line.contains("fs::") || words.any(|word| reads.contains(&word))
            })
            .collect();
        assert!(found.is_empty(), "{name}.rs: {found:?}");
    }
}

#[test]
fn each_crate_names_those_below_it() {
    let named = |manifest: &Path| {
        let text = fs::read_to_string(manifest).unwrap();
        let text = text
            .split("[dependencies]\n")
            .nth(1)
            .unwrap()
            .split("\n[")
            .next()
            .unwrap()
            .to_owned();
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("hugepage-")?.split(['.', ' ']).next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, below) in CRATES {
        assert_eq!(
            named(&workspace().join(format!("crates/hugepage-{name}/Cargo.toml"))),
            *below,
            "hugepage-{name}"
        );
    }
    assert_eq!(named(&workspace().join("Cargo.toml")), OF_THE_EXTENSION);
}

#[test]
fn type_names_are_unique_in_the_workspace() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for directory in source_directories() {
        for path in rust_files(&directory) {
            for line in fs::read_to_string(&path).unwrap().lines() {
                // Associated types are indented, and named by the trait.
                let line = line.strip_prefix("pub").map_or(line, |rest| {
                    rest.trim_start_matches(|c| c != ' ').trim_start()
                });
                let Some(rest) = ["struct ", "enum ", "trait ", "type "]
                    .iter()
                    .find_map(|word| line.strip_prefix(word))
                else {
                    continue;
                };
                let name = rest
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap();
                places
                    .entry(name.to_owned())
                    .or_default()
                    .push(path.clone());
            }
        }
    }
    assert!(places.len() > 200, "the types are found");
    places.retain(|_, places| places.len() > 1);
    assert_eq!(places, BTreeMap::new());
}

/// The workspace; at run time, so that the compiled test can be pointed to another checkout.
fn workspace() -> PathBuf {
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&manifest).join("../..")
}

/// The sources of the extension and of each crate.
fn source_directories() -> Vec<PathBuf> {
    let crates = fs::read_dir(workspace().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"));
    crates
        .filter(|sources| sources.is_dir())
        .chain([workspace().join("src")])
        .collect()
}

/// All source files below `directory`.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| {
        if path.is_dir() {
            rust_files(&path)
        } else {
            vec![path]
        }
    });
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
