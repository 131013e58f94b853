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

/// The lab's machines: archives in a directory for each kernel.
#[test]
fn hosts() {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hosts");
    let mut snapshots = Snapshots::new("hosts");
    for kernel in names(&hosts) {
        for name in names(&hosts.join(&kernel)) {
            let tree = Tree::unpacked(&hosts.join(&kernel).join(&name));
            let host = format!("{kernel}/{}", name.split(".tar").next().unwrap());
            faces::compare(&mut snapshots, &host, tree, SURVEY);
        }
    }
    snapshots.finish();
}

/// A host with everything, and the layouts of hosts with Oracle, on a kernel each.
#[test]
fn servers() {
    let (mut snapshots, all) = (Snapshots::new("servers"), [SURVEY, REST].concat());
    // The second kernel has another trait than the first; of the third it is not known which it has.
    faces::compare(
        &mut snapshots,
        "busy",
        busy::host("6.12.40+deb13-amd64"),
        &all,
    );
    faces::compare(
        &mut snapshots,
        "busy-7.0",
        busy::host("7.0.0-14-generic"),
        SURVEY,
    );
    faces::compare(
        &mut snapshots,
        "busy-el10",
        busy::host("6.12.0-55.el10.x86_64"),
        SURVEY,
    );
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
