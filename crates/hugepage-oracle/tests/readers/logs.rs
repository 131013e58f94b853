//! What each log says.

use hugepage_assess::model::LockLimit;
use hugepage_kernel::Bytes;
use hugepage_oracle::readers::startup::{failed, is_of, refusal};

use super::*;

/// The logs with all facts that are in them.
const LOGS: [(&str, &[&str]); 19] = [
    (
        "11.2.0.1-amm.log",
        &[
            "mode normal",
            "dev_shm 512 MB",
            "error MEMORY_TARGET needs 512 MB in /dev/shm",
        ],
    ),
    (
        "11.2.0.3-no-pool.log",
        &["mode normal", "row 2 MB 0 ? 0", "landed Base"],
    ),
    (
        "11.2.0.3-only-refused.log",
        &[
            "at 2012-04-17T11:02:03Z",
            "mode normal",
            "row 2 MB 100 401 0",
            "error Failed to allocate shared global region with large pages, unix errno = 12.",
            "error ORA-27137: unable to allocate Large Pages to create a shared memory segment",
            "landed Base",
            "expected 401 of 2 MB",
        ],
    ),
    (
        "11.2.0.3-pool-taken.log",
        &[
            "mode normal",
            "row 2 MB 0 267 0",
            "landed Base",
            "expected 267 of 2 MB",
        ],
    ),
    (
        "11.2.0.3-shmall.log",
        &["os_error 28", "error ORA-27102: out of memory"],
    ),
    (
        "11.2.0.4-all-40gb.log",
        &[
            "memlock 100 GB",
            "row 2 MB 20481 20481 20481",
            "landed Hugetlb",
            "expected 20481 of 2 MB",
        ],
    ),
    (
        "11.2.0.4-all.log",
        &[
            "memlock unlimited",
            "row 2 MB 76827 76801 76801",
            "landed Hugetlb",
            "expected 76801 of 2 MB",
        ],
    ),
    (
        "11.2.0.4-memlock.log",
        &[
            "at 2026-11-10T02:16:40Z",
            "mode normal",
            "pmon 4352",
            "version 11.2.0.4.0",
            "memlock 64 kB",
            "row 2 MB 2050 451 0",
            "landed Base",
            "expected 451 of 2 MB",
        ],
    ),
    (
        "11.2.0.4-start.log",
        &[
            "at 2015-03-02T08:12:30Z",
            "mode normal",
            "pmon 4352",
            "version 11.2.0.4.0",
            "parameter_file /u01/app/oracle/product/11.2.0.4/dbhome_1/dbs/spfileprod.ora",
            "sga_max_size 1200 MB",
            "memlock 8 GB",
            "row 2 MB 512 601 512",
            "landed Mixed",
            "expected 601 of 2 MB",
        ],
    ),
    ("12.1-cut.log", &["at 2015-08-12T09:26:27Z", "mode normal"]),
    (
        "12.1-table.log",
        &[
            "row 4 kB base 4 786436",
            "row 2 MB 0 1537 0",
            "landed Base",
            "expected 1537 of 2 MB",
        ],
    ),
    (
        "12.2-no-table.log",
        &["at 2018-07-30T15:21:00Z", "unix 1532982060", "mode normal"],
    ),
    (
        "18.4-none.log",
        &[
            "at 2020-03-24T00:34:05Z",
            "unix 1585010045",
            "mode normal",
            "memlock 64 kB",
            "row 4 kB base 3 393219",
            "row 2 MB 0 769 0",
            "landed Base",
            "expected 769 of 2 MB",
        ],
    ),
    (
        "19.22-all.log",
        &[
            "at 2024-02-11T04:00:01Z",
            "unix 1707620401",
            "mode normal",
            "pmon 1211",
            "version 19.22.0.0.0",
            "parameter_file +DATA/CDB1/PARAMETERFILE/spfile.270.1130000001",
            "use_large_pages TRUE",
            "sga_max_size 4 GB",
            "memlock 128 GB",
            "row 4 kB base 5 5",
            "row 2 MB 3000 2049 2049",
            "row 1 GB 0 0 0",
            "landed Hugetlb",
            "expected 2049 of 2 MB",
            "expected 0 of 1 GB",
        ],
    ),
    (
        "19.22-mixed.log",
        &[
            "at 2024-02-11T04:00:01Z",
            "unix 1707620401",
            "mode normal",
            "pmon 1211",
            "version 19.22.0.0.0",
            "parameter_file +DATA/CDB1/PARAMETERFILE/spfile.270.1130000001",
            "use_large_pages TRUE",
            "sga_max_size 4 GB",
            "memlock 64 kB",
            "row 4 kB base 5 524293",
            "row 2 MB 1025 2049 1025",
            "landed Mixed",
            "expected 2049 of 2 MB",
        ],
    ),
    (
        "19.22-no-process.log",
        &[
            "at 2026-11-10T02:16:40Z",
            "unix 1794277000",
            "mode normal",
            "pmon 600",
            "memlock unlimited",
            "row 4 kB base 5 5",
            "row 2 MB 7600 769 769",
            "os_error 12",
            "error ORA-27300: OS system dependent operation:fork failed with status: 12",
            "error ORA-27301: OS failure message: Cannot allocate memory",
            "error ORA-27302: failure occurred at: skgpspawn3",
            "error USER (ospid: 512): terminating the instance due to ORA error 27300",
            "landed Hugetlb",
            "expected 769 of 2 MB",
        ],
    ),
    (
        "19.22-only.log",
        &[
            "at 2024-02-11T04:00:01Z",
            "unix 1707620401",
            "mode normal",
            "pmon 1211",
            "version 19.22.0.0.0",
            "parameter_file +DATA/CDB1/PARAMETERFILE/spfile.270.1130000001",
            "use_large_pages ONLY",
            "sga_max_size 4 GB",
            "memlock unlimited",
            "row 2 MB 2361 2049 2049",
            "landed Hugetlb",
            "expected 2049 of 2 MB",
        ],
    ),
    (
        "19.27-exadata.log",
        &[
            "use_large_pages FALSE",
            "error use_large_pages = FALSE is not a supported setting for database on Exadata",
        ],
    ),
    (
        "23ai-cut.log",
        &[
            "at 2024-12-11T12:39:36Z",
            "unix 1733920776",
            "mode normal",
            "memlock 64 kB",
        ],
    ),
];

#[test]
fn every_log_says_just_this() {
    assert_eq!(names(), LOGS.map(|(name, _)| name));
    for (name, expected) in LOGS {
        let found = last_start(&log(name)).map(|start| facts(&start));
        assert_eq!(found.unwrap_or_default(), expected, "{name}");
    }
}

/// An old log beside a new instance must not pass for its own.
#[test]
fn whether_a_start_is_that_of_the_running_instance() {
    // 2024-02-11 04:00:01 +01:00, and 2015-03-02 08:12:30 in an unknown zone with PMON 4352.
    let (with_zone, without) = (1_707_620_401, 1_425_283_950);
    for (name, pmon, started, expected) in [
        ("19.22-all.log", 1211, with_zone + 2, true),
        ("19.22-all.log", 7, with_zone + 600, true),
        ("19.22-all.log", 1211, with_zone + 7200, false),
        ("19.22-all.log", 1211, with_zone - 600, false),
        ("11.2.0.4-start.log", 4352, without + 3, true),
        ("11.2.0.4-start.log", 4352, without - 5 * 3600, true),
        ("11.2.0.4-start.log", 4352, without + 86400, false),
        ("11.2.0.4-start.log", 4353, without + 3, false),
    ] {
        let start = last_start(&log(name)).unwrap();
        assert_eq!(
            is_of(&start, pmon, started),
            expected,
            "{name} {pmon} {started}"
        );
    }
}

/// The block of 11.2 tells as much of memlock as the table of later releases.
#[test]
fn a_refusal_in_the_block_of_11_2() {
    let start = last_start(&log("11.2.0.4-memlock.log")).unwrap();
    let limit = Bytes(64 << 10);
    let others = Bytes(0);
    let refused = refusal(&start, Bytes(902 << 20));
    assert_eq!(refused, Some(LockLimit::Memlock { limit, others }));
    assert!(!failed(&start));
    assert!(failed(&last_start(&log("19.22-no-process.log")).unwrap()));
    assert!(failed(
        &last_start(&log("11.2.0.3-only-refused.log")).unwrap()
    ));
}
