//! The faces of the program for one host.

use std::fs;

use crate::program::{run, without_version};
use crate::snapshots::{Snapshots, files};
use crate::trees::Tree;

/// A file, and the call whose output it keeps.
type Face = (&'static str, &'static [&'static str]);

/// What surveys a host.
pub const SURVEY: &[Face] = &[
    ("status.txt", &["status"]),
    ("status.json", &["status", "--format", "json"]),
    ("status.csv", &["status", "--format", "csv"]),
    ("check.txt", &["check"]),
    ("size.txt", &["size", "--sessions", "1024"]),
    ("size.json", &["size", "--sessions", "1024", "--format", "json"]),
    ("size.csv", &["size", "--format", "csv"]),
    ("metrics.prom", &["metrics"]),
];

/// What else reads a tree.
pub const REST: &[Face] = &[
    ("report.html", &["report", "--html", "-"]),
    ("hp_host.dat", &["oracle", "print", "hp_host.dat"]),
    ("hp_instance.dat", &["oracle", "print", "hp_instance.dat"]),
    ("hp_segment.dat", &["oracle", "print", "hp_segment.dat"]),
    ("hp_start.dat", &["oracle", "print", "hp_start.dat"]),
    ("hp_pool.dat", &["oracle", "print", "hp_pool.dat"]),
    ("hp_finding.dat", &["oracle", "print", "hp_finding.dat"]),
];

/// The last call, because it writes into the tree.
pub const WATCH: [&str; 8] =
    ["watch", "--once", "--state-dir", "state", "--json", "../status.json", "--textfile", "../metrics.prom"];

/// Compares what all these calls say of a host, and what `watch` writes.
pub fn compare(snapshots: &mut Snapshots, host: &str, tree: Tree, faces: &[Face]) {
    tree.set_clock();
    let mut calls = String::new();
    for (file, call) in faces {
        let result = run(&tree.path, call);
        calls += &result.transcript();
        let text = if file.ends_with(".dat") { without_snapshot_id(&result.stdout) } else { result.stdout };
        snapshots.compare(&format!("{host}/{file}"), &text);
    }
    calls += &run(&tree.path, &WATCH).transcript();
    for name in ["status.json", "metrics.prom"] {
        let text = fs::read_to_string(tree.path.join("..").join(name)).unwrap();
        snapshots.compare(&format!("{host}/{name}"), &without_version(text));
    }
    let mut history = String::new();
    for file in files(&tree.path.join("state")) {
        history += &format!("{}\n{}", file.file_name().unwrap().display(), fs::read_to_string(&file).unwrap());
    }
    snapshots.compare(&format!("{host}/watch.history"), &history);
    snapshots.compare(&format!("{host}/calls.txt"), &calls);
}

/// The second field of each row counts the nanoseconds since 1970.
fn without_snapshot_id(rows: &str) -> String {
    let (header, rows) = rows.split_once('\n').unwrap();
    let fields = rows.lines().map(|row| row.splitn(3, '|').collect::<Vec<_>>());
    let rows = fields.map(|fields| format!("{}|[SNAPSHOT]|{}\n", fields[0], fields[2]));
    format!("{header}\n{}", rows.collect::<String>())
}
