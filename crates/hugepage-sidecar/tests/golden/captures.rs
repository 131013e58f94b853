//! Captures of hosts: what is decided of each, and what each version has to do with those of others.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::busy;
use crate::program::{CallOutput, run, run_elsewhere};
use crate::snapshots::Snapshots;
use crate::trees::{Tree, names};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures")
}

/// What `status` says of the host in `file`, which is in `place` or below it.
fn status(place: &Path, file: &str) -> CallOutput {
    run_elsewhere(place, &["status", "--format", "json", "--snapshot", file])
}

/// Each file there: what `status` decides of it is in `decided`. A capture that is copied there is a test.
#[test]
fn what_is_decided_of_each() {
    let bare = Tree::bare();
    let mut snapshots = Snapshots::in_directory(directory().join("decided"));
    for name in names(&directory()) {
        if !name.ends_with(".json") {
            continue;
        }
        let capture = fs::read_to_string(directory().join(&name)).unwrap();
        bare.write("../capture.json", capture);
        snapshots.compare(&name, &status(&bare.path, "capture.json").stdout);
    }
    snapshots.finish();
}

/// A capture of a version to come, which has more facts, and one that lacks what this version can't do without.
#[test]
fn captures_of_other_versions() {
    let bare = Tree::bare();
    let decided = |capture: &Value| {
        bare.write("../capture.json", capture.to_string());
        status(&bare.path, "capture.json")
    };
    let text = fs::read_to_string(directory().join("1.0.0.json")).unwrap();
    let mut capture: Value = serde_json::from_str(&text).unwrap();
    let known = decided(&capture);
    capture["hugepage_sidecar"] = "9.8.7".into();
    capture["snapshot"]["host"]["a_fact_to_come"] = 1.into();
    capture["snapshot"]["servers"][0]["another"] = "x".into();
    assert_eq!(decided(&capture).stdout, known.stdout);

    capture["snapshot"]["host"]
        .as_object_mut()
        .unwrap()
        .remove("pools");
    let refused = decided(&capture).transcript();
    assert!(
        refused.contains("version 9.8.7 wrote it") && refused.contains("missing field `pools`"),
        "{refused}"
    );
}

/// All but texts, and the texts that say what was decided.
fn shape(value: &Value, key: &str) -> String {
    match value {
        Value::String(text)
            if ["verdict", "landed_in", "cause", "outlook", "state"].contains(&key) =>
        {
            text.clone()
        }
        Value::String(_) => String::new(),
        Value::Array(all) => all.iter().map(|one| shape(one, key) + ";").collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                format!(
                    "{key}={} ",
                    shape(value, key.trim_start_matches("restart_"))
                )
            })
            .collect(),
        other => other.to_string(),
    }
}

/// Of a host under other names the same is decided, and no name of it is left.
#[test]
fn anonymous_captures() {
    let tree = busy::host("6.12.40+deb13-amd64");
    tree.write("/etc/hostname", "payroll.example.com\n");
    tree.write("/proc/sys/kernel/hostname", "payroll.example.com\n");
    tree.set_clock();
    let decided = |arguments: &[&str]| {
        let capture = run(&tree.path, arguments).stdout;
        tree.write("../capture.json", &capture);
        let decided = status(&tree.path, "capture.json").stdout;
        (capture, serde_json::from_str::<Value>(&decided).unwrap())
    };
    let (plain, of_plain) = decided(&["capture"]);
    let (anonymous, of_anonymous) = decided(&["capture", "--anonymous"]);
    assert_eq!(shape(&of_anonymous, ""), shape(&of_plain, ""));
    for name in ["payroll", "example", "ORCL", "script", "onerror"] {
        assert!(plain.contains(name), "{name}");
        assert!(!anonymous.contains(name), "{name}: {anonymous}");
    }
    assert!(anonymous.contains("/var/lib/postgresql/15/main"));
}
