//! What the next start of a running instance will ask for: the spfile of a home, one that srvctl names, and one in ASM.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::{Pending, Product, UseLargePages};
use hugepage_facts::{Cause, Landing};
use hugepage_host::host_advice;
use hugepage_kernel::Pages;

use crate::builder::*;

fn setting(survey: &hugepage_host::Survey, sid: &str) -> Option<&'static str> {
    running(survey, sid).row(&[]).use_large_pages
}

fn logged(sga: &str, setting: Option<&str>) -> Vec<String> {
    let mut all = vec![
        format!("sga_max_size = {sga}"),
        format!("sga_target = {sga}"),
        "db_name = \"orcl\"".to_owned(),
    ];
    all.extend(setting.map(|setting| format!("use_large_pages = \"{setting}\"")));
    all
}

/// 8 GB run in huge pages; the pool has 4200 pages.
fn host(kernel: &str, spfile: Option<&str>, behind: &str, memlock: Option<u64>) -> OracleHost {
    let host = OracleHost::new(kernel, 64, (4200, 100));
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
    host.run(&Running {
        segments: vec![(8200 * MIB, 2048)],
        memlock,
        ..Running::default()
    });
    let start = LoggedStart {
        parameters: logged("8G", Some("TRUE")),
        table: vec![("4K", None, 5, 5), ("2048K", Some(4200), 4100, 4100)],
        spfile,
        ..LoggedStart::default()
    };
    host.log("orcl", "orcl", &(host.start(&start) + behind));
    host
}

/// SGA 16G and ONLY on disk, a pool for 8G: the next start is ORA-27137.
#[test]
fn a_pending_spfile_is_foretold() {
    let in_home = format!("{DB_HOME}/dbs/spfileorcl.ora");
    for kernel in KERNELS {
        for (file, outlook, needed, verdict, said) in [
            (
                "*.sga_max_size=16G\n*.use_large_pages='ONLY'\n",
                Outlook::Fails,
                8196,
                Severity::Critical,
                "would fail: use_large_pages = ONLY, and only 4200 of the 8196 pages of 2 MB",
            ),
            (
                "*.sga_max_size=16G\n",
                Outlook::Mixed,
                8196,
                Severity::Warning,
                "would not get all of them: only 4200 of the 8196",
            ),
            (
                "*.sga_max_size=8G\n*.use_large_pages='FALSE'\n",
                Outlook::Base,
                4100,
                Severity::Warning,
                "would lose them: use_large_pages = FALSE.",
            ),
            (
                "*.memory_target=12G\n",
                Outlook::Base,
                4100,
                Severity::Warning,
                "would lose them: MEMORY_TARGET puts the SGA into files in /dev/shm",
            ),
            (
                "*.sga_max_size=8G\n*.use_large_pages='TRUE'\n",
                Outlook::Hugetlb,
                4100,
                Severity::Ok,
                "and a restart keeps them.",
            ),
            (
                "*.sga_max_size=4G\n",
                Outlook::Hugetlb,
                2052,
                Severity::Ok,
                "and a restart keeps them.",
            ),
            (
                "*.sga_max_size=16G\n*.use_large_pages='AUTO_ONLY'\n",
                Outlook::Unknown,
                8196,
                Severity::Notice,
                "It is unknown whether a restart with the configuration on disk gets huge pages",
            ),
            (
                "orcl9.sga_max_size=16G\n*.sga_max_size=8G\n",
                Outlook::Hugetlb,
                4100,
                Severity::Ok,
                "and a restart keeps them.",
            ),
        ] {
            let host = host(kernel, None, "", None);
            host.write(&in_home, file);
            let survey = host.survey();
            let status = &running(&survey, "orcl").status;
            assert_eq!(
                (
                    status.forecast.outlook,
                    status.forecast.needed,
                    status.verdict().0
                ),
                (outlook, Some(Pages(needed)), verdict),
                "{kernel} {file} {:?}",
                status.facts.pending
            );
            let text = advice::message(status);
            assert!(text.contains(said), "{file}: {text}");
            assert!(!text.contains("huge_pages ="), "{text}");
            assert_eq!(setting(&survey, "orcl"), Some("TRUE"));
        }
    }
}

/// Values that only Oracle may understand, and pools for which the SGA grows.
#[test]
fn a_parameter_file_that_is_not_understood() {
    for (file, part) in [
        ("*.sga_max_size=16.5G\n", Some("sga_max_size")),
        ("*.sga_max_size=\\\n 24G\n", Some("sga_max_size")),
        (
            "*.sga_max_size=8G\n*.memory_target=1e10\n",
            Some("memory_target"),
        ),
        (
            "*.sga_max_size=8G\n*.use_large_pages=MAYBE\n",
            Some("use_large_pages"),
        ),
        (
            "*.sga_max_size=8G\n*.db_cache_size=6G\n*.shared_pool_size=3G\n",
            Some("its pools are larger"),
        ),
        (
            "*.sga_max_size=8G\n*.db_cache_size=6G\n*.db_flash_cache_size=64G\n",
            None,
        ),
        (
            "*.sga_max_size=8G\n*.db_cache_size='6 GB'\n*.control_files=(a,\\\nb)\n",
            None,
        ),
    ] {
        let host = host(KERNELS[1], None, "", None);
        host.write(&format!("{DB_HOME}/dbs/spfileorcl.ora"), file);
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        assert_eq!(
            instance.status.facts.pending == Pending::Unknown,
            part.is_some(),
            "{file} {:?}",
            instance.notes
        );
        if let Some(part) = part {
            assert!(
                instance.notes.iter().any(|note| note.contains(part)),
                "{file} {:?}",
                instance.notes
            );
        }
    }
}

/// The pool for the next start is what is recommended, and the hint has it.
#[test]
fn the_pool_for_the_next_start() {
    let host = host(KERNELS[1], None, "", None);
    host.write(
        &format!("{DB_HOME}/dbs/spfileorcl.ora"),
        "*.sga_max_size=16G\n*.use_large_pages='ONLY'\n",
    );
    let survey = host.survey();
    let sizing = sizing(&survey);
    assert_eq!(sizing.recommended, Some(Pages(8196)));
    let status = &running(&survey, "orcl").status;
    assert_eq!(
        (status.recommended, status.to_land),
        (Some(Pages(8196)), Some(Pages(8196)))
    );
    let hint = advice::hint(status).unwrap();
    assert!(hint.contains("sysctl -w vm.nr_hugepages=8196"), "{hint}");
    let advice = host_advice::recommendations(&survey, &[sizing]);
    assert!(
        advice
            .iter()
            .any(|one| one.recommendation.command.as_deref()
                == Some("sysctl -w vm.nr_hugepages=8196"))
    );
}

#[test]
fn an_spfile_in_asm_by_its_log() {
    const ASM: Option<&str> = Some("+DATA/ORCL/PARAMETERFILE/spfile.270.1130000001");
    for (behind, changed) in [
        ("", None),
        (
            "ALTER SYSTEM SET sga_max_size=16G SCOPE=SPFILE SID='*';\nALTER SYSTEM SET use_large_pages='ONLY' SCOPE=SPFILE SID='*';\n",
            Some("sga_max_size"),
        ),
        (
            "ALTER SYSTEM RESET use_large_pages SCOPE=SPFILE SID='*';\n",
            Some("use_large_pages"),
        ),
        (
            "ALTER SYSTEM SET lock_sga=TRUE SCOPE=SPFILE;\n",
            Some("lock_sga"),
        ),
        ("ALTER SYSTEM SET sga_target=4G SCOPE=MEMORY;\n", None),
        (
            "ALTER SYSTEM SET sga_target='4G' SCOPE=SPFILE SID='orcl2';\n",
            None,
        ),
        ("ALTER SYSTEM SET open_cursors=400 SCOPE=BOTH;\n", None),
    ] {
        let host = host(KERNELS[3], ASM, behind, None);
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        let notes = changed.map(|name| {
            format!("ALTER SYSTEM has changed {name} since the start, so what the next start asks for is unknown")
        });
        assert_eq!(instance.notes, Vec::from_iter(notes), "{behind}");
        let pending = &instance.status.facts.pending;
        assert_eq!(*pending == Pending::Unknown, changed.is_some(), "{behind}");
    }
    // init.ora points to it, and the log is of an older start.
    let host = OracleHost::new(KERNELS[3], 64, (4200, 100));
    host.run(&Running {
        segments: vec![(8200 * MIB, 2048)],
        ..Running::default()
    });
    host.write(
        &format!("{DB_HOME}/dbs/initorcl.ora"),
        "SPFILE='+DATA/ORCL/spfileorcl.ora'\n",
    );
    let survey = host.survey();
    let instance = running(&survey, "orcl");
    assert_eq!(
        (
            instance.status.forecast.outlook,
            &instance.status.facts.pending
        ),
        (Outlook::Unknown, &Pending::Unknown)
    );
    assert!(
        instance
            .notes
            .iter()
            .any(|note| note.contains("in ASM and no alert log of this start was found")),
        "{:?}",
        instance.notes
    );
    assert_eq!(instance.status.verdict().0, Severity::Notice);
}

/// What nothing shows is not invented.
#[test]
fn use_large_pages_is_known_or_null() {
    for (log, file, expected) in [
        (None, None, None),
        (
            None,
            Some("*.sga_target=8G\n*.use_large_pages='ONLY'\n"),
            Some("ONLY"),
        ),
        (Some(Some("AUTO")), None, Some("AUTO")),
        (
            Some(Some("ONLY")),
            Some("*.use_large_pages='FALSE'\n*.sga_target=8G\n"),
            Some("ONLY"),
        ),
        // The list of what was set does not have it.
        (Some(None), None, Some("TRUE")),
    ] {
        let host = OracleHost::new(KERNELS[0], 64, (4200, 100));
        host.run(&Running {
            segments: vec![(8200 * MIB, 2048)],
            ..Running::default()
        });
        if let Some(setting) = log {
            host.log(
                "orcl",
                "orcl",
                &host.start(&LoggedStart {
                    parameters: logged("8G", setting),
                    ..LoggedStart::default()
                }),
            );
        }
        if let Some(file) = file {
            host.write(&format!("{DB_HOME}/dbs/spfileorcl.ora"), file);
        }
        let survey = host.survey();
        assert_eq!(setting(&survey, "orcl"), expected, "{log:?} {file:?}");
        let is_noted = running(&survey, "orcl")
            .notes
            .iter()
            .any(|note| note.starts_with("use_large_pages is unknown"));
        assert_eq!(is_noted, expected.is_none());
    }
}

/// srvctl starts an instance with an spfile that no home and no log names.
#[test]
fn an_spfile_that_only_grid_infrastructure_knows() {
    for (has_grid, pending) in [(false, Pending::Unchanged), (true, Pending::Unknown)] {
        let host = OracleHost::new(KERNELS[3], 64, (4200, 100));
        host.run(&Running {
            segments: vec![(8200 * MIB, 2048)],
            ..Running::default()
        });
        if has_grid {
            host.write(
                "/etc/oracle/olr.loc",
                "olrconfig_loc=/u01/app/19.0.0/grid/cdata/db1.olr\n",
            );
        }
        let survey = host.survey();
        assert_eq!(running(&survey, "orcl").status.facts.pending, pending);
    }
}

/// A log that logrotate or Oracle put aside still has the start, and DIAGNOSTIC_DEST of the spfile leads to it (SAP).
#[test]
fn rotated_logs_and_other_destinations() {
    for place in [
        "/u01/app/oracle/diag/rdbms/orcl/orcl/trace/alert_orcl.log.1",
        "/u01/app/oracle/diag/rdbms/orcl/orcl/trace/alert_orcl.log-20261101",
        "/oracle/ORC/saptrace/diag/rdbms/orcl/orcl/trace/alert_orcl.log",
    ] {
        let host = OracleHost::new(KERNELS[5], 64, (4200, 100));
        host.run(&Running {
            segments: vec![(8200 * MIB, 2048)],
            ..Running::default()
        });
        let start = host.start(&LoggedStart {
            parameters: logged("8G", Some("ONLY")),
            ..LoggedStart::default()
        });
        let later = format!("{}\nThread 1 advanced to log sequence 7\n", host.at(60));
        if place.contains("saptrace") {
            host.write(
                &format!("{DB_HOME}/dbs/spfileorcl.ora"),
                "*.diagnostic_dest='/oracle/ORC/saptrace'\n*.sga_target=8G\n*.use_large_pages='ONLY'\n",
            );
        } else {
            host.log("orcl", "orcl", &later);
        }
        host.write(place, &start);
        let survey = host.survey();
        assert_eq!(setting(&survey, "orcl"), Some("ONLY"), "{place}");
        assert_eq!(
            running(&survey, "orcl").id.version.as_deref(),
            Some("19.24.0.0.0"),
            "{place}"
        );
    }
}

/// `ALTER SYSTEM` stands in any of the logs since the start.
#[test]
fn a_change_behind_a_rotated_start() {
    const CHANGE: &str = "ALTER SYSTEM SET sga_max_size='24G' SCOPE=SPFILE SID='*';\n";
    for (at, pending) in [
        (None, Pending::Unchanged),
        (Some(0), Pending::Unknown),
        (Some(1), Pending::Unknown),
    ] {
        let spfile = Some("+DATA/ORCL/spfileorcl.ora");
        let host = host(KERNELS[3], spfile, "", None);
        let log = "/u01/app/oracle/diag/rdbms/orcl/orcl/trace/alert_orcl.log";
        let start = std::fs::read_to_string(host.path(log)).unwrap();
        let line = format!("{}\nThread 1 advanced to log sequence 7\n", host.at(60));
        for (number, suffix) in ["", ".1", ".2"].into_iter().enumerate() {
            let change = if at == Some(number) { CHANGE } else { "" };
            let text = if number == 2 { &start } else { &line };
            let path = format!("{log}{suffix}");
            host.write(&path, &format!("{text}{change}"));
            let written =
                std::time::UNIX_EPOCH + NOW - std::time::Duration::from_secs(60 * number as u64);
            let file = std::fs::File::options().append(true).open(host.path(&path));
            file.unwrap().set_modified(written).unwrap();
        }
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(status.facts.pending, pending, "{at:?}");
    }
}

/// srvctl starts it with the spfile in ASM, and `sqlplus` with the file of the home.
#[test]
fn a_file_of_the_home_beside_an_spfile_in_asm() {
    for (spfile, pending) in [
        (None, Pending::Unchanged),
        (Some("+DATA/ORCL/spfileorcl.ora"), Pending::Unknown),
    ] {
        let host = host(KERNELS[3], spfile, "", None);
        host.write(
            &format!("{DB_HOME}/dbs/spfileorcl.ora"),
            "*.sga_max_size=8G\n*.sga_target=8G\n*.use_large_pages='TRUE'\n",
        );
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        assert_eq!(instance.status.facts.pending, pending);
        let is_noted = instance
            .notes
            .iter()
            .any(|note| note.contains("read an spfile in ASM"));
        assert_eq!(
            is_noted,
            pending == Pending::Unknown,
            "{:?}",
            instance.notes
        );
    }
}

/// AUTO asks the kernel for what the pool lacks: no promise, and no start that fails, unless the host is too small.
#[test]
fn auto_depends_on_the_kernel() {
    for (setting, free, memory, outlook, verdict) in [
        ("AUTO", 4200, 64, Outlook::Hugetlb, Severity::Ok),
        ("AUTO", 0, 64, Outlook::Unknown, Severity::Notice),
        ("AUTO_ONLY", 0, 64, Outlook::Unknown, Severity::Notice),
        ("AUTO_ONLY", 0, 15, Outlook::Fails, Severity::Critical),
    ] {
        let host = OracleHost::new(KERNELS[3], memory, (free, 0));
        let segments = vec![(8200 * MIB, 2048)];
        host.run(&Running {
            segments,
            ..Running::default()
        });
        host.write(
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            "4100\n",
        );
        host.write(
            "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages",
            if free == 0 { "4100\n" } else { "0\n" },
        );
        host.log(
            "orcl",
            "orcl",
            &host.start(&LoggedStart {
                parameters: logged("8G", Some(setting)),
                ..LoggedStart::default()
            }),
        );
        if memory == 15 {
            host.write(
                &format!("{DB_HOME}/dbs/spfileorcl.ora"),
                "*.sga_max_size=16G\n*.use_large_pages='AUTO_ONLY'\n",
            );
        }
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            (status.forecast.outlook, status.verdict().0),
            (outlook, verdict),
            "{setting} {free} {memory} {:?}",
            status.findings
        );
        assert!(matches!(
            status.facts.requested.product,
            Product::Oracle {
                use_large_pages: Some(UseLargePages::Auto | UseLargePages::AutoOnly),
                ..
            }
        ));
    }
}

/// ASM has MEMORY_TARGET by default, and would gain nothing without it.
#[test]
fn asm_in_shm_is_well() {
    for kernel in KERNELS {
        let host = OracleHost::new(kernel, 16, (0, 0));
        host.run(&Running {
            pid: 5000,
            sid: "+ASM1",
            kind: "asm",
            home: GRID_HOME,
            segments: vec![(1100 * MIB, 4)],
            ..Running::default()
        });
        for file in ["maps", "smaps"] {
            let path = format!("/proc/5000/{file}");
            let text = std::fs::read_to_string(host.path(&path)).unwrap();
            host.write(
                &path,
                &text.replace("/SYSV00000000 (deleted)", "/dev/shm/ora_+ASM1_0_0"),
            );
        }
        let survey = host.survey();
        let asm = running(&survey, "+ASM1");
        assert_eq!(
            (asm.status.cause, asm.landed_in()),
            (Some(Cause::MemoryTarget), Landing::Base)
        );
        assert_eq!(
            (asm.status.verdict().0, advice::hint(&asm.status)),
            (Severity::Ok, None),
            "{:?}",
            asm.status.findings
        );
        assert_eq!(
            advice::message(&asm.status),
            "The SGA (1100 MB) is in files of /dev/shm, the default of ASM, which huge pages would not improve."
        );
        assert_eq!(host_advice::recommendations(&survey, &[]), []);
    }
}

/// The Managed Global Area (18c and later) is in files of /dev/shm too, and may be larger than the SGA.
#[test]
fn an_mga_is_no_memory_target() {
    let host = OracleHost::new(KERNELS[3], 64, (1025, 0));
    host.run(&Running {
        segments: vec![(2050 * MIB, 2048), (3 * GIB, 4)],
        ..Running::default()
    });
    for file in ["maps", "smaps"] {
        let path = format!("/proc/4000/{file}");
        let text = std::fs::read_to_string(host.path(&path)).unwrap();
        host.write(
            &path,
            &text.replace(
                "101                      /SYSV00000000 (deleted)",
                "101                      /dev/shm/ora_orcl_7_0",
            ),
        );
    }
    let survey = host.survey();
    let instance = running(&survey, "orcl");
    assert_eq!(
        (instance.landed_in(), instance.status.forecast.needed),
        (Landing::Hugetlb, Some(Pages(1025)))
    );
    assert!(matches!(
        instance.status.facts.requested.product,
        Product::Oracle {
            memory_target: false,
            ..
        }
    ));
}
