//! Pools of exactly what a start asks for, and pools that System V segments hold which nobody has attached.

use hugepage_assess::advice;
use hugepage_assess::assessment::Outlook;
use hugepage_kernel::Pages;

use crate::builder::*;

const HEAD: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
                    atime      dtime      ctime                   rss                  swap\n";

/// A segment with this id and owner, of so many pages of 2 MB.
fn segment(id: u32, pages: u64, nattch: u32, uid: u32) -> String {
    format!(
        "-291814688 {id} 1600 {} 4103 9120 {nattch} {uid} {uid} {uid} {uid} 0 0 0 0 0\n",
        pages * 2 * MIB
    )
}

fn parameters(sga: &str) -> Vec<String> {
    vec![
        "use_large_pages = \"ONLY\"".to_owned(),
        format!("sga_target = {sga}"),
    ]
}

/// A host of 24 GB whose instance of 16 GB was killed, beside these segments.
fn killed(pool: (u64, u64), segments: &str) -> OracleHost {
    let host = OracleHost::new(KERNELS[3], 24, pool);
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:Y\n"));
    host.write("/proc/sysvipc/shm", &format!("{HEAD}{segments}"));
    let failed = LoggedStart {
        parameters: parameters("16G"),
        table: vec![("2048K", Some(57), 8193, 0)],
        pmon: None,
        errors: vec!["ORA-27106: system pages not available to allocate memory"],
        ..LoggedStart::default()
    };
    host.log("orcl", "orcl", &host.start(&failed));
    host
}

#[test]
fn segments_that_nobody_has_attached_hold_a_pool() {
    let own = segment(4, 8184, 0, 54321) + &segment(5, 9, 0, 54321);
    let remove = "To free the pool run \"ipcrm -m 4 -m 5\", then start the instance.";
    let ask = "To free the pool ask the owners of the segments that no process has attached (\"ipcs -m\") whether these may \
               go, then start the instance.";
    let beside = |sid: &'static str, uid: u32| Running {
        sid,
        uid,
        segments: vec![(64 * MIB, 4)],
        ..Running::default()
    };
    for (what, segments, running, hint) in [
        ("of a killed instance", own.clone(), None, remove),
        (
            "beside an instance of another user",
            own.clone(),
            Some(beside("+ASM", 54322)),
            remove,
        ),
        (
            "beside an instance of the user",
            own.clone(),
            Some(beside("other", 54321)),
            ask,
        ),
        ("of another program", segment(4, 8193, 0, 60001), None, ask),
    ] {
        let host = killed((8250, 57), &segments);
        if let Some(running) = &running {
            host.run(running);
        }
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let sizing = sizing(&survey);
        assert_eq!(down.outlook(), Outlook::Fails, "{what}");
        assert_eq!(
            down.hint(std::slice::from_ref(&sizing)).as_deref(),
            Some(hint),
            "{what}"
        );
        assert_eq!(sizing.recommended, Some(Pages(8250)), "{what}");
        let notes = survey.notes.join("\n");
        assert!(notes.contains("segment 4 (1"), "{what}: {notes}");
        assert!(
            notes.contains("key 0xee9b42e0") && notes.contains("last process 9120"),
            "{what}: {notes}"
        );
    }
}

/// Segments that are attached, and segments for which the pool has no pages in use.
#[test]
fn segments_that_hold_no_pool() {
    for (what, pool, segments) in [
        ("attached", (8250, 57), segment(4, 8193, 20, 54321)),
        ("in base pages", (57, 57), segment(4, 8193, 0, 54321)),
        ("too large", (8250, 57), segment(4, 8194, 0, 54321)),
    ] {
        let survey = killed(pool, &segments).survey();
        let hint = stopped(&survey, "orcl").hint(&[sizing(&survey)]);
        assert!(hint.is_none_or(|hint| !hint.contains("ipc")), "{what}");
        let notes = survey.notes.join("\n");
        assert!(!notes.contains("segment"), "{what}: {notes}");
    }
}

/// EXPECTED_PAGES is all that the same start asks for. What parameters alone tell is not exact.
#[test]
fn a_pool_of_exactly_what_is_expected() {
    for (sga, pool, outlook) in [
        ("4G", 2048, Outlook::Fails),
        ("4G", 2049, Outlook::Hugetlb),
        ("8G", 4095, Outlook::Fails),
        ("8G", 4096, Outlook::Unknown),
        ("8G", 4099, Outlook::Unknown),
        ("8G", 4100, Outlook::Hugetlb),
    ] {
        let host = OracleHost::new(KERNELS[3], 64, (pool, pool));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("orcl:{DB_HOME}:Y\n"));
        let start = LoggedStart {
            parameters: parameters("4G"),
            table: vec![("2048K", Some(2049), 2049, 2049)],
            ..LoggedStart::default()
        };
        host.log("orcl", "orcl", &host.start(&start));
        let next = format!("*.sga_target={sga}\n*.use_large_pages='ONLY'\n");
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &next);
        let survey = host.survey();
        assert_eq!(
            stopped(&survey, "orcl").outlook(),
            outlook,
            "{sga} in {pool}"
        );
        if pool < 2049 {
            continue;
        }
        // The running instance asks for what its parameters say by now.
        let used = pool.min(2049);
        host.pool(2048, pool, pool - used);
        host.run(&Running {
            segments: vec![(used * 2 * MIB, 2048)],
            ..Running::default()
        });
        let survey = host.survey();
        let of_restart = running(&survey, "orcl").status.forecast.outlook;
        assert_eq!(of_restart, outlook, "{sga} in {pool}, running");
    }
}

/// A segment of less than a huge page stays in base pages.
#[test]
fn a_small_segment_needs_no_huge_page() {
    let host = OracleHost::new(KERNELS[3], 16, (2033, 2033));
    host.run(&Running {
        segments: vec![(2033 * 2 * MIB, 4), (20 << 10, 4)],
        ..Running::default()
    });
    let survey = host.survey();
    let status = &running(&survey, "orcl").status;
    assert_eq!(status.crash.needed, Some(Pages(2033)));
    assert_eq!(
        status.forecast.outlook,
        Outlook::Hugetlb,
        "{:?}",
        advice::hint(status)
    );
}
