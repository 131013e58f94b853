//! Layouts of hosts with Oracle, and what is true of each.

use crate::builder::*;

const ASM_SPFILE: &str = "+DATA/ORCL/PARAMETERFILE/spfile.270.1130000001";

/// A layout with the answers: instance (landed, pages, cause, outlook, verdict), stopped (name, state, outlook),
/// recommended pool, and the settings that are found.
pub struct Layout {
    pub name: &'static str,
    pub make: fn(&str) -> OracleHost,
    pub running: &'static [(
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    )],
    pub stopped: &'static [(&'static str, &'static str, &'static str)],
    pub recommended: u64,
    pub findings: &'static [&'static str],
}

fn parameters(sga: &str, setting: &str) -> Vec<String> {
    vec![
        format!("sga_max_size = {sga}"),
        format!("use_large_pages = \"{setting}\""),
        "db_name = \"orcl\"".to_owned(),
    ]
}

fn full(host: &OracleHost, sid: &str, database: &str, spfile: Option<&str>, behind: &str) {
    host.run(&Running {
        sid,
        segments: vec![(8200 * MIB, 2048)],
        ..Running::default()
    });
    let start = LoggedStart {
        parameters: parameters("8G", "TRUE"),
        table: vec![("4K", None, 5, 5), ("2048K", Some(4100), 4100, 4100)],
        spfile,
        ..LoggedStart::default()
    };
    host.log(database, sid, &(host.start(&start) + behind));
}

fn asm(host: &OracleHost) {
    host.run(&Running {
        pid: 5000,
        sid: "+ASM1",
        kind: "asm",
        home: GRID_HOME,
        segments: vec![(GIB, 4)],
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
}

pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "one instance, all in huge pages",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (4100, 0));
            host.write("/etc/oratab", &format!("orcl:{DB_HOME}:Y\n"));
            full(&host, "orcl", "orcl", None, "");
            host
        },
        running: &[("orcl", "hugetlb", "4100", "-", "hugetlb", "ok")],
        stopped: &[],
        recommended: 4100,
        findings: &[],
    },
    Layout {
        name: "RAC with ASM",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (4100, 0));
            host.write(
                "/etc/oratab",
                &format!("+ASM1:{GRID_HOME}:N\norcl:{DB_HOME}:N\n"),
            );
            full(&host, "orcl1", "orcl", Some(ASM_SPFILE), "");
            asm(&host);
            host
        },
        running: &[
            ("orcl1", "hugetlb", "4100", "-", "hugetlb", "ok"),
            ("+ASM1", "base", "512", "memory_target", "base", "ok"),
        ],
        stopped: &[],
        recommended: 4100,
        findings: &[],
    },
    Layout {
        name: "RAC One Node, a larger SGA set in ASM",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (4100, 0));
            host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
            let set = "ALTER SYSTEM SET sga_max_size=16G SCOPE=SPFILE SID='*';\nALTER SYSTEM SET use_large_pages='ONLY' SCOPE=SPFILE;\n";
            full(&host, "orcl_1", "orcl", Some(ASM_SPFILE), set);
            host
        },
        running: &[("orcl_1", "hugetlb", "-", "-", "unknown", "notice")],
        stopped: &[],
        recommended: 4100,
        findings: &[],
    },
    Layout {
        name: "two homes, one stopped, one that starts at boot and lacks its pages",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (5000, 900));
            let old = "/u01/app/oracle/product/12.2.0/dbhome_1";
            host.home(old);
            host.write(
                "/etc/oratab",
                &format!("orcl:{DB_HOME}:Y\nold:{old}:N\nboot:{old}:Y\n"),
            );
            host.write(
                &format!("{old}/dbs/initold.ora"),
                "sga_target=1G\nuse_large_pages=FALSE\n",
            );
            host.write(
                &format!("{old}/dbs/spfileboot.ora"),
                "*.sga_target=4G\n*.use_large_pages='ONLY'\n",
            );
            full(&host, "orcl", "orcl", None, "");
            host
        },
        running: &[("orcl", "hugetlb", "4100", "-", "hugetlb", "ok")],
        stopped: &[("old", "stopped", "base"), ("boot", "stopped", "fails")],
        recommended: 6152,
        findings: &["vm.nr_hugepages"],
    },
    Layout {
        name: "a start that failed",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (1000, 1000));
            host.home(DB_HOME);
            host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
            let failed = LoggedStart {
                pmon: None,
                parameters: parameters("8G", "ONLY"),
                table: vec![("2048K", Some(1000), 4097, 0)],
                errors: vec![
                    "ORA-27137: unable to allocate Large Pages to create a shared memory segment",
                ],
                ..LoggedStart::default()
            };
            host.log("orcl", "orcl", &host.start(&failed));
            host
        },
        running: &[],
        stopped: &[("orcl", "failed", "fails")],
        recommended: 4097,
        findings: &["vm.nr_hugepages"],
    },
    Layout {
        name: "nothing but processes",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (2000, 0));
            host.run(&Running {
                segments: vec![(4000 * MIB, 2048), (4000 * MIB, 4)],
                ..Running::default()
            });
            host
        },
        running: &[(
            "orcl",
            "mixed",
            "4000",
            "pool_too_small",
            "mixed",
            "warning",
        )],
        stopped: &[],
        recommended: 4000,
        findings: &["vm.nr_hugepages"],
    },
    Layout {
        name: "SAP: another diagnostic destination, ONLY",
        make: |kernel| {
            let host = OracleHost::new(kernel, 64, (4100, 0));
            let home = "/oracle/PRD/19.0.0";
            host.write("/etc/oratab", &format!("PRD:{home}:N\n"));
            host.run(&Running {
                sid: "PRD",
                home,
                segments: vec![(8200 * MIB, 2048)],
                ..Running::default()
            });
            host.write(
                &format!("{home}/dbs/spfilePRD.ora"),
                "*.diagnostic_dest='/oracle/PRD/saptrace'\n*.sga_max_size=8G\n*.use_large_pages='ONLY'\n",
            );
            let start = LoggedStart {
                parameters: parameters("8G", "ONLY"),
                ..LoggedStart::default()
            };
            host.write(
                "/oracle/PRD/saptrace/diag/rdbms/prd/PRD/trace/alert_PRD.log",
                &host.start(&start),
            );
            host
        },
        running: &[("PRD", "hugetlb", "4100", "-", "hugetlb", "ok")],
        stopped: &[],
        recommended: 4100,
        findings: &[],
    },
];
