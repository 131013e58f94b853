//! What the kernel refuses a start of an instance that does not run, and what to do by the number of the error.

use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_facts::Cause;
use hugepage_kernel::Pages;

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
    host.write(
        &format!("{DB_HOME}/dbs/initorcl.ora"),
        &format!("*.sga_max_size=4G\n*.use_large_pages='{setting}'\n"),
    );
    host
}

/// The last start that failed, with this limit on locked memory and this error.
fn failed(host: &OracleHost, memlock: &str, error: &str) {
    let start = host.start(&LoggedStart {
        ago: 600,
        memlock,
        pmon: None,
        errors: vec![error],
        ..LoggedStart::default()
    });
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
        failed(
            &host,
            "UNLIMITED",
            "ORA-27125: unable to create shared memory segment",
        );
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(
            (down.outlook(), down.forecast.as_ref().unwrap().cause),
            (outlook, cause),
            "{setting} {group}"
        );
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
    assert_eq!(
        stopped(&survey, "orcl").outlook(),
        Outlook::Unknown,
        "no start had any"
    );
}

/// A limit that was too small at the last start may have been raised since. Without a log nothing is foretold.
#[test]
fn memlock_decides_before_5_18() {
    for (kernel, of_log, outlook) in [
        (KERNELS[0], Some("64K"), Outlook::Unknown),
        (KERNELS[1], Some("64K"), Outlook::Unknown),
        (KERNELS[2], Some("UNLIMITED"), Outlook::Hugetlb),
        (KERNELS[3], Some("8G"), Outlook::Hugetlb),
        (KERNELS[3], None, Outlook::Unknown),
        // Since 5.18 it does not matter.
        (UEK8, Some("UNLIMITED"), Outlook::Base),
    ] {
        let host = host(kernel, "TRUE");
        if let Some(limit) = of_log {
            failed(
                &host,
                limit,
                "ORA-27125: unable to create shared memory segment",
            );
        }
        // Not read.
        host.write("/etc/security/limits.conf", "oracle - memlock unlimited\n");
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let message = down.message();
        assert_eq!(down.outlook(), outlook, "{kernel} {of_log:?}: {message}");
        if outlook == Outlook::Unknown {
            let why = match of_log {
                Some(_) => "its last start had a memlock limit of 64 kB, and 4 GB is needed.",
                None => "the kernel may refuse them to its owner.",
            };
            assert!(
                message.ends_with(&format!("is unknown: {why}")),
                "{message}"
            );
            let hint = down.hint(&[sizing(&survey)]).unwrap_or_default();
            assert_eq!(hint.starts_with("Raise the memlock"), of_log.is_some());
        }
    }
}

/// A start that found enough pages and took fewer was refused them: by memlock if that was too small.
#[test]
fn a_refusal_in_the_table_of_the_last_start() {
    for (memlock, allocated, note) in [
        ("64K", 0, "had a memlock limit of 64 kB"),
        ("1G", 5, "had a memlock limit of 1 GB"),
        (
            "UNLIMITED",
            0,
            "found enough huge pages and did not take them",
        ),
        (
            "UNLIMITED",
            5,
            "found enough huge pages and did not take them",
        ),
    ] {
        let host = host(KERNELS[1], "ONLY");
        let start = host.start(&LoggedStart {
            memlock,
            table: vec![("2048K", Some(2100), 2049, allocated)],
            pmon: None,
            errors: vec!["ORA-27106: system pages not available to allocate memory"],
            ..LoggedStart::default()
        });
        host.log("orcl", "orcl", &start);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(down.outlook(), Outlook::Unknown, "{memlock} {allocated}");
        let said = format!("{} {}", down.message(), down.notes.join("\n"));
        assert!(said.contains(note), "{memlock} {allocated}: {said}");
    }
}

/// A kernel that may have the change of 5.18 has it, if it refused an owner whose memlock limit was sufficient (EPERM).
#[test]
fn eperm_shows_which_kernel_it_is() {
    let eperm = "ORA-27125: unable to create shared memory segment\nLinux-x86_64 Error: 1: Operation not permitted";
    let other = "ORA-27125: unable to create shared memory segment\nLinux-x86_64 Error: 22: Invalid argument";
    for (error, memlock, outlook) in [
        (eperm, "UNLIMITED", Outlook::Fails),
        (eperm, "128G", Outlook::Fails),
        (eperm, "64K", Outlook::Unknown),
        (other, "UNLIMITED", Outlook::Unknown),
    ] {
        let host = host(KERNELS[4], "ONLY");
        let start = LoggedStart {
            ago: 600,
            pmon: None,
            memlock,
            table: vec![("2048K", Some(2100), 2049, 0)],
            errors: vec![error],
            ..LoggedStart::default()
        };
        host.log("orcl", "orcl", &host.start(&start));
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(down.outlook(), outlook, "{memlock} {}", down.message());
        let hint = down.hint(&[sizing(&survey)]).unwrap_or_default();
        let has_group = hint.contains("vm.hugetlb_shm_group=54321");
        assert_eq!(has_group, outlook == Outlook::Fails, "{memlock}: {hint}");
    }
}

/// The log decides about the last start: what it does not explain may stop the next one, too.
#[test]
fn errors_that_the_next_start_may_have() {
    let unexplained = [
        "ORA-27302: failure occurred at: skgpspawn3",
        "USER (ospid: 512): terminating the instance due to ORA error",
        "ORA-27102: out of memory",
        "System cannot support SGA size of 9536 MB.",
    ];
    let explained = [
        "ERROR: Failed to get available system pages to allocate memory",
        "ORA-27123: unable to attach to shared memory segment\nORA-27106: system pages not available",
    ];
    for (errors, outlook) in [
        (&unexplained[..], Outlook::Unknown),
        (&explained[..], Outlook::Hugetlb),
    ] {
        for error in errors {
            let host = host(KERNELS[3], "TRUE");
            failed(&host, "UNLIMITED", error);
            let survey = host.survey();
            let down = stopped(&survey, "orcl");
            let said = down.message();
            assert!(said.starts_with("The last start failed ("), "{said}");
            assert!(!said.contains("PMON did not start"), "{said}");
            assert_eq!(down.outlook(), outlook, "{said}");
        }
    }
    // A start that ends without a word.
    let host = host(KERNELS[3], "TRUE");
    let start = host.start(&LoggedStart {
        pmon: None,
        ..LoggedStart::default()
    });
    host.log("orcl", "orcl", &start);
    let survey = host.survey();
    let down = stopped(&survey, "orcl");
    assert_eq!(down.outlook(), Outlook::Unknown);
    let said = down.message();
    assert!(said.contains("failed (PMON did not start)"), "{said}");
}

/// The pages that a guess has beyond the pool are not why a start failed; the table has errors of its own.
#[test]
fn the_log_says_why_a_start_failed() {
    let failed = LoggedStart {
        pmon: None,
        memlock: "UNLIMITED",
        ..LoggedStart::default()
    };
    for (start, nr, error, hint) in [
        (
            LoggedStart {
                errors: vec!["ORA-27102: out of memory"],
                ..failed.clone()
            },
            2050,
            "ORA-27102: out of memory",
            "See the error in the alert log.",
        ),
        (
            LoggedStart {
                table: vec![("2048K", Some(1000), 2049, 0)],
                ..failed.clone()
            },
            2049,
            "ORA-27106",
            "Start the instance: the host now has what it lacked.",
        ),
    ] {
        let host = OracleHost::new(KERNELS[1], 16, (nr, nr));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            "*.sga_max_size=4G\n*.use_large_pages='ONLY'\n",
        );
        let log = host.start(&start).replace("NONE", "ORA-27106");
        host.log("orcl", "orcl", &log);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let said = down.message();
        let failed = format!("The last start failed ({error});");
        assert!(said.starts_with(&failed), "{said}");
        assert_eq!(
            down.hint(&[sizing(&survey)]).as_deref(),
            Some(hint),
            "{said}"
        );
    }
}

/// Parameters from which Oracle works out its memory, if they are not those of the last start.
#[test]
fn parameters_whose_meaning_is_not_computed() {
    for (last, next, named) in [
        ("", "*.memory_size=48G", Some("MEMORY_SIZE")),
        ("", "*.memory_max_size=48G", Some("MEMORY_MAX_SIZE")),
        ("memory_size = 48G", "", Some("MEMORY_SIZE")),
        ("memory_size = 48G", "*.memory_size=48G", None),
        ("", "*.memory_size=0", None),
    ] {
        let host = host(KERNELS[3], "ONLY");
        let start = LoggedStart {
            parameters: vec!["sga_max_size = 4G".to_owned(), last.to_owned()],
            table: vec![("2048K", Some(2100), 2049, 2049)],
            ..LoggedStart::default()
        };
        host.log("orcl", "orcl", &host.start(&start));
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            &format!("*.sga_max_size=4G\n*.use_large_pages='ONLY'\n{next}\n"),
        );
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let notes = down.notes.join("\n");
        let outlook = named.map_or(Outlook::Hugetlb, |_| Outlook::Unknown);
        assert_eq!(down.outlook(), outlook, "{last} {next}: {notes}");
        assert!(notes.contains(named.unwrap_or_default()), "{notes}");
        host.pool(2048, 2100, 51);
        host.run(&Running {
            segments: vec![(2049 * 2 * MIB, 2048)],
            ..Running::default()
        });
        let survey = host.survey();
        let of_restart = running(&survey, "orcl").status.forecast.outlook;
        assert_eq!(of_restart, outlook, "{last} {next}, running");
    }
    // ASM has a default that is not known.
    let host = OracleHost::new(KERNELS[3], 16, (2100, 2100));
    host.home(GRID_HOME);
    host.write("/etc/oratab", &format!("+ASM:{GRID_HOME}:N\n"));
    for (line, outlook) in [
        ("", Outlook::Base),
        ("*.memory_target=0\n", Outlook::Unknown),
    ] {
        let text = format!("*.instance_type=asm\n{line}");
        host.write(&format!("{GRID_HOME}/dbs/init+ASM.ora"), &text);
        let survey = host.survey();
        assert_eq!(stopped(&survey, "+ASM").outlook(), outlook, "{line}");
    }
}

/// Without SGA_TARGET and SGA_MAX_SIZE the pools are the SGA, so EXPECTED_PAGES hold as long as the pools do.
#[test]
fn pools_alone_size_an_sga() {
    for (next, outlook) in [
        ("3G", Outlook::Hugetlb),
        ("3072M", Outlook::Hugetlb),
        ("12G", Outlook::Unknown),
        ("2G", Outlook::Unknown),
    ] {
        let host = host(KERNELS[3], "ONLY");
        let pools = |cache| {
            [
                format!("db_cache_size = {cache}"),
                "shared_pool_size = 1000M".to_owned(),
            ]
        };
        let start = LoggedStart {
            parameters: pools("3G").to_vec(),
            table: vec![("2048K", Some(2100), 2049, 2049)],
            ..LoggedStart::default()
        };
        host.log("orcl", "orcl", &host.start(&start));
        let text = format!(
            "use_large_pages=ONLY\nsga_target=0\n{}\n",
            pools(next).join("\n")
        );
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &text);
        let survey = host.survey();
        assert_eq!(stopped(&survey, "orcl").outlook(), outlook, "{next}");
    }
}

/// With it a start locks its SGA, in whichever pages.
#[test]
fn lock_sga_needs_memlock() {
    for (setting, limit, needs) in [
        ("ONLY", Some("64K"), true),
        ("FALSE", Some("64K"), true),
        ("FALSE", None, true),
        ("ONLY", Some("UNLIMITED"), false),
        ("FALSE", Some("5G"), false),
    ] {
        let host = host(KERNELS[3], setting);
        let parameters =
            format!("*.sga_max_size=4G\n*.use_large_pages='{setting}'\n*.lock_sga=TRUE\n");
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &parameters);
        if let Some(limit) = limit {
            failed(&host, limit, "ORA-27102: out of memory");
        }
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let hint = down.hint(&[sizing(&survey)]).unwrap_or_default();
        assert_eq!(
            hint.starts_with("Raise the memlock limit"),
            needs,
            "{setting} {limit:?}: {hint}"
        );
        if needs {
            assert_eq!(down.outlook(), Outlook::Unknown, "{setting} {limit:?}");
            assert!(down.message().contains("memlock"), "{}", down.message());
        }
    }
}

/// A start that failed lists no parameters: its EXPECTED_PAGES count if they are those of the SGA that is asked for now.
#[test]
fn an_sga_that_has_changed_since_a_start_that_failed() {
    for (sga, pages) in [("4G", 2049), ("8G", 4100), ("2G", 1028)] {
        let host = host(KERNELS[3], "ONLY");
        let start = host.start(&LoggedStart {
            table: vec![("2048K", Some(100), 2049, 0)],
            pmon: None,
            errors: vec!["ORA-27106: system pages not available to allocate memory"],
            ..LoggedStart::default()
        });
        host.log("orcl", "orcl", &start);
        let parameters = format!("*.sga_max_size={sga}\n*.use_large_pages='ONLY'\n");
        host.write(&format!("{DB_HOME}/dbs/initorcl.ora"), &parameters);
        let survey = host.survey();
        let wants = stopped(&survey, "orcl").wants.pages();
        assert_eq!(wants, Some(Pages(pages)), "{sga}");
    }
}

/// All of them, in the order in which they stop a start.
#[test]
fn every_obstacle_is_said() {
    for (kernel, memlock, words) in [
        (
            KERNELS[1],
            "64K",
            ["memlock", "kernel.shmall", "nr_hugepages"],
        ),
        (
            UEK8,
            "UNLIMITED",
            ["kernel.shmall", "hugetlb_shm_group", "nr_hugepages"],
        ),
    ] {
        let host = host(kernel, "ONLY");
        host.pool(2048, 100, 100);
        host.write("/proc/sys/kernel/shmall", "524288\n");
        host.write(GROUP, "0\n");
        let error = "ORA-27106: system pages not available to allocate memory";
        failed(&host, memlock, error);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let hint = down.hint(&[sizing(&survey)]).unwrap();
        let places = words.map(|word| hint.find(word));
        assert!(places.is_sorted() && places[0].is_some(), "{hint}");
        assert!(
            down.message().matches("; ").count() >= 3,
            "{}",
            down.message()
        );
        assert!(hint.contains(", then start the instance."), "{hint}");
    }
}

/// The operating system's number tells what a start lacked: ENOSPC the kernel's limits, EPERM memlock, ENOMEM of fork(2) memory.
#[test]
fn the_number_of_the_error() {
    for (error, hint) in [
        (
            "ORA-27102: out of memory\nLinux-x86_64 Error: 28: No space left on device",
            "Start the instance: the host now has what it lacked.",
        ),
        (
            "ORA-27102: out of memory\nLinux-x86_64 Error: 12: Cannot allocate memory",
            "See the error in the alert log.",
        ),
        (
            "ORA-27125: unable to create shared memory segment\nLinux-x86_64 Error: 1: Operation not permitted",
            "Start the instance: the host now has what it lacked.",
        ),
        (
            "ORA-27125: unable to create shared memory segment\nLinux-x86_64 Error: 22: Invalid argument",
            "See the error in the alert log.",
        ),
        (
            "ORA-27300: OS system dependent operation:fork failed with status: 12",
            "The kernel had no memory for a process of the start: reduce the pool if it keeps pages that nobody needs \
             (hugepage-sidecar size), and start the instance.",
        ),
    ] {
        let host = host(KERNELS[3], "ONLY");
        failed(&host, "UNLIMITED", error);
        let survey = host.survey();
        let found = stopped(&survey, "orcl").hint(&[sizing(&survey)]);
        assert_eq!(found.as_deref(), Some(hint), "{error}");
    }
}

/// MEMORY_TARGET needs its size in /dev/shm, of which the log warns without an error.
#[test]
fn a_start_that_failed_for_dev_shm() {
    const WARNING: &str = "WARNING: You are trying to use the MEMORY_TARGET feature. This feature requires the /dev/shm file system \
                           to be mounted for at least 4294967296 bytes. Current available is 1073741824 and used is 0 bytes.";
    for (target, options, outlook, hint) in [
        (
            "*.memory_target=4G",
            "rw,size=1048576k",
            Outlook::Fails,
            "size=4194304k /dev/shm\", and start the instance.",
        ),
        // Half of 16 GB by default, and without a limit.
        (
            "*.memory_target=4G",
            "rw",
            Outlook::Base,
            "Start the instance: the host now has what it lacked.",
        ),
        (
            "*.memory_max_target=9G",
            "rw",
            Outlook::Fails,
            "size=9437184k /dev/shm\", and start the instance.",
        ),
        (
            "*.memory_max_target=9G",
            "rw,size=0k",
            Outlook::Base,
            "Start the instance: the host now has what it lacked.",
        ),
        (
            "*.sga_target=2G",
            "rw,size=1048576k",
            Outlook::Hugetlb,
            "Start the instance: the host now has what it lacked.",
        ),
    ] {
        let host = host(UEK8, "TRUE");
        host.write(GROUP, "54321\n");
        host.write(
            "/proc/self/mountinfo",
            &format!("20 1 0:18 / /dev/shm rw - tmpfs tmpfs {options}\n"),
        );
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            &format!("{target}\n"),
        );
        failed(&host, "UNLIMITED", WARNING);
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        let told = "The last start failed (MEMORY_TARGET needs 4 GB in /dev/shm)";
        assert!(down.message().starts_with(told), "{}", down.message());
        assert_eq!(
            (down.severity(), down.outlook()),
            (Severity::Critical, outlook),
            "{target} {options}"
        );
        assert!(
            down.hint(&[sizing(&survey)])
                .is_some_and(|found| found.ends_with(hint)),
            "{target} {options}"
        );
    }
}

/// kernel.shmall counts base pages of all segments, whatever pages they are in, so it stops a start with any setting.
#[test]
fn shmall_stops_a_start_in_whatever_pages() {
    for setting in ["ONLY", "TRUE", "FALSE"] {
        for (shmall, others, fails) in [
            (524_288, 0, true),
            (1_048_575, 0, true),
            (1_100_000, 0, false),
            (1_100_000, 1, true),
        ] {
            let host = host(KERNELS[0], setting);
            host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
            let segment = format!("1 7 640 {} 1 1 1 54321 1 1 1 1 1 1\n", GIB);
            host.write(
                "/proc/sysvipc/shm",
                &format!("{HEAD}{}", segment.repeat(others)),
            );
            failed(
                &host,
                "UNLIMITED",
                "ORA-27104: system-defined limits for shared memory was misconfigured",
            );
            let survey = host.survey();
            let down = stopped(&survey, "orcl");
            assert_eq!(
                down.outlook() == Outlook::Fails,
                fails,
                "{setting} {shmall} {others}: {}",
                down.message()
            );
            let hint = down.hint(&[sizing(&survey)]);
            if fails {
                assert_eq!(down.forecast.as_ref().unwrap().cause, Some(Cause::ShmLimit));
                let message = down.message();
                assert!(
                    message.contains("its next start would fail: kernel.shmall allows "),
                    "{message}"
                );
                let pages = if others == 0 { 1_064_960 } else { 1_327_104 };
                assert_eq!(
                    hint.unwrap(),
                    format!(
                        "Run \"sysctl -w kernel.shmall={pages}\" and put it into /etc/sysctl.d, then start the instance."
                    )
                );
            } else if setting != "FALSE" {
                let hint = hint.unwrap();
                assert_eq!(hint, "See the error in the alert log.");
            }
        }
    }
}

#[test]
fn shmmni_counts_segments() {
    for (shmmni, shmmax, fails) in [
        (2, 1 << 40, true),
        (3, 1 << 40, false),
        (5, GIB, true),
        (6, GIB, false),
    ] {
        let host = host(KERNELS[0], "TRUE");
        host.write("/proc/sys/kernel/shmmni", &format!("{shmmni}\n"));
        host.write("/proc/sys/kernel/shmmax", &format!("{shmmax}\n"));
        let segment = "1 7 640 4096 1 1 1 54321 1 1 1 1 1 1\n";
        host.write("/proc/sysvipc/shm", &format!("{HEAD}{}", segment.repeat(2)));
        failed(&host, "UNLIMITED", "ORA-27102: out of memory");
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(
            down.outlook() == Outlook::Fails,
            fails,
            "{shmmni} {shmmax}: {}",
            down.message()
        );
    }
}

/// A larger SGA in the parameter file of an instance that runs.
#[test]
fn shmall_stops_the_restart_with_a_larger_sga() {
    for (shmall, outlook) in [(2_097_152, Outlook::Hugetlb), (1_572_864, Outlook::Fails)] {
        let host = OracleHost::new(KERNELS[3], 16, (4200, 2152));
        host.run(&Running {
            segments: vec![(4 * GIB, 2048)],
            ..Running::default()
        });
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            "*.sga_max_size=7G\n*.use_large_pages='ONLY'\n",
        );
        host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
        host.write(
            "/proc/sysvipc/shm",
            &format!("{HEAD}1 7 640 {} 1 1 1 54321 1 1 1 1 1 1\n", 4 * GIB),
        );
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            status.forecast.outlook,
            outlook,
            "{shmall}: {}",
            hugepage_assess::advice::message(status)
        );
        if outlook == Outlook::Fails {
            let message = hugepage_assess::advice::message(status);
            assert!(
                message.contains("kernel.shmall allows 6 GB of System V shared memory"),
                "{message}"
            );
        }
    }
}

/// Parameters that exclude each other are told whatever the pool has.
#[test]
fn errors_of_parameters() {
    let with_another =
        "the other parameters allow (on Exadata ONLY or AUTO_ONLY), and start the instance.";
    let with_target = "in place of MEMORY_TARGET, and start the instance.";
    for (error, target, hint) in [
        (
            "ORA-27138: unable to allocate large pages with current parameter setting",
            "2G",
            Some(with_target),
        ),
        (
            "ORA-27138: unable to allocate large pages with current parameter setting",
            "0",
            Some(with_another),
        ),
        (
            "ORA-27107: AUTO value for USE_LARGE_PAGES parameter is no longer supported",
            "0",
            Some(with_another),
        ),
        (
            "ORA-27106: system pages not available to allocate memory",
            "0",
            Some("Start the instance: the host now has what it lacked."),
        ),
        (
            "ORA-27137: unable to allocate large pages to create a shared memory segment",
            "2G",
            Some(with_target),
        ),
        (
            "ERROR: use_large_pages = FALSE is not a supported setting for database on Exadata",
            "0",
            Some(with_another),
        ),
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
        assert!(
            found
                .as_deref()
                .is_some_and(|found| found.ends_with(hint.unwrap())),
            "{error} {target}: {found:?}"
        );
        if target != "0" {
            assert_eq!(
                (down.outlook(), down.forecast.as_ref().unwrap().cause),
                (Outlook::Fails, Some(Cause::MemoryTarget))
            );
        }
    }
}

/// The kernel counts memlock by user and `kernel.shmall` for all: who starts first gets what is not enough for two.
#[test]
fn two_that_are_stopped_share_the_limits() {
    for (memlock, shmall, outlook) in [
        ("8G", 1 << 30, Outlook::Unknown),
        ("9G", 1 << 30, Outlook::Hugetlb),
        ("9G", 1_500_000, Outlook::Unknown),
        ("9G", 2_200_000, Outlook::Hugetlb),
    ] {
        let host = OracleHost::new(KERNELS[1], 16, (5000, 5000));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("a:{DB_HOME}:Y\nb:{DB_HOME}:Y\n"));
        host.write("/proc/sys/kernel/shmall", &format!("{shmall}\n"));
        for sid in ["a", "b"] {
            host.write(
                &format!("{DB_HOME}/dbs/init{sid}.ora"),
                "*.sga_max_size=4G\n*.use_large_pages='ONLY'\n",
            );
            let start = host.start(&LoggedStart {
                memlock,
                ..LoggedStart::default()
            });
            host.log(sid, sid, &start);
        }
        let survey = host.survey();
        for sid in ["a", "b"] {
            let down = stopped(&survey, sid);
            assert_eq!(
                down.outlook(),
                outlook,
                "{memlock} {shmall}: {}",
                down.message()
            );
        }
    }
}
