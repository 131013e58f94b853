//! Exit statuses, CSV and JSON of the commands on trees of files. The tests need neither root nor a server.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const HUGE: u64 = 2 << 20;
const OK: i32 = 0;
const WARNING: i32 = 1;
const CRITICAL: i32 = 2;
const UNKNOWN: i32 = 3;
const USAGE: i32 = 64;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(name)
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
    command
        .arg("--root")
        .arg(root)
        .args(arguments)
        .output()
        .unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn csv(output: &Output) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let header = fields(reader.headers().unwrap());
    (
        header,
        reader
            .records()
            .map(|record| fields(&record.unwrap()))
            .collect(),
    )
}

/// The fixture `two-nodes` with a PostgreSQL server that needs 8 pages of 2 MB.
struct Host(tempfile::TempDir);

impl Host {
    /// A server on pages of `page_size` with this setting of `huge_pages`. The pool has 8000 pages of other processes, those
    /// of the server, and `free` pages.
    fn with_server(page_size: u64, huge_pages: &str, free: u64) -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        copy(&fixture("two-nodes"), host.0.path());
        let name = if page_size == HUGE {
            "/anon_hugepage (deleted)"
        } else {
            "/dev/zero (deleted)"
        };
        let mapping = format!("7f0000000000-7f0001000000 rw-s 00000000 00:0f 12345 {name}\n");
        let (kib, nr) = (
            page_size / 1024,
            free + if page_size == HUGE { 8008 } else { 8000 },
        );
        for (path, text) in [
            ("proc/uptime", "900000.00 1000000.00\n".to_owned()),
            ("proc/sys/kernel/hostname", "db1\n".to_owned()),
            ("etc/hugepage-sidecar/next-boot", "60000 us\n".to_owned()),
            ("proc/7/cmdline", "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0".to_owned()),
            ("proc/7/stat", format!("7 (postgres) S 1 {}100000 0 0\n", "0 ".repeat(17))),
            (
                "proc/7/status",
                "Name:\tpostgres\nPPid:\t1\nVmPTE:\t120 kB\nRssAnon:\t1 kB\nRssFile:\t1 kB\nRssShmem:\t0 kB\n"
                    .to_owned(),
            ),
            ("proc/7/cgroup", "0::/\n".to_owned()),
            ("proc/7/limits", "Max locked memory         unlimited            unlimited            bytes\n".to_owned()),
            ("proc/7/maps", mapping.clone()),
            ("proc/7/smaps", format!("{mapping}Size: 16384 kB\nKernelPageSize: {kib} kB\nMMUPageSize: {kib} kB\n")),
            ("data/PG_VERSION", "15\n".to_owned()),
            ("data/postgresql.conf", format!("huge_pages = {huge_pages}\n")),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", format!("{nr}\n")),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", format!("{free}\n")),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "0\n".to_owned()),
        ] {
            let path = host.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        // Before the server has started.
        let conf = fs::File::open(host.0.path().join("data/postgresql.conf")).unwrap();
        conf.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        symlink("/data", host.0.path().join("proc/7/cwd")).unwrap();
        host
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(self.0.path(), arguments)
    }

    /// Makes the server an Oracle database instead.
    fn make_oracle(&self) {
        let path = |name: &str| self.0.path().join("proc/7").join(name);
        fs::write(path("cmdline"), "ora_pmon_orcl\0").unwrap();
        for file in ["maps", "smaps"] {
            let text = fs::read_to_string(path(file)).unwrap();
            fs::write(
                path(file),
                text.replace("/dev/zero (deleted)", "/SYSV00000000 (deleted)"),
            )
            .unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &target),
            kind if kind.is_symlink() => {
                symlink(fs::read_link(entry.path()).unwrap(), target).unwrap()
            }
            _ => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn exit_with_usage() {
    let host = fixture("two-nodes");
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["status", "--no-such-option"],
        &["status", "--reserve-percent", "91"],
        &["watch", "--interval", "0s"],
        &["apply"],
        &["apply", "--pages", "1"],
        &["apply", "--pages", "1", "--recommended"],
        &["oracle", "install-sql", "--schema", "a; drop user sys"],
    ] {
        assert_eq!(status(&run(&host, arguments)), USAGE, "{arguments:?}");
    }
    let elsewhere = run(&fixture("none"), &["status"]);
    assert_eq!(status(&elsewhere), USAGE);
    assert!(
        String::from_utf8_lossy(&elsewhere.stderr).contains("not a host's root: no proc directory")
    );
    for arguments in [&["--help"][..], &["--version"], &["apply", "--help"]] {
        assert_eq!(status(&run(&host, arguments)), OK, "{arguments:?}");
    }
}

/// What a wrong value should have been, with the option that it is of.
#[test]
fn wrong_values_in_own_words() {
    for (arguments, words) in [
        (
            ["status", "--timeout", "5"],
            "'--timeout <TIME>': give a time from 100ms to 1d with its unit, such as 30s, 5min or 1h",
        ),
        (
            ["watch", "--interval", "soon"],
            "'--interval <TIME>': give a time from 100ms to 1d with its unit, such as 30s, 5min or 1h",
        ),
        (
            ["check", "--timeout", "2d"],
            "'--timeout <TIME>': give a time from 100ms to 1d with its unit, such as 30s, 5min or 1h",
        ),
        (
            ["status", "--reserve-percent", "120"],
            "'--reserve-percent <PERCENT>': give a whole number from 0 to 90",
        ),
        (
            ["size", "--sessions", "many"],
            "'--sessions <N>': give a whole number from 1 to 1000000",
        ),
    ] {
        let refused = run(&fixture("two-nodes"), &arguments);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            status(&refused) == USAGE && said.contains(words),
            "{arguments:?}: {said}"
        );
    }
}

/// What packages install is what the program prints; of another shell it has nothing.
#[test]
fn completions_are_those_of_the_packages() {
    for (shell, file) in [
        ("bash", "hugepage-sidecar.bash"),
        ("fish", "hugepage-sidecar.fish"),
        ("zsh", "_hugepage-sidecar"),
    ] {
        let packaged = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging"));
        let packaged = fs::read_to_string(packaged.join("completions").join(file)).unwrap();
        let printed = run(&fixture("two-nodes"), &["completions", shell]);
        assert_eq!(stdout(&printed).trim_end(), packaged.trim_end());
    }
    let refused = run(&fixture("two-nodes"), &["completions", "sh"]);
    assert_eq!(status(&refused), USAGE);
}

/// As a log has it, and as other programs write it.
#[test]
fn explain_whatever_the_case() {
    let explained = run(&fixture("two-nodes"), &["explain", "pool_empty"]);
    assert!(stdout(&explained).starts_with("pool_empty\n"));
    for name in ["pool-empty", "POOL_EMPTY", "[pool_empty]"] {
        assert_eq!(
            stdout(&run(&fixture("two-nodes"), &["explain", name])),
            stdout(&explained),
            "{name}"
        );
    }
}

/// As whoever is paged types it.
#[test]
fn explain_every_alert() {
    let rules = include_str!("../../../monitoring/prometheus/alerts.yaml");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for name in alerts {
        for written in [name.to_owned(), name.to_uppercase()] {
            let explained = run(&fixture("two-nodes"), &["explain", &written]);
            assert!(
                stdout(&explained).starts_with(&format!("{name}\n\n")),
                "{written}"
            );
            assert!(!stdout(&explained).contains("\n### "), "{written}");
        }
    }
}

/// Cron mails what a timer's command says.
#[test]
fn metrics_without_notes() {
    let said = |arguments: &[&str]| {
        let done = run(&fixture("no-sys"), arguments);
        assert!(stdout(&done).ends_with("# EOF\n"));
        String::from_utf8(done.stderr).unwrap()
    };
    assert_ne!(said(&["metrics"]), "");
    assert_eq!(said(&["metrics", "--quiet"]), "");
}

/// So many pages fit on no host: this one changes nothing even if it asks nobody.
#[test]
fn apply_without_a_terminal_needs_consent() {
    // As root it makes the place of its lock, which stays until the next boot.
    let place = Path::new("/run/hugepage-sidecar");
    let was_there = place.exists();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
    let refused = command
        .args(["apply", "--pages", "1000000000000"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(status(&refused), USAGE);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no terminal to ask on: add --yes"));
    if !was_there {
        let _ = fs::remove_dir(place);
    }
}

#[test]
fn exit_with_the_worst_verdict() {
    for (page_size, huge_pages, free, exit, word) in [
        (HUGE, "on", 0, OK, "OK"),
        (4096, "try", 12_000, WARNING, "WARNING"),
        (4096, "on", 0, CRITICAL, "CRITICAL"),
    ] {
        let host = Host::with_server(page_size, huge_pages, free);
        let check = host.run(&["check"]);
        let line = stdout(&check);
        assert!(
            line.starts_with(&format!("HUGEPAGES {word} - /data: ")) && line.lines().count() == 1,
            "{line}"
        );
        assert!(
            line.contains(" | instances=1 ") && line.contains(&format!(" available_2MB={free} ")),
            "{line}"
        );
        for arguments in [
            &["check"][..],
            &["check", "--instance", "/data"],
            &["status"],
            &["report", "--html", "-"],
        ] {
            assert_eq!(status(&host.run(arguments)), exit, "{arguments:?}: {line}");
        }
        assert_eq!(status(&host.run(&["check", "--instance", "none"])), UNKNOWN);
        assert_eq!(status(&host.run(&["metrics"])), OK);
    }
}

#[test]
fn print_status() {
    let host = Host::with_server(HUGE, "on", 4);
    let document = json(&host.run(&["status", "--format", "json"]));
    let [instance] = &document["instances"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
    for (name, value) in [
        ("kind", "postgresql".into()),
        ("name", "/data".into()),
        ("landed_in", "hugetlb".into()),
        ("cause", Value::Null),
        ("huge_pages", "on".into()),
        ("page_size", HUGE.into()),
        ("pages_needed", 8.into()),
        ("pages_missing", 0.into()),
        ("memlock", Value::Null),
        ("memlock_unlimited", true.into()),
    ] {
        assert_eq!(instance[name], value, "{name}");
    }
    let (header, rows) = csv(&host.run(&["status", "--format", "csv"]));
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let names: Vec<_> = instance.as_object().unwrap().keys().cloned().collect();
    assert_eq!(header, names);
    for (name, text) in [
        ("landed_in", "hugetlb"),
        ("cause", ""),
        ("page_size", "2097152"),
        ("by_page_size", "2097152:16777216"),
    ] {
        assert_eq!(
            row[header.iter().position(|column| column == name).unwrap()],
            text,
            "{name}"
        );
    }
    let written = host.0.path().join("status.json");
    let state = host.0.path().join("state");
    let watch = [
        "watch",
        "--once",
        "--state-dir",
        state.to_str().unwrap(),
        "--json",
        written.to_str().unwrap(),
    ];
    assert_eq!(status(&host.run(&watch)), OK);
    let watched: Value = serde_json::from_slice(&fs::read(written).unwrap()).unwrap();
    assert_eq!(watched["instances"][0]["name"], "/data");
}

#[test]
fn print_the_shares_of_nodes() {
    let two = fixture("two-nodes");
    let document = json(&run(&two, &["status", "--format", "json"]));
    let shares: Vec<_> = document["pools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pool| pool["page_size"] == HUGE)
        .collect();
    let of = |name: &str| {
        shares
            .iter()
            .map(|pool| pool[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("node"), [Value::Null, Value::from(0), Value::from(1)]);
    assert_eq!(of("free_hugepages")[1..], [6000, 9000]);
    let lines = |root: &Path| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        stdout(&run(root, &["status"]))
            .lines()
            .map(words)
            .filter(|words: &Vec<String>| words.len() > 3)
            .collect()
    };
    let nodes: Vec<_> = lines(&two)
        .into_iter()
        .filter(|words| words[0] == "node")
        .collect();
    let of_2_mb = [
        ["node", "0", "10000", "6000", "0"],
        ["node", "1", "10000", "9000", "0"],
    ];
    assert_eq!(nodes[..2], of_2_mb, "{nodes:?}");
    let of_1_gb: Vec<_> = nodes[2..]
        .iter()
        .map(|words| words[1..4].join(" "))
        .collect();
    assert_eq!(of_1_gb, ["0 4 4", "1 0 0"]);
    let one = lines(&fixture("default-1g"));
    assert!(
        one.iter().any(|words| words[..2] == ["1", "GB"])
            && one.iter().all(|words| words[0] != "node"),
        "{one:?}"
    );
}

#[test]
fn print_size() {
    let host = Host::with_server(4096, "on", 0);
    let size = host.run(&["size", "--running-only", "--format", "json"]);
    let document = json(&size);
    let pool = &document["pools"][0];
    assert_eq!(
        (status(&size), &pool["is_default"]),
        (OK, &true.into()),
        "{document}"
    );
    assert_eq!(pool["recommended_nr_hugepages"], 8008);
    assert_eq!(pool["held_by_others"], 8000);
    assert_eq!(pool["command"], "sysctl -w vm.nr_hugepages=8008");
    let need = serde_json::json!({"instance": "/data", "is_running": true, "pages_needed": 8, "pages_held": 0});
    assert_eq!(pool["needs"], Value::Array(vec![need]));
    // 90% of 126 GB are to be kept. The 8000 pages of other processes exceed the rest already: the pool fits, with a caution.
    let beyond = host.run(&[
        "size",
        "--running-only",
        "--reserve-percent",
        "90",
        "--format",
        "json",
    ]);
    let pool = &json(&beyond)["pools"][0];
    assert_eq!(
        (status(&beyond), &pool["recommended_nr_hugepages"]),
        (OK, &8008.into()),
        "{pool}"
    );
    assert!(
        pool["capacity_within_reserve"].as_u64() < Some(8000),
        "{pool}"
    );
    assert!(pool["caution"].is_string(), "{pool}");
}

/// The program of the version counts, if it is installed here.
#[test]
fn a_server_that_is_only_planned() {
    let run = |arguments: &[&str]| {
        let arguments = [&["size", "--shared-buffers"], arguments].concat();
        Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"))
            .args(arguments)
            .output()
            .unwrap()
    };
    for wrong in [
        &["1GB"][..],
        &["x", "--major", "15"],
        &["1GB", "--major", "14"],
    ] {
        assert_eq!(status(&run(wrong)), USAGE, "{wrong:?}");
    }
    for other in [
        &["--running-only"][..],
        &["--sessions", "9"],
        &["--root", "/tmp"],
    ] {
        assert_eq!(
            status(&run(&[&["1GB", "--major", "15"], other].concat())),
            USAGE,
            "{other:?}"
        );
    }
    let absent = run(&["1GB", "--major", "99"]);
    assert_eq!(status(&absent), UNKNOWN);
    let why = String::from_utf8_lossy(&absent.stderr);
    assert!(
        why.contains("no postgres program of version 99 was found"),
        "{why}"
    );
}

/// Whose need a damaged history had is not known: it is said, and no server is taken for none.
#[test]
fn a_damaged_history() {
    let host = Host::with_server(HUGE, "try", 0);
    let history = host
        .0
        .path()
        .join("var/lib/hugepage-sidecar/postgresql-srv-a.26.history");
    fs::create_dir_all(history.parent().unwrap()).unwrap();
    let counts = |text: &str| {
        fs::write(&history, text).unwrap();
        stdout(&host.run(&["size", "--format", "json"]))
            .contains("has no record that is known here")
    };
    // Of a later version, damaged, and torn.
    let later = "aff6b4fe {\"v\":2}\n";
    assert_eq!(
        ["", later, "0badc0de {}\n", "0badc0de {"].map(counts),
        [false, true, true, true]
    );
}

/// Page tables of N sessions, by the model of the core: 16 MB, and 120 kB of the smallest process.
#[test]
fn a_note_of_size_stands_once() {
    let host = Host::with_server(4096, "try", 0);
    let times = |note: &str| {
        let output = host.run(&["size", "--postgresql-data", "/srv/other"]);
        stdout(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .matches(note)
            .count()
    };
    let path = |name: &str| host.0.path().join(name);
    fs::create_dir_all(path("srv/other")).unwrap();
    fs::write(path("srv/other/PG_VERSION"), "15\n").unwrap();
    for file in ["data/postgresql.conf", "srv/other/postgresql.conf"] {
        fs::write(path(file), "shared_buffers = '1 %'\n").unwrap();
    }
    assert_eq!(times("'1 %' is not a size"), 1, "of a changed file");
    let conf = fs::File::open(path("data/postgresql.conf")).unwrap();
    conf.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    assert_eq!(times("'1 %' is not a size"), 1);
}

#[test]
fn foretell_sessions() {
    let host = Host::with_server(4096, "on", 0);
    let size = host.run(&[
        "size",
        "--running-only",
        "--sessions",
        "1024",
        "--format",
        "json",
    ]);
    let document = json(&size);
    let row = &document["sessions"]["instances"][0];
    assert_eq!(
        (status(&size), &document["sessions"]["sessions"]),
        (OK, &1024.into()),
        "{document}"
    );
    assert_eq!(
        (&row["instance"], &row["shared_memory"]),
        (&"/data".into(), &(16 << 20).into()),
        "{row}"
    );
    assert_eq!(
        (&row["own_per_session"], &row["page_tables_base"]),
        (&(120 << 10).into(), &(1024 * (152 << 10)).into())
    );
    assert_eq!(row["page_tables_huge"], 1024 * ((120 << 10) + 8 * 8));
    let text = host.run(&["size", "--running-only", "--sessions", "1024"]);
    let text = stdout(&text);
    assert!(
        text.contains("page tables of 1024 sessions, as if each had touched all shared memory"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(json(&host.run(&["size", "--running-only", "--format", "json"]))["sessions"].is_null());
    assert_eq!(status(&host.run(&["size", "--sessions", "0"])), USAGE);
}

/// The history of a SID is that of its home.
#[test]
fn histories_by_home() {
    let host = Host::with_server(4096, "on", 0);
    host.make_oracle();
    let tree = host.0.path();
    // A tree has its histories below it.
    let histories = tree.join(tree.strip_prefix("/").unwrap());
    fs::create_dir_all(&histories).unwrap();
    let file = |home: &str| histories.join(format!("oracle-orcl{home}.history"));
    let move_to = |pid: u32, home: &str| {
        let exe = tree.join(format!("proc/{pid}/exe"));
        let _ = fs::remove_file(&exe);
        symlink(format!("{home}/bin/oracle"), exe).unwrap();
    };
    let watch = || {
        // Its time is that of the survey.
        fs::write(tree.join("proc/uptime"), "900000.00 1000000.00\n").unwrap();
        host.run(&["watch", "--once", "--state-dir", tree.to_str().unwrap()]);
    };
    let read = |home: &str| fs::read_to_string(file(home)).unwrap();
    move_to(7, "/u01/19");
    watch();
    let recorded = read(".home-u01-19");
    assert_eq!(recorded.lines().count(), 1, "{recorded}");
    // Another instance, in another home.
    copy(&tree.join("proc/7"), &tree.join("proc/8"));
    move_to(8, "/u01/12");
    watch();
    assert_eq!(
        (read(".home-u01-19"), read(".home-u01-12").lines().count()),
        (recorded.clone(), 1)
    );
    assert_ne!(read(".home-u01-12"), recorded);
}

/// The files of `watch` have a line of a server that does not count, and nothing of its history: any user could have written it.
#[test]
fn watch_recalls_the_past_of_what_counts() {
    let host = Host::with_server(4096, "try", 0);
    let path = |name: &str| host.0.path().join(name);
    let process = fs::read_to_string(path("proc/7/status")).unwrap();
    fs::write(
        path("proc/7/status"),
        process + "Name:\tpostgres\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n",
    )
    .unwrap();
    // A tree has its histories below it.
    let state = host.0.path().join(host.0.path().strip_prefix("/").unwrap());
    fs::create_dir_all(&state).unwrap();
    fs::create_dir_all(path("etc")).unwrap();
    fs::write(path("etc/passwd"), "root:x:0:0:::\n").unwrap();
    let written = path("status.json");
    let watch = [
        "watch",
        "--once",
        "--state-dir",
        host.0.path().to_str().unwrap(),
        "--json",
        written.to_str().unwrap(),
    ];
    let cause = |account: &[&str]| {
        // The survey has the time of this file.
        fs::write(path("proc/uptime"), "900000.00 1000000.00\n").unwrap();
        host.run(&[&watch, account].concat());
        let watched: Value = serde_json::from_slice(&fs::read(&written).unwrap()).unwrap();
        assert_eq!(
            watched["strangers"].as_array().unwrap().len(),
            usize::from(account.is_empty())
        );
        watched["instances"][0]["cause"].as_str().map(str::to_owned)
    };
    let account = ["--service-account", "1000"];
    assert_eq!(cause(&account).as_deref(), Some("pool_taken"));
    let free = "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fs::write(path(free), "8000\n").unwrap();
    assert_eq!(
        [cause(&account).as_deref(), cause(&[]).as_deref()],
        [Some("pool_taken"), None]
    );
}

#[test]
fn print_every_fixture() {
    for entry in fs::read_dir(fixture(""))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
    {
        let document = json(&run(&entry.path(), &["status", "--format", "json"]));
        assert_eq!(document["instances"], Value::Array(Vec::new()), "{entry:?}");
        assert!(
            document["pools"].is_array() && document["verdict"].is_string(),
            "{entry:?}"
        );
        assert_eq!(
            status(&run(&entry.path(), &["check"])),
            UNKNOWN,
            "no instance: {entry:?}"
        );
        assert!(
            stdout(&run(&entry.path(), &["metrics"])).ends_with("# EOF\n"),
            "{entry:?}"
        );
        if document["pools"] == Value::Array(Vec::new()) {
            assert!(
                stdout(&run(&entry.path(), &["size"])).contains("no huge page pools"),
                "{entry:?}"
            );
        }
    }
}

/// What the command line names and is not there is an error, and what may not be read is not called absent.
#[test]
fn absent_and_unreadable() {
    let host = Host::with_server(HUGE, "on", 4);
    let path = |name: &str| host.0.path().join(name);
    let unknown = |arguments: &[&str], why: &str| {
        let answer = host.run(arguments);
        let said = format!(
            "{}{}",
            stdout(&answer),
            String::from_utf8_lossy(&answer.stderr)
        );
        assert_eq!(status(&answer), UNKNOWN, "{arguments:?}: {said}");
        assert!(
            said.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(why),
            "{arguments:?}: {said}"
        );
    };
    fs::create_dir_all(path("etc")).unwrap();
    fs::write(
        path("etc/passwd"),
        "alice:x:1000:1000::/home/alice:/bin/sh\n",
    )
    .unwrap();
    for command in ["status", "check", "size", "metrics"] {
        unknown(
            &[command, "--service-account", "bob"],
            "has no user \"bob\" of --service-account",
        );
    }
    assert_eq!(
        status(&host.run(&[
            "status",
            "--service-account",
            "alice",
            "--service-account",
            "4711"
        ])),
        OK
    );
    assert_eq!(status(&host.run(&["size"])), OK);
    unknown(
        &["size", "--postgresql-data", "/srv/none"],
        "/srv/none: it is not a PostgreSQL data directory",
    );
    for directory in ["srv/closed", "var/lib/pgsql/data"] {
        fs::create_dir_all(path(directory)).unwrap();
        // Root may read everything but this.
        symlink("PG_VERSION", path(directory).join("PG_VERSION")).unwrap();
    }
    unknown(
        &["size", "--postgresql-data", "/srv/closed"],
        "/srv/closed: whether it is a data directory is unknown",
    );
    unknown(
        &["size"],
        "var/lib/pgsql/data: whether it is a data directory is unknown",
    );
}

/// A tree is left as it is.
/// A unit with LimitDATA= leaves readers less than they would have.
#[test]
fn little_memory_is_enough_for_readers() {
    let limited = "ulimit -d 40000 && exec \"$0\" --root \"$1\" status";
    let arguments = [
        env!("CARGO_BIN_EXE_hugepage-sidecar").into(),
        fixture("two-nodes"),
    ];
    let output = Command::new("sh")
        .args(["-c", limited])
        .args(arguments)
        .output()
        .unwrap();
    assert!(!stdout(&output).contains("were not read"), "{output:?}");
}

#[test]
fn watch_on_a_tree() {
    let host = Host::with_server(HUGE, "on", 4);
    assert_eq!(status(&host.run(&["watch"])), USAGE);
    let files = |directory: &Path| {
        let found = Command::new("find").arg(directory).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    let before = files(host.0.path());
    assert_eq!(status(&host.run(&["watch", "--once"])), OK);
    assert_eq!(files(host.0.path()), before);
}

#[test]
fn check_says_why_the_state_is_unknown() {
    let host = Host::with_server(HUGE, "on", 0);
    let maps = host.0.path().join("proc/7/maps");
    fs::remove_file(&maps).unwrap();
    fs::create_dir(maps).unwrap();
    let status = json(&host.run(&["status", "--format", "json"]));
    let why = status["instances"][0]["notes"][0].as_str().unwrap();
    let check = host.run(&["check"]);
    assert!(
        stdout(&check).contains(&format!(" ({why}) |")),
        "{why}\n{}",
        stdout(&check)
    );
}

#[test]
fn check_says_that_processes_are_hidden_and_where_to_run_it() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("proc/self/ns")).unwrap();
    fs::write(
        tree.path().join("proc/meminfo"),
        "MemTotal: 16777216 kB\nHugepagesize: 2048 kB\n",
    )
    .unwrap();
    let line = |arguments: &[&str]| {
        let output = run(tree.path(), arguments);
        (status(&output), stdout(&output).to_owned())
    };
    assert!(
        line(&["check"])
            .1
            .starts_with("HUGEPAGES UNKNOWN - No PostgreSQL and no Oracle instance runs here. |")
    );
    symlink("pid:[4026532201]", tree.path().join("proc/self/ns/pid")).unwrap();
    let (exit, text) = line(&["check"]);
    assert_eq!(exit, UNKNOWN);
    assert!(
        text.contains(
            "could not be determined: this container shows no processes of the host. Run this on the host. |"
        )
    );
    let (exit, text) = line(&["check", "--instance", "/data"]);
    assert_eq!(exit, UNKNOWN);
    assert!(text.contains(
        "whether instance /data runs could not be determined: run this on the host as root"
    ));
    assert_eq!(line(&["status"]).0, UNKNOWN);
}
