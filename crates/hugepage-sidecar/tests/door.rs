//! Files of database servers are opened in one place. Nothing else in the workspace gives a path to the operating system
//! but the files named here, each with what its paths are: the kernel's files, this program's own, or those that the
//! server's own process may read and write as what it is.

use std::fs;
use std::path::{Path, PathBuf};

/// What opens something, or asks what is there.
const CALLS: [&str; 22] = [
    "fs::read",
    "fs::write",
    "fs::metadata",
    "fs::symlink_metadata",
    "fs::canonicalize",
    "fs::copy",
    "fs::remove_",
    "fs::rename",
    "fs::create_dir",
    "fs::hard_link",
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions::new",
    "DirBuilder::new",
    "openat",
    "statat",
    "readlinkat",
    ".exists()",
    ".is_file()",
    ".is_dir()",
    ".canonicalize()",
];

const ALLOWED: [(&str, &str); 32] = [
    ("crates/hugepage-assess/build.rs", "the crate's own table, when it is compiled"),
    ("crates/hugepage-kernel/src/stranger/beneath.rs", "the door's steps, all with O_PATH"),
    ("crates/hugepage-kernel/src/stranger/instance_files.rs", "the door"),
    ("crates/hugepage-kernel/src/source/root.rs", "the kernel's files, and trees step by step"),
    ("crates/hugepage-kernel/src/source/root/directory.rs", "the kernel's files"),
    ("crates/hugepage-kernel/src/proc/process.rs", "/proc/PID/exe"),
    ("crates/hugepage-kernel/src/mapping/procmap_query.rs", "/proc/PID/maps"),
    ("crates/hugepage-server/src/history/file.rs", "the writer's own history"),
    ("crates/hugepage-start/src/data_directory.rs", "a new directory of the asker's"),
    ("crates/hugepage-sidecar/src/atomic_file.rs", "output that the command line names"),
    ("crates/hugepage-sidecar/src/cli.rs", "the directory of --root"),
    ("crates/hugepage-sidecar/src/commands/apply/kernel_file.rs", "/proc/sys and /sys"),
    ("crates/hugepage-sidecar/src/commands/apply/kernel_pool.rs", "/proc/sys and /sys"),
    ("crates/hugepage-sidecar/src/commands/apply/lock.rs", "the sidecar's own lock"),
    ("crates/hugepage-sidecar/src/commands/capture/mod.rs", "the captured tree"),
    ("crates/hugepage-sidecar/src/commands/capture/copy.rs", "the captured tree"),
    ("crates/hugepage-sidecar/src/commands/capture/tree.rs", "asks the door again"),
    ("crates/hugepage-sidecar/src/commands/lint.rs", "the manifests that the command line names"),
    ("crates/hugepage-sidecar/src/commands/report.rs", "output that the command line names"),
    ("crates/hugepage-sidecar/src/commands/watch.rs", "the sidecar's own directory of histories"),
    ("crates/hugepage-sidecar/src/history.rs", "the sidecar's own directory of histories"),
    ("crates/hugepage-sidecar/src/server_program/installed.rs", "whether a program exists"),
    ("crates/hugepage-sidecar/src/oracle/directory.rs", "output that the command line names"),
    ("crates/hugepage-sidecar/src/privileges/mod.rs", "the directories that the command line names"),
    ("crates/hugepage-sidecar/src/state.rs", "the sidecar's own directory of histories"),
    ("crates/hugepage-sidecar/src/stopped_clusters.rs", "whether a program exists"),
    ("crates/hugepage-sidecar/src/server_program/child.rs", "/proc/self/fd"),
    ("crates/hugepage-sidecar/src/server_program/empty_cluster.rs", "a directory of its own for temporary files"),
    ("crates/hugepage-sidecar/src/server_program/libraries.rs", "libraries of packages"),
    ("crates/hugepage-sidecar/src/server_program/trust.rs", "who owns the program, and what it would read"),
    ("src/history.rs", "the server's own directory"),
    ("src/preflight/", "the server's own files, by the server's own user"),
];

#[test]
fn nothing_else_opens_a_path() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut sources = Vec::new();
    for directory in ["crates", "src"] {
        add(&workspace.join(directory), &mut sources);
    }
    assert!(sources.len() > 100, "{}", sources.len());
    let mut found = Vec::new();
    for source in &sources {
        let name = source.strip_prefix(&workspace).unwrap().to_str().unwrap();
        let text = fs::read_to_string(source).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let calls: Vec<_> = CALLS.iter().filter(|call| code.lines().any(|line| is_call(line, call))).collect();
        let is_allowed = ALLOWED.iter().any(|(allowed, _)| name.starts_with(allowed));
        if !calls.is_empty() && !is_allowed {
            found.push(format!("{name}: {calls:?}"));
        }
    }
    assert!(found.is_empty(), "hugepage_kernel::InstanceFiles is the door to servers' files:\n{}", found.join("\n"));
}

fn is_call(line: &str, call: &str) -> bool {
    let code = line.trim_start();
    !code.starts_with("//") && !code.starts_with("use ") && code.contains(call)
}

/// Adds what is compiled into the programs: no tests, and no benchmarks.
fn add(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !matches!(name, "tests" | "benches" | "fuzz" | "target") {
            add(&path, into);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            into.push(path);
        }
    }
}

/// Every allowed file is there and needs to be allowed.
#[test]
fn the_list_has_no_idle_entries() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (allowed, why) in ALLOWED {
        assert!(workspace.join(allowed).exists(), "{allowed}: {why}");
    }
}
