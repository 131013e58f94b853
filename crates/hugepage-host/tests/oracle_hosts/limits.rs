//! What the kernel asks of an owner beside pages: memlock, which old kernels count for all of a user's instances, the
//! group of vm.hugetlb_shm_group, or one of the two where only the distribution knows.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_facts::Cause;

use crate::builder::*;

/// An SGA of 4 GB in base pages.
fn in_base(memlock: Option<u64>) -> Running<'static> {
    Running {
        segments: vec![(4 * GIB, 4)],
        memlock,
        ..Running::default()
    }
}

/// All obstacles are named at once, so that no second outage follows.
#[test]
fn memlock_behind_a_short_pool() {
    for kernel in &KERNELS[..4] {
        let host = OracleHost::new(kernel, 16, (100, 100));
        host.run(&in_base(Some(64 << 10)));
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            (status.cause, status.forecast.outlook),
            (Some(Cause::PoolTooSmall), Outlook::Base),
            "{kernel}"
        );
        assert_eq!(
            advice::hint(status).as_deref(),
            Some(
                "Raise the memlock limit of the instance to at least 4194304 kB (LimitMEMLOCK= in a drop-in of oracle-ohasd.service, if it is not there yet), \
                 run \"sysctl -w vm.nr_hugepages=2048\" and restart the instance (MOS 2049901.1). The number counts all servers seen here; `hugepage-sidecar size` counts the whole host."
            )
        );
    }
}

/// The second instance of a user is refused though the limit is larger than its SGA.
#[test]
fn memlock_is_for_all_instances_of_a_user() {
    for (kernel, uid, cause) in [
        (KERNELS[0], 54321, Some(Cause::MemlockLimit)),
        (KERNELS[1], 54321, Some(Cause::MemlockLimit)),
        // Another owner has a limit of its own.
        (KERNELS[1], 54322, Some(Cause::Unknown)),
    ] {
        let host = OracleHost::new(kernel, 64, (5000, 2952));
        host.run(&Running {
            pid: 5000,
            sid: "first",
            segments: vec![(4 * GIB, 2048)],
            memlock: Some(5 * GIB),
            uid,
            ..Running::default()
        });
        host.run(&in_base(Some(5 * GIB)));
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(status.cause, cause, "{kernel} {uid}");
        if cause == Some(Cause::MemlockLimit) {
            let message = advice::message(status);
            assert!(
                message.ends_with(
                    "its memlock limit is 5 GB; 4 GB is needed, beside 4 GB of other instances of its owner."
                ),
                "{message}"
            );
            let hint = advice::hint(status).unwrap();
            assert!(hint.contains("at least 8388608 kB"), "{hint}");
        } else {
            assert_eq!(
                advice::hint(status).as_deref(),
                Some("Restart the instance.")
            );
        }
    }
}

/// Enterprise Linux 9 and SUSE with 5.14: whether memlock is enough is unknown, the group helps in any case.
#[test]
fn a_distribution_that_may_have_the_change() {
    for (kernel, memlock, outlook, cause) in [
        (KERNELS[4], None, Outlook::Unknown, Cause::Unknown),
        (KERNELS[5], Some(8 * GIB), Outlook::Unknown, Cause::Unknown),
        (
            KERNELS[4],
            Some(64 << 10),
            Outlook::Base,
            Cause::MemlockLimit,
        ),
        (KERNELS[3], None, Outlook::Hugetlb, Cause::Unknown),
        (
            "6.12.0-55.9.1.el10_0.x86_64",
            None,
            Outlook::Base,
            Cause::ShmGroup,
        ),
    ] {
        let host = OracleHost::new(kernel, 16, (2048, 2048));
        host.run(&in_base(memlock));
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            (status.forecast.outlook, status.cause),
            (outlook, Some(cause)),
            "{kernel} {memlock:?}"
        );
        let hint = advice::hint(status).unwrap();
        match outlook {
            Outlook::Hugetlb => assert_eq!(hint, "Restart the instance."),
            _ => assert_eq!(
                hint,
                "Run \"sysctl -w vm.hugetlb_shm_group=54321\" and restart the instance."
            ),
        }
        host.write("/proc/sys/vm/hugetlb_shm_group", "54321\n");
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            (status.forecast.outlook, advice::hint(status).as_deref()),
            (Outlook::Hugetlb, Some("Restart the instance."))
        );
    }
}

/// The log's table has pages enough and none taken: a restart alone changes nothing.
#[test]
fn a_start_that_was_refused_its_pages() {
    for (logged_memlock, allocated, outlook, cause, hint) in [
        ("UNLIMITED", 0, Outlook::Unknown, Cause::Unknown, None),
        (
            "64K",
            0,
            Outlook::Base,
            Cause::MemlockLimit,
            Some(
                "at least 4194304 kB (LimitMEMLOCK= in a drop-in of oracle-ohasd.service, if it is not there yet) and restart the instance",
            ),
        ),
        ("UNLIMITED", 1, Outlook::Unknown, Cause::Unknown, None),
    ] {
        let host = OracleHost::new(KERNELS[2], 16, (2100, 2100));
        host.run(&in_base(None));
        let start = LoggedStart {
            parameters: vec![
                "sga_max_size = 4G".to_owned(),
                "use_large_pages = \"TRUE\"".to_owned(),
            ],
            table: vec![
                ("4K", None, 5, 1_048_576),
                ("2048K", Some(2100), 2049, allocated),
            ],
            memlock: logged_memlock,
            ..LoggedStart::default()
        };
        host.log("orcl", "orcl", &host.start(&start));
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        let status = &instance.status;
        assert_eq!(
            (status.forecast.outlook, status.cause, status.verdict().0),
            (outlook, Some(cause), Severity::Warning),
            "{logged_memlock} {allocated}"
        );
        let said = advice::hint(status);
        match hint {
            Some(part) => assert!(
                said.as_ref().is_some_and(|said| said.contains(part)),
                "{said:?}"
            ),
            None => assert_eq!(
                said.as_deref(),
                Some("Read the notes, which name what could not be determined.")
            ),
        }
        let is_noted = instance
            .notes
            .iter()
            .any(|note| note.contains("did not take all of them"));
        assert_eq!(is_noted, hint.is_none(), "{:?}", instance.notes);
    }
}

/// A host whose instance has 4 GB in huge pages, and asks for ONLY these.
fn in_huge_pages_by_only(kernel: &str) -> OracleHost {
    let host = OracleHost::new(kernel, 16, (2052, 0));
    host.run(&Running {
        segments: vec![(4 * GIB + 8 * MIB, 2048)],
        ..Running::default()
    });
    host.write(
        &format!("{DB_HOME}/dbs/initorcl.ora"),
        "*.sga_max_size=4G\n*.use_large_pages='ONLY'\n",
    );
    host
}

/// The next boot sets the group of sysctl.d. One that nothing seen sets may be gone then; a pool that is too small is, for certain.
#[test]
fn a_permission_that_the_next_boot_may_take() {
    const LATER: &str = "6.1.0-18-amd64";
    let none = "vm.swappiness = 1\n";
    for (kernel, group, line, pages, outlook) in [
        (LATER, "54321", none, 2052, Outlook::Unknown),
        (
            LATER,
            "54321",
            "vm.hugetlb_shm_group = 999\n",
            2052,
            Outlook::Unknown,
        ),
        (
            LATER,
            "54321",
            "vm.hugetlb_shm_group = 54321\n",
            2052,
            Outlook::Hugetlb,
        ),
        (LATER, "54321", none, 72, Outlook::Fails),
        // Before 5.18 memlock is enough; between, only the distribution knows.
        (KERNELS[2], "54321", none, 2052, Outlook::Hugetlb),
        (KERNELS[4], "54321", none, 2052, Outlook::Unknown),
        (KERNELS[4], "0", none, 2052, Outlook::Hugetlb),
    ] {
        let host = in_huge_pages_by_only(kernel);
        host.write("/proc/sys/vm/hugetlb_shm_group", group);
        host.write("/proc/cmdline", "ro\n");
        host.write("/run/systemd/system/own.conf", "");
        host.write("/etc/sysctl.d/98-oracle.conf", line);
        host.write("/etc/hugepage-sidecar/next-boot", &format!("{pages} us\n"));
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        let what = format!(
            "{kernel} {group} {line} {pages}: {}",
            advice::message(status)
        );
        assert_eq!(status.forecast.outlook, Outlook::Hugetlb, "{what}");
        assert_eq!(status.boot_outlook(), Some(outlook), "{what}");
        let is_said = what.ends_with(": nothing seen sets vm.hugetlb_shm_group as it is now.");
        assert_eq!(is_said, outlook == Outlook::Unknown, "{what}");
    }
}

/// Whoever is in huge pages was let at its start. A group that has changed since may refuse the next one.
#[test]
fn a_permission_that_is_gone_since_the_start() {
    const GROUP: &str = "/proc/sys/vm/hugetlb_shm_group";
    for (kernel, file, text, outlook) in [
        ("6.1.0-18-amd64", GROUP, "54321", Outlook::Hugetlb),
        ("6.1.0-18-amd64", GROUP, "999", Outlook::Unknown),
        ("6.1.0-18-amd64", GROUP, "0", Outlook::Unknown),
        // Before 5.18 memlock is enough.
        (KERNELS[2], GROUP, "999", Outlook::Hugetlb),
        (KERNELS[4], GROUP, "999", Outlook::Hugetlb),
    ] {
        let host = in_huge_pages_by_only(kernel);
        host.write(file, text);
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        let message = advice::message(&instance.status);
        assert_eq!(
            instance.status.forecast.outlook, outlook,
            "{kernel} {file} {text}: {message} {:?}",
            instance.notes
        );
        let is_noted = instance
            .notes
            .iter()
            .any(|note| note.starts_with("vm.hugetlb_shm_group is not what it was"));
        assert_eq!(
            is_noted,
            outlook == Outlook::Unknown,
            "{:?}",
            instance.notes
        );
        assert_eq!(
            sizing(&survey).recommended.map(|pages| pages.0),
            Some(2052),
            "its need is known"
        );
    }
}

/// Who asks for no huge pages loses nothing by a limit.
#[test]
fn a_limit_that_does_not_matter() {
    let host = OracleHost::new(KERNELS[1], 16, (0, 0));
    host.run(&in_base(Some(64 << 10)));
    host.write(
        &format!("{DB_HOME}/dbs/initorcl.ora"),
        "*.sga_max_size=4G\n*.use_large_pages='FALSE'\n",
    );
    let survey = host.survey();
    let instance = running(&survey, "orcl");
    assert!(
        !instance.notes.iter().any(|note| note.contains("memlock")),
        "{:?}",
        instance.notes
    );
}
