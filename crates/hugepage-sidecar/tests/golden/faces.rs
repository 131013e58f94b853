//! The faces of the program for one host.

use std::collections::BTreeMap;
use std::fs;

use crate::program::{run, run_elsewhere, without_version};
use crate::snapshots::{Snapshots, files};
use crate::trees::Tree;

/// A file, and the call whose output it keeps.
type Face = (&'static str, &'static [&'static str]);

/// The hosts of which more than the table is kept: the smallest that have NUMA nodes, Oracle, and all faces. Of every other host it is
/// only checked that all ways of asking say the same.
const WHOLE: [&str; 5] = [
    "two-nodes",
    "6.12/two-nodes-uneven",
    "busy",
    "one-instance-all-in-huge-pages",
    "two-homes-one-stopped-one-that-starts-at-boot-and-lacks-its-pages",
];

/// What is asked of every host.
pub const SURVEY: &[Face] = &[
    ("status.txt", &["status"]),
    ("status.json", &["status", "--format", "json"]),
    ("metrics.prom", &["metrics"]),
];

/// What else reads a tree: these give the same answers in other forms.
pub const REST: &[Face] = &[
    ("status.csv", &["status", "--format", "csv"]),
    ("check.txt", &["check"]),
    ("size.txt", &["size", "--sessions", "1024"]),
    (
        "size.json",
        &["size", "--sessions", "1024", "--format", "json"],
    ),
    ("report.html", &["report", "--html", "-"]),
    ("hp_host.dat", &["oracle", "print", "hp_host.dat"]),
    ("hp_instance.dat", &["oracle", "print", "hp_instance.dat"]),
    ("hp_pool.dat", &["oracle", "print", "hp_pool.dat"]),
    ("hp_finding.dat", &["oracle", "print", "hp_finding.dat"]),
];

/// The last call, because it writes into the tree.
pub const WATCH: [&str; 8] = [
    "watch",
    "--once",
    "--state-dir",
    "state",
    "--json",
    "../status.json",
    "--textfile",
    "../metrics.prom",
];

/// Compares what these calls say of a host with the files of it.
pub fn compare(snapshots: &mut Snapshots, host: &str, tree: Tree, faces: &[Face]) {
    keep(snapshots, host, &said(host, tree, faces));
}

/// Compares what was said of a host, as far as it is kept.
pub fn keep(snapshots: &mut Snapshots, host: &str, said: &BTreeMap<&str, String>) {
    let is_kept =
        |file: &str| WHOLE.contains(&host) || !SURVEY[1..].iter().any(|face| face.0 == file);
    for (file, text) in said.iter().filter(|(file, _)| is_kept(file)) {
        snapshots.compare(&format!("{host}/{file}"), text);
    }
}

/// What these calls say of a host; a capture of it and `watch` have to say the same. With [`REST`] also what `watch` logs and records.
pub fn said(host: &str, tree: Tree, faces: &[Face]) -> BTreeMap<&'static str, String> {
    tree.set_clock();
    let capture = run(&tree.path, &["capture"])
        .stdout
        .replace("[VERSION]", env!("CARGO_PKG_VERSION"));
    fs::write(tree.path.join("../capture.json"), capture).unwrap();
    let mut said = BTreeMap::new();
    for (file, call) in faces {
        let result = run(&tree.path, call);
        let text = match file.rsplit_once('.') {
            Some((_, "dat")) => without_snapshot_id(&result.stdout),
            Some((_, "txt")) => result.transcript() + &result.stdout,
            _ => result.stdout.clone(),
        };
        said.insert(*file, text);
        if call[0] != "oracle" {
            let elsewhere = run_elsewhere(
                &tree.path,
                &[call, &["--snapshot", "capture.json"][..]].concat(),
            );
            assert_eq!(
                elsewhere.exit(),
                result.exit(),
                "{host} {}",
                elsewhere.transcript()
            );
            assert_eq!(
                of_now(&elsewhere.stdout),
                of_now(&result.stdout),
                "{host} {call:?}"
            );
        }
    }
    let watched = run(&tree.path, &WATCH).transcript();
    for name in ["status.json", "metrics.prom"] {
        let text = fs::read_to_string(tree.path.join("..").join(name)).unwrap();
        assert_eq!(without_version(text), said[name], "{host} {name}");
    }
    if faces.len() > SURVEY.len() {
        let history = files(&tree.path.join("state")).into_iter().map(|file| {
            format!(
                "{}\n{}",
                file.file_name().unwrap().display(),
                fs::read_to_string(&file).unwrap()
            )
        });
        said.insert(
            "watch.history",
            history.fold(watched, |text, one| text + &one),
        );
    }
    said
}

/// A capture has no history.
fn of_now(text: &str) -> String {
    let (text, _) = text.split_once("<h2 id=\"history\">").unwrap_or((text, ""));
    text.lines()
        .filter(|line| !line.contains("last_regression"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The second field of each row counts the nanoseconds since 1970.
fn without_snapshot_id(rows: &str) -> String {
    let (header, rows) = rows.split_once('\n').unwrap();
    let fields = rows
        .lines()
        .map(|row| row.splitn(3, '|').collect::<Vec<_>>());
    let rows = fields.map(|fields| format!("{}|[SNAPSHOT]|{}\n", fields[0], fields[2]));
    format!("{header}\n{}", rows.collect::<String>())
}
