//! Installations as trees of files: where logs and parameters are found, and what stands in the way.

use std::os::unix::fs::symlink;

use hugepage_facts::OracleKind;
use hugepage_kernel::{Bytes, Notes};
use hugepage_oracle::readers::parameters::{read, size};
use hugepage_oracle::readers::{self, OracleInstance, Search, locate, oratab};

use super::*;

const BASE: &str = "u01/app/oracle";
const HOME: &str = "/u01/app/oracle/product/19.0.0/dbhome_1";

fn instance(kind: OracleKind, sid: &str) -> OracleInstance {
    OracleInstance {
        kind,
        sid: sid.to_owned(),
    }
}

fn search<'a>(instance: &'a OracleInstance, home: &'a str) -> Search<'a> {
    Search {
        instance,
        home: Some(home),
        diagnostic_dest: None,
        pmon: None,
    }
}

/// The alert log that is found, and the notes.
fn alert_log_of(root: &Root, search: &Search) -> (Option<String>, Vec<String>) {
    let mut notes = Notes::default();
    let found = search.alert_log(&InstanceFiles::own(root), &mut notes);
    (found, notes.into_vec())
}

#[test]
fn alert_logs_of_all_kinds() {
    let grid = "/u01/app/19.0.0/grid";
    let paths = [
        "u01/app/oracle/diag/rdbms/orcl/orcl1/trace/alert_orcl1.log",
        "u01/app/oracle/diag/rdbms/my_db/my_db/trace/alert_my_db.log",
        "u01/app/grid/diag/asm/+asm/+ASM1/trace/alert_+ASM1.log",
        "u01/app/grid/diag/rdbms/_mgmtdb/-MGMTDB/trace/alert_-MGMTDB.log",
        "u01/app/grid/diag/apx/+apx/+APX1/trace/alert_+APX1.log",
        "home/log/diag/rdbms/lone/lone/trace/alert_lone.log",
        "u02/diag/rdbms/far/far/trace/alert_far.log",
        "listed/base/diag/rdbms/tab/tab/trace/alert_tab.log",
    ];
    let mut files: Vec<_> = paths.map(|path| (path, "")).to_vec();
    files.push((
        "opt/oracle/install/orabasetab",
        "#comment\n/opt/oracle:/listed/base:OraHome1:N:\n",
    ));
    let (_directory, root) = tree(&files);
    for (kind, sid, home, place) in [
        (OracleKind::Database, "orcl1", HOME, Some(0)),
        (OracleKind::Database, "my_db", HOME, Some(1)),
        (OracleKind::Asm, "+ASM1", grid, Some(2)),
        (OracleKind::ManagementDatabase, "-MGMTDB", grid, Some(3)),
        (OracleKind::AsmProxy, "+APX1", grid, Some(4)),
        (OracleKind::Database, "lone", "/home", Some(5)),
        (OracleKind::Database, "tab", "/opt/oracle", Some(7)),
        (OracleKind::Database, "none", HOME, None),
        (OracleKind::Database, "orcl1", "/nowhere", None),
    ] {
        let instance = instance(kind, sid);
        let (found, notes) = alert_log_of(&root, &search(&instance, home));
        assert_eq!(
            found,
            place.map(|place: usize| format!("/{}", paths[place])),
            "{sid}"
        );
        assert_eq!(notes, [""; 0], "{sid}");
    }
    let far = instance(OracleKind::Database, "far");
    let (found, _) = alert_log_of(
        &root,
        &Search {
            diagnostic_dest: Some("/u02"),
            ..search(&far, HOME)
        },
    );
    assert_eq!(found.unwrap(), format!("/{}", paths[6]));
}

#[test]
fn a_log_that_was_cut_is_made_up_for_by_a_rotated_one() {
    let log_path = format!("{BASE}/diag/rdbms/x/x/trace/alert_x.log");
    let rotated = format!("{log_path}.1");
    let whole = String::from_utf8(log("19.22-mixed.log")).unwrap();
    let rest = "2024-03-01T00:00:00+01:00\nThread 1 advanced to log sequence 2\n";
    let table = &whole[whole.find("  PAGESIZE").unwrap()..];
    for (content, with_other, found) in [
        (whole.as_str(), true, Some((&log_path, true))),
        (rest, true, Some((&rotated, true))),
        (table, true, Some((&rotated, true))),
        (table, false, Some((&log_path, false))),
        (rest, false, None),
    ] {
        let files = [
            (log_path.as_str(), content),
            (rotated.as_str(), whole.as_str()),
        ];
        let (_directory, root) = tree(&files[..1 + usize::from(with_other)]);
        let instance = instance(OracleKind::Database, "x");
        let start =
            search(&instance, HOME).last_start(&InstanceFiles::own(&root), &mut Notes::default());
        let start = start.map(|(mut logs, start)| (logs.pop().unwrap(), start.at.is_some()));
        assert_eq!(
            start,
            found.map(|(log, whole)| (format!("/{log}"), whole)),
            "{with_other} {content}"
        );
    }
}

/// A database that was renamed leaves its old log behind.
#[test]
fn of_two_logs_of_one_sid_the_later_counts() {
    let (old, new) = (
        "diag/rdbms/a/x/trace/alert_x.log",
        "diag/rdbms/b/x/trace/alert_x.log",
    );
    for (old, new) in [(old, new), (new, old)] {
        let (directory, root) = tree(&[
            (&format!("{BASE}/{old}"), ""),
            (&format!("{BASE}/{new}"), ""),
        ]);
        let file = fs::File::open(directory.path().join(BASE).join(old)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        let instance = instance(OracleKind::Database, "x");
        assert_eq!(
            alert_log_of(&root, &search(&instance, HOME)).0.unwrap(),
            format!("/{BASE}/{new}")
        );
    }
}

/// To root, what PMON has open tells the place.
#[test]
fn an_open_file_leads_to_a_log_anywhere() {
    let (directory, root) = tree(&[
        ("proc/77/fd/", ""),
        ("odd/place/diag/rdbms/q/my_db/trace/alert_my_db.log", ""),
    ]);
    for (name, target) in [
        ("0", "/dev/null"),
        ("5", "/odd/place/diag/rdbms/q/my_db/trace/my_db_pmon_77.trc"),
    ] {
        symlink(target, directory.path().join("proc/77/fd").join(name)).unwrap();
    }
    let instance = instance(OracleKind::Database, "my_db");
    let search = Search {
        instance: &instance,
        home: None,
        diagnostic_dest: None,
        pmon: Some((&root, 77)),
    };
    let (found, notes) = alert_log_of(&root, &search);
    assert_eq!(
        found.unwrap(),
        "/odd/place/diag/rdbms/q/my_db/trace/alert_my_db.log"
    );
    assert_eq!(notes, [""; 0]);
}

#[test]
fn what_stands_in_the_way_is_passed_by_and_never_waited_for() {
    let (directory, root) = tree(&[
        ("u01/app/oracle/diag/rdbms/a/", ""),
        ("u01/app/oracle/diag/asm", "a file"),
    ]);
    let below = directory.path().join("u01/app/oracle/diag/rdbms");
    symlink("..", below.join("up")).unwrap();
    symlink("loop", below.join("loop")).unwrap();
    symlink("/nowhere", below.join("lost")).unwrap();
    fs::create_dir_all(below.join("a/x/trace")).unwrap();
    let log = below.join("a/x/trace/alert_x.log");
    let status = std::process::Command::new("mkfifo")
        .arg(&log)
        .status()
        .unwrap();
    assert!(status.success());
    let database = instance(OracleKind::Database, "x");
    assert_eq!(
        alert_log_of(&root, &search(&database, HOME)),
        (None, Vec::new())
    );
    // Asked for all the same, it is refused.
    let error = readers::last_start(
        &InstanceFiles::own(&root),
        "/u01/app/oracle/diag/rdbms/a/x/trace/alert_x.log",
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("alert_x.log\": it is not a regular file"),
        "{error}"
    );
    let error = readers::last_start(
        &InstanceFiles::own(&root),
        "/u01/app/oracle/diag/rdbms/loop",
    )
    .unwrap_err();
    // Each C library has its own words.
    assert!(
        error.to_string().to_lowercase().contains("symbolic link"),
        "{error}"
    );
    let asm = instance(OracleKind::Asm, "+ASM");
    let (found, notes) = alert_log_of(&root, &search(&asm, HOME));
    assert_eq!((found, notes.len()), (None, 1), "{notes:?}");
    assert!(notes[0].contains("could not list"), "{notes:?}");
}

#[test]
fn parameter_files_in_the_order_of_a_start() {
    let instance = instance(OracleKind::Database, "T1");
    let files =
        ["spfileT1.ora", "spfile.ora", "initT1.ora"].map(|name| format!("{HOME}/dbs/{name}"));
    let base = format!("/{BASE}/dbs/spfileT1.ora");
    for present in 0..16_usize {
        // A read-only home has what was left in its dbs before.
        let all = [&base].into_iter().chain(&files).enumerate();
        let there: Vec<_> = all
            .filter(|(bit, _)| present & (1 << bit) != 0)
            .map(|(_, path)| path)
            .collect();
        let tree_of: Vec<_> = there.iter().map(|path| (&path[1..], "x=1")).collect();
        let (_directory, root) = tree(&tree_of);
        let found = search(&instance, HOME)
            .parameter_file(&InstanceFiles::own(&root), &mut Notes::default());
        assert_eq!(found.as_ref(), there.first().copied());
    }
}

#[test]
fn parameters_with_the_files_that_they_name() {
    let (_directory, root) = tree(&[
        (
            "dbs/initT1.ora",
            "ifile=/dbs/common.ora\nsga_target=3G\nspfile='+DATA/T1/spfileT1.ora'\n",
        ),
        (
            "dbs/common.ora",
            "sga_target=1G\nsga_max_size=2G\nT1.pre_page_sga=true\nifile='/dbs/common.ora'\n",
        ),
        ("dbs/long.ora", &"x".repeat(3 << 20)),
        ("dbs/a.ora", &"ifile=/dbs/b.ora\n".repeat(2000)),
        ("dbs/b.ora", &"ifile=/dbs/c.ora\n".repeat(2000)),
        (
            "dbs/c.ora",
            &"ifile=/dbs/a.ora\nifile=/dbs/b.ora\n".repeat(1000),
        ),
    ]);
    let mut notes = Notes::default();
    let found = read(
        &InstanceFiles::own(&root),
        "/dbs/initT1.ora",
        "T1",
        &mut notes,
    );
    assert_eq!(
        (size(&found, "sga_max_size"), found.get("pre_page_sga")),
        (Some(Bytes(2 * GIB)), Some("true"))
    );
    assert_eq!(
        size(&found, "sga_target"),
        Some(Bytes(3 * GIB)),
        "behind ifile"
    );
    let notes = notes.into_vec();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("\"+DATA/T1/spfileT1.ora\" is in ASM")),
        "{notes:?}"
    );
    for named in ["/dbs/none", "?/dbs/common.ora", "common.ora"] {
        let text = format!("sga_target=3G\nifile={named}\nsga_target=4G\n");
        let (_directory, root) = tree(&[
            ("dbs/initT2.ora", &text),
            ("dbs/common.ora", "sga_target=5G\n"),
        ]);
        let mut notes = Notes::default();
        assert!(
            read(
                &InstanceFiles::own(&root),
                "/dbs/initT2.ora",
                "T2",
                &mut notes
            )
            .is_empty(),
            "{named}"
        );
        assert!(
            notes
                .into_vec()
                .iter()
                .any(|note| note.contains(&format!("\"{named}\" is not read"))),
            "{named}"
        );
    }
    // Each is read once, though each names another thousands of times.
    let mut notes = Notes::default();
    assert!(!read(&InstanceFiles::own(&root), "/dbs/a.ora", "T1", &mut notes).is_empty());
    assert_eq!(notes.into_vec(), [""; 0]);
    let mut notes = Notes::default();
    assert!(
        read(
            &InstanceFiles::own(&root),
            "/dbs/long.ora",
            "T1",
            &mut notes
        )
        .is_empty()
    );
    assert!(notes.into_vec()[0].contains("it is longer than 1048576 bytes"));
}

#[test]
fn oratab_in_both_places() {
    let (_directory, root) = tree(&[
        ("etc/oratab", "a:/u01/a:Y"),
        ("var/opt/oracle/oratab", "a:/u02/a:N\nb:/u02/b:N\n"),
    ]);
    let mut notes = Notes::default();
    let found: Vec<_> = oratab::read(&root, &mut notes)
        .into_iter()
        .map(|entry| (entry.sid, entry.home))
        .collect();
    assert_eq!(
        found,
        [("a", "/u01/a"), ("b", "/u02/b")].map(|(sid, home)| (sid.to_owned(), home.to_owned()))
    );
    assert_eq!(notes.into_vec(), [""; 0]);
    let (_directory, root) = tree(&[("etc/oratab/", "")]);
    let mut notes = Notes::default();
    assert_eq!(oratab::read(&root, &mut notes), []);
    assert!(notes.into_vec()[0].ends_with("etc/oratab\": it is not a regular file"));
}

#[test]
fn bases_of_a_home() {
    let (_directory, root) = tree(&[
        ("u01/app/oracle/diag/", ""),
        ("u01/app/oraInventory/logs/", ""),
    ]);
    let bases = |home| locate::bases(&InstanceFiles::own(&root), home, &mut Notes::default());
    assert_eq!(bases("/u01/app/19.0.0/grid"), ["/u01/app/oracle"]);
    assert_eq!(bases(HOME), ["/u01/app/oracle"]);
    assert_eq!(bases("/home"), [""; 0]);
}
