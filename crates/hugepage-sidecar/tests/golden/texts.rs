//! What the program says that no host is needed for: help, scripts and refusals.

use std::fs;
use std::path::Path;

use crate::faces::{REST, SURVEY, WATCH};
use crate::program::run;
use crate::snapshots::{Snapshots, files};
use crate::trees::Tree;

/// The commands that the help of a command lists.
fn commands(directory: &Path, of: &[&str]) -> Vec<String> {
    let help = run(directory, &[of, &["--help"]].concat()).stdout;
    let listed = help
        .split_once("Commands:\n")
        .map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
    // The text of a command may go on, further to the right.
    let names = listed.lines().filter_map(|line| {
        line.strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
    });
    names
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn help() {
    let tree = Tree::bare();
    let mut snapshots = Snapshots::new("help");
    let mut compare = |command: &[&str]| {
        let result = run(&tree.path, &[command, &["--help"]].concat());
        let name = [&["hugepage-sidecar"], command].concat().join("-");
        snapshots.compare(
            &format!("{name}.txt"),
            &(result.transcript() + &result.stdout),
        );
    };
    compare(&[]);
    for command in commands(&tree.path, &[]) {
        compare(&[&command]);
        for below in commands(&tree.path, &[&command]) {
            compare(&[&command, &below]);
        }
    }
    snapshots.finish();
}

/// A new command is added to the calls of this test.
#[test]
fn every_command_is_called() {
    let of_hosts = SURVEY.iter().chain(REST).map(|(_, call)| *call);
    let called: Vec<&str> = of_hosts
        .chain([&WATCH[..]])
        .chain(REFUSED.iter().copied())
        .flatten()
        .copied()
        .collect();
    for command in commands(&Tree::bare().path, &[]) {
        assert!(called.contains(&command.as_str()), "{command}");
    }
}

/// The file of each command shows what it prints. What a host is changed by, and a capture, is in no file that could be compared.
#[test]
fn every_command_begins_with_its_output() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let kept = ["tests/golden/snapshots", "../../packaging/completions"];
    let kept = kept.map(|kept| files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(kept)));
    let kept: Vec<_> = kept
        .iter()
        .flatten()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let of_commands = files(&commands)
        .into_iter()
        .filter(|file| file.ends_with("mod.rs") || file.parent() == Some(&commands))
        .filter(|file| *file != commands.join("mod.rs"));
    for file in of_commands {
        let text = fs::read_to_string(&file).unwrap();
        let (_, shown) = text
            .split_once("\n//! ```text\n//! $ hugepage-sidecar ")
            .unwrap_or_else(|| panic!("{} shows no output", file.display()));
        let (shown, _) = shown.split_once("\n//! ```\n").unwrap();
        let (command, lines) = shown.split_once('\n').unwrap();
        if ["apply", "reserve", "capture", "collapse"].contains(&command.split(' ').next().unwrap())
        {
            continue;
        }
        for line in lines.lines() {
            let line = line.trim_start_matches("//!").trim_start_matches(' ');
            assert!(
                line == "..." || kept.iter().any(|text| text.contains(line)),
                "{}: {line}",
                file.display()
            );
        }
    }
}

/// The names that can be explained, and one of them.
#[test]
fn explanations() {
    let tree = Tree::bare();
    let mut snapshots = Snapshots::new("explanations");
    snapshots.compare("all.txt", &run(&tree.path, &["explain"]).stdout);
    snapshots.compare(
        "pool_empty.txt",
        &run(&tree.path, &["explain", "pool_empty"]).stdout,
    );
    snapshots.finish();
}

/// Every script that `oracle` prints. With other names the installation is the same but for these.
#[test]
fn scripts() {
    let tree = Tree::bare();
    let mut snapshots = Snapshots::new("scripts");
    let print = |script: &str, options: &[&str]| {
        let result = run(&tree.path, &[&["oracle", script], options].concat());
        assert!(
            result.transcript().ends_with("\nexit status 0\n\n"),
            "{}",
            result.transcript()
        );
        result.stdout
    };
    let others = ["write", "print"];
    for script in commands(&tree.path, &["oracle"])
        .iter()
        .filter(|name| !others.contains(&name.as_str()))
    {
        let extension = if script == "columns" { "md" } else { "sql" };
        snapshots.compare(&format!("{script}.{extension}"), &print(script, &[]));
    }
    snapshots.finish();
    let names = [
        "--schema=HP",
        "--role=HP_READER",
        "--directory=HP_DIR",
        "--dir=/srv/hp",
    ];
    let mut expected = print("install-sql", &[])
        .replace("HUGEPAGE_READER", "HP_READER")
        .replace("HUGEPAGE_DIR", "HP_DIR")
        .replace("/var/lib/hugepage-sidecar/oracle", "/srv/hp");
    // The schema by itself: names of views begin alike.
    for behind in ['.', ' ', '\'', ',', ';'] {
        expected = expected.replace(&format!("HUGEPAGE{behind}"), &format!("HP{behind}"));
    }
    let given = print("install-sql", &names);
    for (expected, given) in expected.lines().zip(given.lines()) {
        assert_eq!(expected, given);
    }
    assert_eq!(expected, given);
}

/// Calls that are refused.
const REFUSED: &[&[&str]] = &[
    &[],
    &["no-such-command"],
    &["status", "--no-such-option"],
    &["status", "--reserve-percent", "91"],
    &["status", "--format", "picture"],
    &["watch", "--interval", "0s"],
    &["reserve"],
    &["apply"],
    &["apply", "--pages", "1"],
    &["apply", "--pages", "1", "--recommended"],
    &["collapse"],
    &["collapse", "--instance", "/data", "--yes"],
    &["report"],
    &["status", "--snapshot", "proc"],
    &[
        "status",
        "--snapshot",
        "host.json",
        "--service-account",
        "alice",
    ],
    &[
        "size",
        "--snapshot",
        "host.json",
        "--postgresql-data",
        "/data",
    ],
    &[
        "size",
        "--snapshot",
        "host.json",
        "--shared-buffers",
        "8GB",
        "--major",
        "17",
    ],
    &["capture", "--snapshot", "host.json"],
    &["explain", "nothing"],
    &["completions", "sh"],
    &["size", "--format", "csv"],
    &["oracle", "print", "nothing"],
    &["oracle", "install-sql", "--schema", "a; drop user sys"],
];

/// Calls that are refused, and why.
#[test]
fn refusals() {
    let tree = Tree::bare();
    let result = REFUSED
        .iter()
        .map(|call| run(&tree.path, call).transcript());
    let mut snapshots = Snapshots::new("refusals");
    snapshots.compare("calls.txt", &result.collect::<String>());
    snapshots.finish();
}
