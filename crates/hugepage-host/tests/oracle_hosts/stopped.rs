//! Instances of oratab that do not run, and clusters whose instances have another name than oratab.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_host::host_advice;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::metrics::{MetricsSnapshot, text};
use hugepage_kernel::Pages;
use hugepage_oracle::stopped::StoppedState;
use hugepage_sizing::Wants;

use crate::builder::*;

fn parameters(sga: &str, setting: &str) -> Vec<String> {
    vec![
        "processes                = 300".to_owned(),
        format!("use_large_pages          = \"{setting}\""),
        format!("sga_max_size             = {sga}"),
        format!("sga_target               = {sga}"),
        "db_name                  = \"orcl\"".to_owned(),
    ]
}

/// Grid Infrastructure starts its instances, and oratab has `N` for them.
#[test]
fn what_grid_infrastructure_starts() {
    for (registry, starts) in [(false, false), (true, true)] {
        let host = OracleHost::new(KERNELS[3], 16, (0, 0));
        host.home(GRID_HOME);
        host.home(DB_HOME);
        host.write(
            "/etc/oratab",
            &format!("+ASM:{GRID_HOME}:N\nhand:{DB_HOME}:N\n"),
        );
        if registry {
            host.write("/etc/oracle/olr.loc", "");
        }
        let survey = host.survey();
        assert_eq!(stopped(&survey, "+ASM").starts_at_boot, starts);
        assert!(!stopped(&survey, "hand").starts_at_boot);
    }
}

/// 1000 pages run, 1028 are for a database that is down: nobody takes them away.
#[test]
fn pages_of_a_stopped_database_are_not_waste() {
    for kernel in KERNELS {
        let host = OracleHost::new(kernel, 16, (2056, 1028));
        host.write(
            "/etc/oratab",
            &format!("run:{DB_HOME}:Y\ndown:{DB_HOME}:Y\n"),
        );
        host.run(&Running {
            sid: "run",
            segments: vec![(2056 * MIB, 2048)],
            ..Running::default()
        });
        host.write(
            &format!("{DB_HOME}/dbs/initdown.ora"),
            "*.sga_max_size=2G\n*.use_large_pages='TRUE'\n",
        );
        let survey = host.survey();
        let (run, down) = (running(&survey, "run"), stopped(&survey, "down"));
        assert_eq!(down.wants, Wants::Pages(Pages(1028)), "{kernel}");
        assert_eq!(
            (down.state, down.outlook(), down.severity()),
            (StoppedState::Stopped, Outlook::Hugetlb, Severity::Notice)
        );
        assert_eq!(
            down.message(),
            "The instance is stopped; its next start would get its 1028 huge pages of 2 MB."
        );
        let sizing = sizing(&survey);
        assert_eq!(
            (sizing.recommended, run.status.recommended),
            (Some(Pages(2056)), Some(Pages(2056)))
        );
        assert_eq!(
            run.status.verdict().0,
            Severity::Ok,
            "{:?}",
            run.status.findings
        );
        let advice = host_advice::recommendations(&survey, std::slice::from_ref(&sizing));
        assert!(
            advice
                .iter()
                .all(|one| one.recommendation.setting != "vm.nr_hugepages"),
            "{advice:?}"
        );
        let verdict = HostVerdict::of_survey(&survey, &[sizing]);
        assert_eq!(
            (verdict.severity, verdict.message()),
            (
                Severity::Ok,
                "The one instance is in huge pages.".to_owned()
            )
        );
    }
}

/// The need of one is not known: no page is said to be unused.
#[test]
fn no_waste_beside_an_unknown_need() {
    let host = OracleHost::new(KERNELS[1], 16, (4000, 3000));
    host.write(
        "/etc/oratab",
        &format!("run:{DB_HOME}:Y\ndown:{DB_HOME}:Y\n"),
    );
    host.run(&Running {
        sid: "run",
        segments: vec![(2000 * MIB, 2048)],
        ..Running::default()
    });
    let survey = host.survey();
    assert!(matches!(stopped(&survey, "down").wants, Wants::Unknown(_)));
    let status = &running(&survey, "run").status;
    assert_eq!(advice::hint(status), None);
    assert!(
        advice::message(status).ends_with(
            "6000 MB is unused; whether other servers or next starts need it is unknown."
        ),
        "{}",
        advice::message(status)
    );
    let advice = host_advice::recommendations(&survey, &[sizing(&survey)]);
    assert!(
        advice
            .iter()
            .all(|one| one.recommendation.setting != "vm.nr_hugepages"),
        "{advice:?}"
    );
}

/// What does not run has series of its own: a number that is unknown has no sample, and no other series has one more.
#[test]
fn metrics_of_stopped_instances() {
    let host = OracleHost::new(KERNELS[0], 16, (100, 100));
    host.home(DB_HOME);
    let lines: String = ["boot:Y", "off:N", "dark:N"]
        .iter()
        .map(|entry| entry.replace(':', &format!(":{DB_HOME}:")) + "\n")
        .collect();
    host.write("/etc/oratab", &lines);
    host.write(
        &format!("{DB_HOME}/dbs/initboot.ora"),
        "sga_max_size=2G\nuse_large_pages=ONLY\n",
    );
    host.write(
        &format!("{DB_HOME}/dbs/initoff.ora"),
        "sga_max_size=2G\nuse_large_pages=FALSE\n",
    );
    let text = text(&MetricsSnapshot::from(&host.survey()));
    let of = |name: &str| -> Vec<_> {
        let samples = text.lines().filter_map(|line| {
            line.strip_prefix(&format!("hugepage_stopped_{name}{{kind=\"oracle\","))
        });
        samples
            .filter(|sample| !sample.ends_with("} 0"))
            .map(|sample| sample.replace('"', ""))
            .collect()
    };
    assert_eq!(
        of("state"),
        ["boot", "off", "dark"]
            .map(|name| format!("name={name},hugepage_stopped_state=stopped}} 1"))
    );
    assert_eq!(
        of("verdict"),
        ["name=boot} 2", "name=off} 1", "name=dark} 1"]
    );
    assert_eq!(of("pages_missing"), ["name=boot} 928"]);
    assert!(
        !text.contains("hugepage_verdict")
            && text.contains("hugepage_stopped_pages_missing{kind=\"oracle\",name=\"off\"} 0")
    );
}

/// A pool that is too small for what starts at boot is a warning, and the command that `size` has.
#[test]
fn a_start_at_boot_that_would_lose() {
    for (boot, setting, outlook, severity) in [
        ("Y", "TRUE", Outlook::Mixed, Severity::Warning),
        ("N", "TRUE", Outlook::Mixed, Severity::Notice),
        ("Y", "ONLY", Outlook::Fails, Severity::Warning),
        ("Y", "FALSE", Outlook::Base, Severity::Notice),
    ] {
        let host = OracleHost::new(KERNELS[0], 16, (100, 100));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("down:{DB_HOME}:{boot}\n"));
        host.write(
            &format!("{DB_HOME}/dbs/initdown.ora"),
            &format!("sga_max_size=2G\nuse_large_pages={setting}\n"),
        );
        let survey = host.survey();
        let down = stopped(&survey, "down");
        assert_eq!(
            (down.outlook(), down.severity()),
            (outlook, severity),
            "{boot} {setting}"
        );
        let sizings = [sizing(&survey)];
        let command = "Run \"sysctl -w vm.nr_hugepages=1028\", then start the instance. The number counts all servers seen here; `hugepage-sidecar size` counts the whole host.";
        assert_eq!(
            down.hint(&sizings),
            (setting != "FALSE").then(|| command.to_owned())
        );
        let said = down.message();
        match setting {
            "FALSE" => assert!(
                said.ends_with("asks for no huge pages: use_large_pages = FALSE."),
                "{said}"
            ),
            "ONLY" => {
                assert!(
                    said.contains(
                        "would fail: use_large_pages = ONLY, and only 100 of the 1028 pages"
                    ),
                    "{said}"
                )
            }
            _ => assert!(
                said.contains("not get all of its huge pages: only 100 of the 1028 pages of 2 MB"),
                "{said}"
            ),
        }
        let verdict = HostVerdict::of_survey(&survey, &sizings);
        let (of_host, text) = (verdict.severity, verdict.message());
        assert_eq!(of_host, severity);
        assert_eq!(
            text.contains("down: The instance is stopped"),
            severity == Severity::Warning,
            "{text}"
        );
    }
}

/// A start that failed is a row with the log's numbers and the way out.
#[test]
fn failed_starts_are_seen() {
    let refused = "ORA-27137: unable to allocate Large Pages to create a shared memory segment";
    for (nr, error, outlook, way_out) in [
        (
            1000,
            refused,
            Outlook::Fails,
            "Run \"sysctl -w vm.nr_hugepages=2049\", then start the instance. The number counts all servers seen here; `hugepage-sidecar size` counts the whole host.",
        ),
        (
            2049,
            refused,
            Outlook::Hugetlb,
            "Start the instance: the host now has what it lacked.",
        ),
        (
            2049,
            "ORA-27102: out of memory",
            Outlook::Unknown,
            "See the error in the alert log.",
        ),
    ] {
        let host = OracleHost::new(KERNELS[3], 16, (nr, nr));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
        let good = host.start(&LoggedStart {
            ago: 500_000,
            parameters: parameters("4G", "TRUE"),
            ..LoggedStart::default()
        });
        let failed = host.start(&LoggedStart {
            ago: 600,

            parameters: parameters("4G", "ONLY"),
            table: vec![("2048K", Some(1000), 2049, 0)],
            pmon: None,
            errors: vec![error],
            ..LoggedStart::default()
        });
        host.log("orcl", "orcl", &(good + &failed));
        let survey = host.survey();
        let down = stopped(&survey, "orcl");
        assert_eq!(
            (down.state, down.severity(), down.outlook()),
            (StoppedState::Failed, Severity::Critical, outlook)
        );
        assert_eq!(down.wants, Wants::Pages(Pages(2049)));
        let said = down.message();
        assert!(
            said.starts_with(&format!("The last start failed ({error}); ")),
            "{said}"
        );
        assert_eq!(down.hint(&[sizing(&survey)]).as_deref(), Some(way_out));
        assert_eq!(
            HostVerdict::of_survey(&survey, &[sizing(&survey)]).severity,
            Severity::Critical
        );
    }
}

/// oratab has the database, the instance has a number: of RAC, of RAC One Node, of a standby with another unique name.
#[test]
fn a_database_of_a_cluster_is_one() {
    for kernel in KERNELS {
        for (entry, sid, unique_name, logged) in [
            ("orcl", "orcl1", "orcl", true),
            ("orcl", "orcl_1", "orcl", true),
            ("orcl_stby", "orcl1", "orcl_stby", true),
            // Without a log the name tells.
            ("orcl", "orcl1", "orcl", false),
            ("ORCL", "ORCL2", "orcl", true),
        ] {
            let host = OracleHost::new(kernel, 16, (2001, 0));
            let home = DB_HOME;
            host.write(
                "/etc/oratab",
                &format!("+ASM1:{GRID_HOME}:N\n{entry}:{home}:N\n"),
            );
            host.run(&Running {
                sid,
                segments: vec![(4002 * MIB, 2048)],
                ..Running::default()
            });
            host.run(&Running {
                pid: 5000,
                sid: "+ASM1",
                kind: "asm",
                home: GRID_HOME,
                segments: vec![(GIB, 4)],
                ..Running::default()
            });
            if logged {
                let start = LoggedStart {
                    parameters: parameters("4000M", "TRUE"),
                    table: vec![("2048K", Some(2001), 2001, 2001)],
                    ..LoggedStart::default()
                };
                host.log(unique_name, sid, &host.start(&start));
            }
            let survey = host.survey();
            let names: Vec<_> = survey
                .stopped
                .iter()
                .map(|stopped| stopped.name.as_str())
                .collect();
            assert_eq!(names, [""; 0], "{entry} {sid} {logged}");
            let of_database: Vec<_> = sizing(&survey)
                .needs
                .into_iter()
                .filter(|need| need.name == sid)
                .collect();
            assert_eq!(of_database.len(), 1, "{kernel} {entry} {sid} {logged}");
            assert_eq!(of_database[0].pages, Pages(2001));
        }
    }
}

/// Down, both names of oratab are the one instance that has a log there.
#[test]
fn a_stopped_database_of_a_cluster_is_one() {
    for (entries, sids) in [
        ("orcl orcl1", "orcl1"),
        ("orcl", "orcl1"),
        ("orcl_1", "orcl_1"),
    ] {
        let host = OracleHost::new(KERNELS[1], 16, (0, 0));
        host.home(DB_HOME);
        let lines: String = entries
            .split(' ')
            .map(|entry| format!("{entry}:{DB_HOME}:N\n"))
            .collect();
        host.write("/etc/oratab", &lines);
        let start = LoggedStart {
            ago: 700_000,
            parameters: parameters("4000M", "TRUE"),
            table: vec![("2048K", Some(2001), 2001, 2001)],
            ..LoggedStart::default()
        };
        host.log("orcl", sids, &host.start(&start));
        let survey = host.survey();
        let names: Vec<_> = survey
            .stopped
            .iter()
            .map(|stopped| stopped.name.as_str())
            .collect();
        assert_eq!(names, [sids], "{entries}");
        assert_eq!(sizing(&survey).recommended, Some(Pages(2001)));
    }
}

/// Two databases whose names look like those of a cluster are two.
#[test]
fn names_alone_make_no_cluster() {
    let host = OracleHost::new(KERNELS[1], 16, (1000, 0));
    host.write(
        "/etc/oratab",
        &format!("prod:{DB_HOME}:N\nprod1:{DB_HOME}:N\n"),
    );
    host.run(&Running {
        sid: "prod1",
        segments: vec![(2000 * MIB, 2048)],
        ..Running::default()
    });
    host.write(&format!("{DB_HOME}/dbs/initprod.ora"), "sga_max_size=1G\n");
    for logged in [false, true] {
        if logged {
            let mut of_prod1 = parameters("2000M", "TRUE");
            of_prod1[4] = "db_name = \"prod1\"".to_owned();
            host.log(
                "prod1",
                "prod1",
                &host.start(&LoggedStart {
                    parameters: of_prod1,
                    ..LoggedStart::default()
                }),
            );
            host.write("/etc/oratab", &format!("prod:{DB_HOME}:N\n"));
        }
        let survey = host.survey();
        assert_eq!(
            stopped(&survey, "prod").wants,
            Wants::Pages(Pages(516)),
            "{logged}"
        );
    }
}

/// A home that was removed leaves its line in oratab, and agents have lines that are no instances.
#[test]
fn a_home_without_its_program_is_not_counted() {
    let host = OracleHost::new(KERNELS[1], 32, (4200, 4200));
    host.home(DB_HOME);
    host.write(
        "/etc/oratab",
        &format!("orcl:{DB_HOME}:Y\nold:/u01/app/oracle/product/11.2.0/db_1:Y\nagent:/u01/app/oracle/agent:N\n"),
    );
    host.write("/u01/app/oracle/agent/bin/emctl", "");
    host.write(
        &format!("{DB_HOME}/dbs/initorcl.ora"),
        "*.sga_max_size=4G\n",
    );
    let start = host.start(&LoggedStart {
        parameters: parameters("4G", "ONLY"),
        table: vec![("2048K", Some(4200), 2049, 2049)],
        ..LoggedStart::default()
    });
    host.log("orcl", "orcl", &start);
    host.log("old", "old", &start);
    let survey = host.survey();
    assert_eq!(stopped(&survey, "orcl").outlook(), Outlook::Hugetlb);
    assert_eq!(survey.stopped.len(), 1);
    for name in ["old", "agent"] {
        let note = format!("{name} of oratab is not counted: its home has no bin/oracle");
        assert!(survey.notes.contains(&note), "{:?}", survey.notes);
    }
}

/// Errors behind the last start that a rotated log has are those of an instance that ran.
#[test]
fn errors_of_an_instance_that_ran() {
    for error in [
        "ORA-04031: unable to allocate 4160 bytes of shared memory",
        "ORA-27300: OS system dependent operation:fork failed with status: 11",
        "PMON (ospid: 712): terminating the instance due to ORA error 472",
    ] {
        let host = OracleHost::new(KERNELS[1], 32, (4200, 4200));
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
        host.write(
            &format!("{DB_HOME}/dbs/initorcl.ora"),
            "*.sga_max_size=4G\n",
        );
        host.log("orcl", "orcl", &format!("{}\n{error}\n", host.at(600)));
        let survey = host.survey();
        assert_eq!(
            stopped(&survey, "orcl").state,
            StoppedState::Stopped,
            "{error}"
        );
    }
}
