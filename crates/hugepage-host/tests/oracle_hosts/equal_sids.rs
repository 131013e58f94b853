//! Several instances of one host with the same SID: in containers, or in several Oracle homes.

use std::fs;

use crate::builder::*;

const OTHER_HOME: &str = "/u01/app/oracle/product/12.2.0/dbhome_1";

/// Two instances with one SID, PMON 4000 and 5000, each with a server process; of 100 and 900 kB of page tables a process.
fn two(homes: [&str; 2]) -> OracleHost {
    let host = OracleHost::new(KERNELS[1], 64, (2000, 0));
    for (pid, home, page_tables, size) in
        [(4000, homes[0], 100, GIB), (5000, homes[1], 900, 2 * GIB)]
    {
        host.run(&Running {
            pid,
            home,
            page_tables,
            segments: vec![(size, 2048)],
            ..Running::default()
        });
    }
    host
}

/// Per PMON: its processes and their page tables in kB, or that they are not known.
fn counted(host: &OracleHost) -> Vec<(i32, u64, Option<u64>)> {
    let survey = host.survey();
    let of = |tables: &hugepage_facts::PageTables| tables.total.map(|total| total.0 >> 10);
    survey
        .instances
        .iter()
        .map(|one| {
            (
                one.id.pid,
                one.memory.page_tables.processes,
                of(&one.memory.page_tables),
            )
        })
        .collect()
}

const APART: [(i32, u64, Option<u64>); 2] = [(4000, 2, Some(200)), (5000, 2, Some(1800))];

#[test]
fn by_the_home() {
    assert_eq!(counted(&two([DB_HOME, OTHER_HOME])), APART);
}

#[test]
fn by_each_of_the_namespaces() {
    for numbers in [[1, 9, 9], [9, 1, 9], [9, 9, 1]] {
        let host = two([DB_HOME, DB_HOME]);
        host.namespaces(4000, [9, 9, 9]);
        host.namespaces(5000, numbers);
        // The same segment number in both, as containers have it.
        assert_eq!(counted(&host), APART, "{numbers:?}");
    }
}

/// Neither namespaces nor programs are visible, as without privilege: no number is invented.
#[test]
fn unknown_where_nothing_tells() {
    let host = two([DB_HOME, DB_HOME]);
    for pid in [4000, 4001, 5000, 5001] {
        fs::remove_file(host.path(&format!("/proc/{pid}/exe"))).unwrap();
    }
    assert_eq!(counted(&host), [(4000, 0, None), (5000, 0, None)]);
    let notes = running(&host.survey(), "orcl").notes.join("; ");
    assert!(
        notes.contains("2 processes are of this instance or of another one with its SID"),
        "{notes}"
    );
    // Of another SID nothing is in doubt.
    host.run(&Running {
        pid: 6000,
        sid: "other",
        ..Running::default()
    });
    assert_eq!(counted(&host)[2], (6000, 2, Some(200)));
}
