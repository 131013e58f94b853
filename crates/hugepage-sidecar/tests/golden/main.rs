//! What every face of the program says of every host, byte for byte: the files below `snapshots`.
//!
//! A host is a tree of files whose clock and name are fixed. What a face should say otherwise is a diff of these files:
//! `SNAPSHOTS=overwrite cargo test -p hugepage-sidecar --test golden` writes them anew.

#![allow(clippy::disallowed_methods)]

mod agreement;
#[path = "../../../hugepage-host/tests/oracle_hosts/builder.rs"]
#[allow(dead_code)]
mod builder;
mod busy;
mod captures;
mod faces;
#[path = "../../../hugepage-host/tests/oracle_hosts/layouts.rs"]
#[allow(dead_code)]
mod layouts;
mod program;
mod snapshots;
mod texts;
mod trees;

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;

use crate::faces::{REST, SURVEY};
use crate::snapshots::Snapshots;
use crate::trees::{Tree, names};

/// The composed machines of the core's tests, each with one server.
#[test]
fn machines() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut snapshots = Snapshots::new("machines");
    for name in names(&fixtures)
        .iter()
        .filter(|name| fixtures.join(name).is_dir())
    {
        let tree = Tree::copy(&fixtures.join(name));
        tree.add_server();
        faces::compare(&mut snapshots, name, tree, SURVEY);
    }
    snapshots.finish();
}

/// The lab's machines: archives in a directory for each kernel. A machine has one file.
#[test]
fn hosts() {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hosts");
    let mut snapshots = Snapshots::new("hosts");
    let mut machines: BTreeMap<String, String> = BTreeMap::new();
    let mut firsts = BTreeMap::new();
    for kernel in names(&hosts) {
        for name in names(&hosts.join(&kernel)) {
            let tree = Tree::unpacked(&hosts.join(&kernel).join(&name));
            let machine = name.split(".tar").next().unwrap().to_owned();
            let host = format!("{kernel}/{machine}");
            let mut said = faces::said(&host, tree, SURVEY);
            let status = said.remove("status.txt").unwrap();
            faces::keep(&mut snapshots, &host, &said);
            let first = firsts.entry(machine.clone()).or_insert(String::new());
            let text = machines.entry(machine).or_default();
            *text += &format!("Linux {kernel}:\n\n{}\n", changed(first, &status));
            if first.is_empty() {
                *first = status;
            }
        }
    }
    for (machine, text) in machines {
        snapshots.compare(&format!("{machine}.txt"), &format!("{}\n", text.trim_end()));
    }
    snapshots.finish();
}

/// The lines that differ from those of the first text; all if one has more of them.
fn changed(first: &str, text: &str) -> String {
    if first.lines().count() != text.lines().count() {
        return text.to_owned();
    }
    let lines = first.lines().zip(text.lines());
    let changed = lines.filter(|(before, now)| before != now);
    changed.map(|(_, now)| format!("{now}\n")).collect()
}

/// A host with everything, and the layouts of hosts with Oracle, on a kernel each.
#[test]
fn servers() {
    let (mut snapshots, all) = (Snapshots::new("servers"), [SURVEY, REST].concat());
    // The second kernel has another trait than the first; of the third it is not known which it has. Of this host all say the same.
    for (release, faces) in [
        ("6.12.40+deb13-amd64", &all[..]),
        ("7.0.0-14-generic", SURVEY),
        ("6.12.0-55.el10.x86_64", SURVEY),
    ] {
        faces::compare(&mut snapshots, "busy", busy::host(release), faces);
    }
    for ((layout, kernel), faces) in layouts::LAYOUTS
        .iter()
        .zip(builder::KERNELS.iter().cycle())
        .zip(iter::once(&all[..]).chain(iter::repeat(SURVEY)))
    {
        let host = (layout.make)(kernel);
        let words: Vec<_> = layout
            .name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        faces::compare(
            &mut snapshots,
            &words.join("-"),
            Tree::copy(&host.path("/")),
            faces,
        );
    }
    snapshots.finish();
}
