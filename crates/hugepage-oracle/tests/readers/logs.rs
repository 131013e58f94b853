//! What each log says.

use super::*;

/// The logs with all facts that are in them.
const LOGS: [(&str, &[&str]); 17] = [
    (
        "11.2.0.1-amm.log",
        &["mode normal", "dev_shm 512 MB", "error MEMORY_TARGET needs 512 MB in /dev/shm, which had 505 MB"],
    ),
    ("11.2.0.3-no-pool.log", &["mode normal"]),
    (
        "11.2.0.3-only-refused.log",
        &[
            "at Tue Apr 17 11:02:03 2012",
            "mode normal",
            "error Failed to allocate shared global region with large pages, unix errno = 12.",
            "error ORA-27137: unable to allocate Large Pages to create a shared memory segment",
        ],
    ),
    ("11.2.0.3-pool-taken.log", &["mode normal"]),
    ("11.2.0.3-shmall.log", &["refused 26 GB", "error ORA-27102: out of memory"]),
    ("11.2.0.4-all-40gb.log", &["memlock 100 GB"]),
    ("11.2.0.4-all.log", &["memlock unlimited"]),
    (
        "11.2.0.4-start.log",
        &[
            "at Mon Mar 02 08:12:30 2015",
            "mode normal",
            "pmon 4352",
            "version 11.2.0.4.0",
            "parameter_file /u01/app/oracle/product/11.2.0.4/dbhome_1/dbs/spfileprod.ora",
            "sga_max_size 1200 MB",
            "memlock 8 GB",
        ],
    ),
    ("12.1-cut.log", &["at Wed Aug 12 09:26:27 2015", "mode normal"]),
    ("12.1-table.log", &["row 4 kB base 4 786436", "row 2 MB 0 1537 0", "landed Base", "expected 1537 of 2 MB"]),
    ("12.2-no-table.log", &["at 2018-07-30T15:21:00.796201-05:00", "unix 1532982060", "mode normal"]),
    (
        "18.4-none.log",
        &[
            "at 2020-03-24T00:34:05.482917+00:00",
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
            "at 2024-02-11T04:00:01.200300+01:00",
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
            "at 2024-02-11T04:00:01.200300+01:00",
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
        "19.22-only.log",
        &[
            "at 2024-02-11T04:00:01.200300+01:00",
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
            "error use_large_pages = FALSE is not a supported setting for database on Exadata: suggested values are AUTO_ONLY or ONLY",
        ],
    ),
    ("23ai-cut.log", &["at 2024-12-11T12:39:36.960155+00:00", "unix 1733920776", "mode normal", "memlock 64 kB"]),
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
        ("19.22-all.log", 1211, with_zone + 2, Some(true)),
        ("19.22-all.log", 7, with_zone + 600, Some(true)),
        ("19.22-all.log", 1211, with_zone + 7200, Some(false)),
        ("19.22-all.log", 1211, with_zone - 600, Some(false)),
        ("11.2.0.4-start.log", 4352, without + 3, Some(true)),
        ("11.2.0.4-start.log", 4352, without - 5 * 3600, Some(true)),
        ("11.2.0.4-start.log", 4352, without + 86400, Some(false)),
        ("11.2.0.4-start.log", 4353, without + 3, None),
    ] {
        let start = last_start(&log(name)).unwrap();
        assert_eq!(start.is_of(pmon, started), expected, "{name} {pmon} {started}");
    }
}
