//! One name for one thing in all outputs: the columns that SQL declares, those for Oracle, and the members of JSON documents.

#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Names that have two meanings or a better name, and where each is right.
const BARRED: [(&str, &[&str]); 12] = [
    // Of one process.
    ("page_tables", &["hugepage_backends"]),
    // `MemAvailable`, beside `total` and `free`.
    ("available", &["memory"]),
    ("instance_page_tables", &[]),
    ("saves", &[]),
    ("landed", &[]),
    ("in_huge_pages", &[]),
    ("in_base_pages", &[]),
    ("pages_used", &[]),
    ("held", &[]),
    ("over", &[]),
    ("does_not_fit_by", &[]),
    ("why", &[]),
];

/// Where each name occurs.
#[derive(Default)]
struct Names(BTreeMap<String, Vec<String>>);

impl Names {
    fn add(&mut self, name: &str, place: &str) {
        self.0.entry(name.to_owned()).or_default().push(place.to_owned());
    }

    /// The columns of a function, as its file of SQL declares them.
    fn add_sql(&mut self, text: &str) {
        for declared in text.split("CREATE FUNCTION ").skip(1) {
            let Some((head, rest)) = declared.split_once("RETURNS TABLE (") else { continue };
            let place = head.split('(').next().unwrap();
            let lines = rest.split("\n)").next().unwrap().lines().map(|line| line.split("--").next().unwrap());
            lines
                .flat_map(|line| line.split(','))
                .filter_map(|column| column.split_whitespace().next())
                .for_each(|name| self.add(name, place));
        }
    }

    /// The members of all objects of a document, each with the name of the object.
    fn add_json(&mut self, place: &str, value: &Value) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                self.add(name, place);
                self.add_json(name, value);
            }),
            Value::Array(values) => values.iter().for_each(|value| self.add_json(place, value)),
            _ => {}
        }
    }

    /// The columns for Oracle, as tables of Markdown.
    fn add_markdown(&mut self, text: &str) {
        let names = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        names.for_each(|name| self.add(name, "Oracle"));
    }
}

fn files(directory: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path, name) } else { vec![path] })
        .filter(|path| path.to_str().unwrap().ends_with(name))
        .collect()
}

#[test]
fn each_thing_has_one_name() {
    let sidecar = Path::new(env!("CARGO_MANIFEST_DIR"));
    let snapshots = sidecar.join("tests/golden/snapshots");
    let mut names = Names::default();
    files(&sidecar.join("../../src/views"), ".sql")
        .iter()
        .for_each(|path| names.add_sql(&fs::read_to_string(path).unwrap()));
    names.add_markdown(&fs::read_to_string(snapshots.join("scripts/columns.md")).unwrap());
    for command in ["status", "size"] {
        let documents = files(&snapshots, &format!("/{command}.json"));
        assert!(!documents.is_empty(), "{command}");
        documents.iter().for_each(|path| {
            names.add_json(command, &serde_json::from_slice(&fs::read(path).unwrap()).unwrap());
        });
    }
    for (name, places) in BARRED {
        let others = names.0.get(name).into_iter().flatten().find(|place| !places.contains(&place.as_str()));
        assert_eq!(others, None, "{name}");
    }
    for name in ["page_tables_host", "available_hugepages", "landed_in", "recommended_nr_hugepages"] {
        assert!(
            ["hugepage_status", "Oracle"].iter().all(|place| names.0[name].iter().any(|one| one == place)),
            "{name}"
        );
    }
}

/// The columns that a view and a document have in common, of the types that SQL declares. The order is not the same: a view only
/// appends.
#[test]
fn documents_have_the_columns_as_sql_declares_them() {
    let sidecar = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (view, list) in [("status", "instances"), ("pools", "pools"), ("recommendations", "recommendations")] {
        let sql = fs::read_to_string(sidecar.join(format!("../../src/views/{view}.sql"))).unwrap();
        let line = |line: &str| Some(line.strip_prefix("    ")?.split_once(" -- ")?.0.trim_end_matches(',').to_owned());
        let declared: Vec<_> = sql.lines().filter_map(line).collect();
        let declared: Vec<_> = declared.iter().map(|column| column.split_once(' ').unwrap()).collect();
        let mut rows = 0;
        for path in files(&sidecar.join("tests/golden/snapshots"), "/status.json") {
            let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            for row in document[list].as_array().unwrap() {
                let row = row.as_object().unwrap();
                for (name, kind) in declared.iter().filter(|(name, _)| row.contains_key(*name)) {
                    let is_it = match (&row[*name], *kind) {
                        (Value::Null, _) => true,
                        (value, "bigint") => value.is_u64(),
                        (value, "boolean") => value.is_boolean(),
                        (value, "text[]") => value.is_array(),
                        (value, kind) => kind == "text" && value.is_string(),
                    };
                    assert!(is_it, "{view}.{name}: {}", row[*name]);
                }
                rows += 1;
            }
        }
        assert!(rows > 10 && declared.len() > 9, "{view}");
    }
}
