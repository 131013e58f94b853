//! How hints say to stop and start what Grid Infrastructure manages.

use hugepage_assess::advice;
use hugepage_host::host_advice;

use crate::builder::*;

const CLUSTER: &str = "ocrconfig_loc=+OCR/rac/OCRFILE/registry.255.1\nlocal_only=FALSE\n";
const RESTART: &str = "ocrconfig_loc=/u01/app/19.0.0/grid/cdata/localhost/local.ocr\nlocal_only=TRUE\n";
const POOL: &str = "Run \"sysctl -w vm.nr_hugepages=2048\" (all servers seen here; `hugepage-sidecar size` counts all of the host) and ";

/// A host with Grid Infrastructure, where `ocr_loc` is not empty.
fn host_of(ocr_loc: &str) -> OracleHost {
    let host = OracleHost::new(KERNELS[1], 16, (100, 100));
    if !ocr_loc.is_empty() {
        host.write("/etc/oracle/olr.loc", &format!("olrconfig_loc={GRID_HOME}/cdata/db01.olr\ncrs_home={GRID_HOME}\n"));
        host.write("/etc/oracle/ocr.loc", ocr_loc);
    }
    host
}

fn parameters(more: &[&str]) -> Vec<String> {
    let all = ["sga_max_size = 4G", "use_large_pages = \"TRUE\""].iter().chain(more);
    all.map(|line| (*line).to_owned()).collect()
}

/// The hint for an instance of 4 GB in base pages, started by `service`, with a line in oratab and these parameters.
fn hint_of(ocr_loc: &str, sid: &str, service: &str, oratab: &str, version: &str, more: &[&str]) -> String {
    let host = host_of(ocr_loc);
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N{oratab}\n"));
    host.run(&Running { sid, segments: vec![(4 * GIB, 4)], ..Running::default() });
    for pid in [4000, 4001] {
        host.write(&format!("/proc/{pid}/cgroup"), &format!("0::{service}\n"));
    }
    host.log(
        "orcl",
        sid,
        &host.start(&LoggedStart { version, parameters: parameters(more), ..LoggedStart::default() }),
    );
    let survey = host.survey();
    advice::hint(&running(&survey, sid).status).unwrap()
}

#[test]
fn a_hint_names_the_command_of_what_manages_the_instance() {
    const OHASD: &str = "/system.slice/oracle-ohasd.service";
    const SESSION: &str = "/user.slice/user-54321.slice/session-4.scope";
    const RAC: &[&str] = &["db_name = \"orcl\"", "cluster_database = TRUE"];
    const SINGLE: &[&str] = &["db_name = \"orcl\""];
    const AGENT: &str = "\t\t# line added by Agent";
    let instance = "restart the instance with \"srvctl stop instance -db orcl -instance orcl1 && srvctl start instance -db orcl \
                    -instance orcl1\".";
    let database = "restart the instance with \"srvctl stop database -db orcl && srvctl start database -db orcl\".";
    let plain = "restart the instance.";
    for (case, ocr_loc, sid, service, oratab, version, more, expected) in [
        ("RAC", CLUSTER, "orcl1", OHASD, "", "19.24.0.0.0", RAC, instance),
        ("RAC, started by SQL*Plus", CLUSTER, "orcl1", SESSION, "", "19.24.0.0.0", RAC, instance),
        ("RAC by its name alone", CLUSTER, "orcl1", SESSION, "", "19.24.0.0.0", SINGLE, instance),
        (
            "RAC, a registry that does not tell",
            "ocrconfig_loc=+OCR\n",
            "orcl1",
            SESSION,
            "",
            "19.24.0.0.0",
            RAC,
            instance,
        ),
        (
            "RAC with a SID of its own",
            CLUSTER,
            "left",
            OHASD,
            "",
            "19.24.0.0.0",
            RAC,
            &instance.replace("orcl1", "left"),
        ),
        ("RAC One Node", CLUSTER, "orcl_1", OHASD, "", "19.24.0.0.0", RAC, database),
        (
            "RAC of 11.2",
            CLUSTER,
            "orcl1",
            OHASD,
            "",
            "11.2.0.4.0",
            RAC,
            "restart the instance with \"srvctl stop instance -d orcl -i orcl1 && srvctl start instance -d orcl -i orcl1\".",
        ),
        ("a single instance in a cluster", CLUSTER, "orcl", OHASD, "", "19.24.0.0.0", SINGLE, database),
        ("Oracle Restart", RESTART, "orcl", OHASD, "", "19.24.0.0.0", SINGLE, database),
        ("Oracle Restart, by its agent", RESTART, "orcl", SESSION, AGENT, "19.24.0.0.0", SINGLE, database),
        (
            "another unique name",
            RESTART,
            "orcl",
            OHASD,
            "",
            "19.24.0.0.0",
            &["db_name = \"orcl\"", "db_unique_name = \"orcl_stby$\""],
            &database.replace("-db orcl", "-db 'orcl_stby$'"),
        ),
        // Nothing shows that it is registered.
        ("Oracle Restart, a session", RESTART, "orcl", SESSION, "", "19.24.0.0.0", SINGLE, plain),
        ("no Grid Infrastructure", "", "orcl1", OHASD, AGENT, "19.24.0.0.0", RAC, plain),
        // A name that is none is in no command.
        ("a name with a command", RESTART, "orcl", OHASD, "", "19.24.0.0.0", &["db_name = \"x; reboot\""], plain),
    ] {
        let said = hint_of(ocr_loc, sid, service, oratab, version, more);
        assert_eq!(said, format!("{POOL}{expected}"), "{case}");
        assert!(said.len() <= 300, "{case}: it fits into hugepage_status.hint");
    }
}

/// ASM of a cluster stops only with the stack; memlock of what ohasd starts needs the stack restarted.
#[test]
fn the_stack_is_restarted_by_crsctl() {
    for (ocr_loc, restart, stack) in [
        (CLUSTER, " with \"crsctl stop crs && crsctl start crs\".", "crsctl stop crs && crsctl start crs, as root"),
        (RESTART, ".", "crsctl stop has && crsctl start has, as root"),
    ] {
        let host = host_of(ocr_loc);
        host.run(&Running {
            sid: "+ASM1",
            kind: "asm",
            home: GRID_HOME,
            segments: vec![(4 * GIB, 4)],
            memlock: Some(64 << 10),
            ..Running::default()
        });
        let survey = host.survey();
        let said = advice::hint(&running(&survey, "+ASM1").status).unwrap();
        assert!(said.contains(&format!("and restart the instance{}", restart.trim_end_matches('.'))), "{said}");
        let advice = host_advice::recommendations(&survey, &[sizing(&survey)]);
        let memlock = advice.iter().find(|one| one.recommendation.setting == "memlock").unwrap();
        assert!(memlock.recommendation.reason.contains(&format!("restart the stack ({stack})")), "{memlock:?}");
    }
}

/// Stopped instances are started by what manages them; in a cluster oratab has the database, and the log the instance.
#[test]
fn stopped_instances_are_started_by_srvctl() {
    for (ocr_loc, sid, oratab, command) in [
        (CLUSTER, "orcl1", "", " with \"srvctl start instance -db orcl -instance orcl1\""),
        (RESTART, "orcl", " # line added by Agent", " with \"srvctl start database -db orcl\""),
        (RESTART, "orcl", "", ""),
        ("", "orcl1", "", ""),
    ] {
        let host = host_of(ocr_loc);
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N{oratab}\n"));
        let start =
            LoggedStart { ago: 700_000, parameters: parameters(&["db_name = \"orcl\""]), ..LoggedStart::default() };
        host.log("orcl", sid, &host.start(&start));
        let survey = host.survey();
        let said = stopped(&survey, sid).hint(&[sizing(&survey)]).unwrap();
        assert_eq!(
            said,
            format!(
                "Run \"sysctl -w vm.nr_hugepages=2052\" (all servers seen here; `hugepage-sidecar size` counts all of the host) and start the instance{command}."
            )
        );
    }
}
