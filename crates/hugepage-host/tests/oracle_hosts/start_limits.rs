//! What the kernel refuses a start of an instance that does not run, and what to do by the number of the error.

use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::Cause;

use crate::builder::*;

/// UEK 8, which counts no memlock for System V segments.
const UEK8: &str = "6.12.0-103.40.4.2.el9uek.x86_64";
const GROUP: &str = "/proc/sys/vm/hugetlb_shm_group";
const HEAD: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      \
                    ctime\n";

/// A database with an SGA of 4 GB that starts at boot, and a pool that has enough.
fn host(kernel: &str, setting: &str) -> OracleHost {
    let host = OracleHost::new(kernel, 16, (2100, 2100));
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:Y\n"));
    host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &format!("*.sga_max_size=4G\n*.use_large_pages='{setting}'\n"));
    host
}

/// The last start that failed, with this limit on locked memory and this error.
fn failed(host: &OracleHost, memlock: &str, error: &str) {
    let start =
        host.start(&LoggedStart { ago: 600, memlock, pmon: None, errors: vec![error], ..LoggedStart::default() });
    host.log("orcl", "orcl", &start);
}

#[test]
fn the_group_decides_since_5_18() {
    for (setting, group, outlook, cause) in [
        ("ONLY", "0", Outlook::Fails, Some(Cause::ShmGroup)),
        ("TRUE", "0", Outlook::Base, Some(Cause::ShmGroup)),
        // Its own group, and one that it is a member of.
        ("ONLY", "54321", Outlook::Hugetlb, None),
        ("ONLY", "54322", Outlook::Hugetlb, None),
        ("ONLY", "54399", Outlook::Fails, Some(Cause::ShmGroup)),
    ] {
        let host = host(UEK8, setting);
        host.write(GROUP, &format!("{group}\n"));
        failed(&host, "UNLIMITED", "ORA-27125: unable to create shared memory segment");
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!((down.outlook(), down.forecast.as_ref().unwrap().cause), (outlook, cause), "{setting} {group}");
        let hint = down.hint(&[sizing(&survey)]).unwrap();
        match cause {
            Some(_) => assert_eq!(
                hint,
                "Run \"sysctl -w vm.hugetlb_shm_group=54321\" and put it into /etc/sysctl.d, then start the instance."
            ),
            None => assert_eq!(hint, "Start the instance: the host now has what it lacked."),
        }
    }
}

/// `status` exits with a warning before the first start that would fail.
#[test]
fn a_start_that_would_fail_is_a_warning() {
    let host = host(UEK8, "ONLY");
    let survey = host.survey();
    assert_eq!(stopped(&survey, "orcl").severity(), Severity::Warning);
}

/// Nothing is claimed where a directory service may know more than /etc/group, or the host's file is missing in a tree.
#[test]
fn groups_that_are_not_all_known() {
    let host = host(UEK8, "ONLY");
    host.write("/etc/nsswitch.conf", "group: files ldap\n");
    let survey = host.survey();
    assert_eq!(stopped(&survey, "orcl").outlook(), Outlook::Hugetlb, "a tree may lack what its host has");
}

#[test]
fn memlock_decides_before_5_18() {
    for (kernel, of_log, of_conf, outlook) in [
        (KERNELS[0], Some("64K"), None, Outlook::Base),
        (KERNELS[1], Some("64K"), None, Outlook::Base),
        (KERNELS[2], Some("UNLIMITED"), None, Outlook::Hugetlb),
        (KERNELS[3], Some("8G"), None, Outlook::Hugetlb),
        // Raised since the last start.
        (KERNELS[3], Some("64K"), Some("unlimited"), Outlook::Hugetlb),
        (KERNELS[3], None, Some("8388608"), Outlook::Hugetlb),
        (KERNELS[3], None, Some("64"), Outlook::Base),
        (KERNELS[3], None, None, Outlook::Unknown),
        // Since 5.18 it does not matter.
        (UEK8, Some("UNLIMITED"), Some("unlimited"), Outlook::Base),
    ] {
        let host = host(kernel, "TRUE");
        if let Some(limit) = of_log {
            failed(&host, limit, "ORA-27125: unable to create shared memory segment");
        }
        if let Some(limit) = of_conf {
            host.write("/etc/security/limits.d/90-oracle.conf", &format!("oracle - memlock {limit}\n"));
        }
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(down.outlook(), outlook, "{kernel} {of_log:?} {of_conf:?}: {}", down.message());
        if outlook == Outlook::Unknown {
            assert!(down.message().ends_with("is unknown: the kernel may refuse them to its owner."));
            assert!(
                down.notes.iter().any(|note| note.starts_with("the memlock limit of its owner")),
                "{:?}",
                down.notes
            );
        }
    }
}

/// A limit and a need that are the same in GB are told in kB.
#[test]
fn memlock_that_is_nearly_enough() {
    let host = OracleHost::new(KERNELS[1], 64, (9000, 9000));
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:Y\n"));
    host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), "*.sga_max_size=16G\n");
    host.write("/etc/security/limits.conf", "oracle - memlock 16777216\n");
    let message = stopped(&host.survey(), "orcl").message();
    assert!(message.ends_with("its memlock limit is 16777216 kB; 16785408 kB is needed."), "{message}");
}

/// With a limit of 64 kB at the last start: lines for groups and for everybody count, and what can't be known is no failure.
#[test]
fn memlock_of_groups_and_of_everybody() {
    for (lines, nsswitch, outlook) in [
        ("* soft memlock 60397977\n* hard memlock 60397977\n", "", Outlook::Hugetlb),
        ("@dba - memlock unlimited\n", "", Outlook::Hugetlb),
        ("@backupdba - memlock unlimited\n", "", Outlook::Fails),
        ("@backupdba - memlock unlimited\n", "group: files ldap\n", Outlook::Unknown),
        ("oracle - memlock 64\n* - memlock unlimited\n", "", Outlook::Fails),
        ("54321: - memlock unlimited\n", "", Outlook::Unknown),
    ] {
        let host = host(KERNELS[1], "ONLY");
        failed(&host, "64K", "ORA-27125: unable to create shared memory segment");
        host.write("/etc/nsswitch.conf", nsswitch);
        host.write("/etc/security/limits.conf", lines);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(down.outlook(), outlook, "{lines} {nsswitch}: {} {:?}", down.message(), down.notes);
    }
    // An owner that only a directory service knows.
    let host = host(KERNELS[1], "ONLY");
    failed(&host, "64K", "ORA-27125: unable to create shared memory segment");
    host.write("/etc/passwd", "root:x:0:0::/root:/bin/bash\n");
    let survey = host.survey();
    assert_eq!(stopped(&survey, "orcl").outlook(), Outlook::Unknown);
}

/// MEMORY_TARGET needs its size in /dev/shm, of which the log warns without an error.
#[test]
fn a_start_that_failed_for_dev_shm() {
    const WARNING: &str = "WARNING: You are trying to use the MEMORY_TARGET feature. This feature requires the /dev/shm file system \
                           to be mounted for at least 4294967296 bytes. Current available is 1073741824 and used is 0 bytes.";
    for (target, options, outlook, hint) in [
        ("*.memory_target=4G", "rw,size=1048576k", Outlook::Fails, "size=4194304k /dev/shm\", and start the instance."),
        // Half of 16 GB by default, and without a limit.
        ("*.memory_target=4G", "rw", Outlook::Base, "Start the instance: the host now has what it lacked."),
        ("*.memory_max_target=9G", "rw", Outlook::Fails, "size=9437184k /dev/shm\", and start the instance."),
        ("*.memory_max_target=9G", "rw,size=0k", Outlook::Base, "Start the instance: the host now has what it lacked."),
        (
            "*.sga_target=2G",
            "rw,size=1048576k",
            Outlook::Hugetlb,
            "Start the instance: the host now has what it lacked.",
        ),
    ] {
        let host = host(UEK8, "TRUE");
        host.write(GROUP, "54321\n");
        host.write("/proc/self/mountinfo", &format!("20 1 0:18 / /dev/shm rw - tmpfs tmpfs {options}\n"));
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &format!("{target}\n"));
        failed(&host, "UNLIMITED", WARNING);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let told = "The last start failed (MEMORY_TARGET needs 4 GB in /dev/shm, which had 1 GB)";
        assert!(down.message().starts_with(told), "{}", down.message());
        assert_eq!((down.severity(), down.outlook()), (Severity::Critical, outlook), "{target} {options}");
        assert!(down.hint(&[sizing(&survey)]).is_some_and(|found| found.ends_with(hint)), "{target} {options}");
    }
}

/// kernel.shmall counts base pages of all segments, whatever pages they are in, so it stops a start with any setting.
#[test]
fn shmall_stops_a_start_in_whatever_pages() {
    for setting in ["ONLY", "TRUE", "FALSE"] {
        for (shmall, others, fails) in
            [(524_288, 0, true), (1_048_575, 0, true), (1_100_000, 0, false), (1_100_000, 1, true)]
        {
            let host = host(KERNELS[0], setting);
            host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
            let segment = format!("1 7 640 {} 1 1 1 54321 1 1 1 1 1 1\n", GIB);
            host.write("/proc/sysvipc/shm", &format!("{HEAD}{}", segment.repeat(others)));
            failed(&host, "UNLIMITED", "ORA-27104: system-defined limits for shared memory was misconfigured");
            let survey = host.survey();
            let down = stopped(&survey, "orcl");
            assert_eq!(down.outlook() == Outlook::Fails, fails, "{setting} {shmall} {others}: {}", down.message());
            let hint = down.hint(&[sizing(&survey)]);
            if fails {
                assert_eq!(down.forecast.as_ref().unwrap().cause, Some(Cause::ShmLimit));
                let message = down.message();
                assert!(message.contains("its next start would fail: kernel.shmall allows "), "{message}");
                let pages = if others == 0 { 1_064_960 } else { 1_327_104 };
                assert_eq!(
                    hint.unwrap(),
                    format!(
                        "Run \"sysctl -w kernel.shmall={pages}\" and put it into /etc/sysctl.d, then start the instance."
                    )
                );
            } else if setting != "FALSE" {
                let hint = hint.unwrap();
                assert_eq!(hint, "The pool has enough pages: see the error in the alert log.");
            }
        }
    }
}

#[test]
fn shmmni_counts_segments() {
    for (shmmni, shmmax, fails) in [(2, 1 << 40, true), (3, 1 << 40, false), (5, GIB, true), (6, GIB, false)] {
        let host = host(KERNELS[0], "TRUE");
        host.write("/proc/sys/kernel/shmmni", &format!("{shmmni}\n"));
        host.write("/proc/sys/kernel/shmmax", &format!("{shmmax}\n"));
        let segment = "1 7 640 4096 1 1 1 54321 1 1 1 1 1 1\n";
        host.write("/proc/sysvipc/shm", &format!("{HEAD}{}", segment.repeat(2)));
        failed(&host, "UNLIMITED", "ORA-27102: out of memory");
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(down.outlook() == Outlook::Fails, fails, "{shmmni} {shmmax}: {}", down.message());
    }
}

/// A larger SGA in the parameter file of an instance that runs.
#[test]
fn shmall_stops_the_restart_with_a_larger_sga() {
    for (shmall, outlook) in [(2_097_152, Outlook::Hugetlb), (1_572_864, Outlook::Fails)] {
        let host = OracleHost::new(KERNELS[3], 16, (4200, 2152));
        host.run(&Running { segments: vec![(4 * GIB, 2048)], ..Running::default() });
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), "*.sga_max_size=7G\n*.use_large_pages='ONLY'\n");
        host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
        host.write("/proc/sysvipc/shm", &format!("{HEAD}1 7 640 {} 1 1 1 54321 1 1 1 1 1 1\n", 4 * GIB));
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(status.outlook, outlook, "{shmall}: {}", hugepage_assess::advice::message(status));
        if outlook == Outlook::Fails {
            let message = hugepage_assess::advice::message(status);
            assert!(message.contains("kernel.shmall allows 6 GB of System V shared memory"), "{message}");
        }
    }
}

/// Parameters that exclude each other are told whatever the pool has.
#[test]
fn errors_of_parameters() {
    let with_another = "the other parameters allow (on Exadata ONLY or AUTO_ONLY), and start the instance.";
    let with_target = "in place of MEMORY_TARGET, and start the instance.";
    for (error, target, hint) in [
        ("ORA-27138: unable to allocate large pages with current parameter setting", "2G", Some(with_target)),
        ("ORA-27138: unable to allocate large pages with current parameter setting", "0", Some(with_another)),
        ("ORA-27107: AUTO value for USE_LARGE_PAGES parameter is no longer supported", "0", Some(with_another)),
        (
            "ORA-27106: system pages not available to allocate memory",
            "0",
            Some("Start the instance: the host now has what it lacked."),
        ),
        ("ORA-27137: unable to allocate large pages to create a shared memory segment", "2G", Some(with_target)),
        ("ERROR: use_large_pages = FALSE is not a supported setting for database on Exadata", "0", Some(with_another)),
    ] {
        let host = host(KERNELS[0], "ONLY");
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            &format!("*.sga_max_size=4G\n*.memory_target={target}\n*.use_large_pages='ONLY'\n"),
        );
        failed(&host, "UNLIMITED", error);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let found = down.hint(&[sizing(&survey)]);
        assert!(found.as_deref().is_some_and(|found| found.ends_with(hint.unwrap())), "{error} {target}: {found:?}");
        if target != "0" {
            assert_eq!(
                (down.outlook(), down.forecast.as_ref().unwrap().cause),
                (Outlook::Fails, Some(Cause::MemoryTarget))
            );
        }
    }
}

/// The files of a running instance are in /dev/shm as well, also of one whose MEMORY_TARGET only its parameter file has.
#[test]
fn dev_shm_holds_what_runs_too() {
    for (size, is_told) in [("7g", true), ("9g", false)] {
        let host = OracleHost::new(KERNELS[0], 16, (0, 0));
        host.write("/etc/oratab", &format!("run:{DB_HOME}:Y\ndown:{DB_HOME}:Y\n"));
        host.write("/proc/self/mountinfo", &format!("20 1 0:18 / /dev/shm rw - tmpfs tmpfs rw,size={size}\n"));
        host.run(&Running { sid: "run", segments: vec![(2056 * MIB, 4)], ..Running::default() });
        for sid in ["run", "down"] {
            host.write(&format!("{DB_HOME}/dbs/init{sid}.ora"), "*.memory_target=4G\n");
        }
        let message = stopped(&host.survey(), "down").message();
        assert_eq!(message.contains("too small for the 8 GB of all"), is_told, "{size}: {message}");
    }
}

/// The kernel counts memlock by user and `kernel.shmall` for all: who starts first gets what is not enough for two.
#[test]
fn two_that_are_stopped_share_the_limits() {
    for (memlock_kb, shmall, outlook) in [
        (8 << 20, 1 << 30, Outlook::Unknown),
        (9 << 20, 1 << 30, Outlook::Hugetlb),
        (9 << 20, 1_500_000, Outlook::Unknown),
        (9 << 20, 2_200_000, Outlook::Hugetlb),
    ] {
        let host = OracleHost::new(KERNELS[1], 16, (5000, 5000));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("a:{DB_HOME}:Y\nb:{DB_HOME}:Y\n"));
        host.write("/etc/security/limits.conf", &format!("oracle - memlock {memlock_kb}\n"));
        host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
        for sid in ["a", "b"] {
            host.write(&format!("{DB_HOME}/dbs/init{sid}.ora"), "*.sga_max_size=4G\n*.use_large_pages='ONLY'\n");
        }
        let survey = host.survey();
        for sid in ["a", "b"] {
            let down = stopped(&survey, sid);
            assert_eq!(down.outlook(), outlook, "{memlock_kb} {shmall}: {}", down.message());
        }
    }
}

/// limits.conf does not hold for what systemd starts, however its unit names the owner.
#[test]
fn units_that_may_start_an_instance() {
    for (unit, outlook) in [
        ("User=oracle\nExecStart=/x\n", Outlook::Unknown),
        ("User=\"oracle\"\nExecStart=/x\n", Outlook::Unknown),
        ("User=%i\nExecStart=/u01/dbstart\n", Outlook::Unknown),
        ("User=\\\noracle\nExecStart=/u01/dbstart\n", Outlook::Unknown),
        ("ExecStart=/usr/bin/setpriv --reuid oracle /u01/dbstart\n", Outlook::Unknown),
        // systemd's own, and a session of PAM.
        ("User=%i\nExecStart=/usr/lib/systemd/systemd --user\n", Outlook::Hugetlb),
        ("ExecStart=/bin/su - oracle -c /u01/dbstart\n", Outlook::Hugetlb),
        ("User=grid\nExecStart=/u01/dbstart\n", Outlook::Hugetlb),
    ] {
        let host = host(KERNELS[1], "ONLY");
        host.write("/etc/security/limits.conf", "oracle - memlock unlimited\n");
        host.write("/etc/systemd/system/one@.service", unit);
        let survey = host.survey();
        assert_eq!(stopped(&survey, "orcl").outlook(), outlook, "{unit}");
    }
}
