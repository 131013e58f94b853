//! Findings on the whole host: a kernel without huge pages, a pool that nobody can use, transparent huge pages.

use std::fs;

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_facts::Cause;

use crate::builder::*;

/// An SGA of 4 GB in base pages, with these parameters.
fn in_base(host: &OracleHost, parameters: &[&str]) {
    host.run(&Running {
        segments: vec![(4 * GIB, 4)],
        ..Running::default()
    });
    let parameters = parameters.iter().map(|line| (*line).to_owned()).collect();
    host.log(
        "orcl",
        "orcl",
        &host.start(&LoggedStart {
            parameters,
            ..LoggedStart::default()
        }),
    );
}

fn without_huge_pages(host: &OracleHost) {
    fs::remove_dir_all(host.path("/sys/kernel/mm/hugepages")).unwrap();
    let text = fs::read_to_string(host.path("/proc/meminfo")).unwrap();
    let kept = text
        .lines()
        .filter(|line| !line.starts_with("Huge"))
        .map(|line| format!("{line}\n"));
    host.write("/proc/meminfo", &kept.collect::<String>());
}

#[test]
fn a_kernel_without_huge_pages() {
    for (setting, outlook, severity) in [
        ("TRUE", Outlook::Base, Severity::Warning),
        ("ONLY", Outlook::Fails, Severity::Critical),
        ("FALSE", Outlook::Base, Severity::Notice),
    ] {
        let host = OracleHost::new(KERNELS[1], 64, (0, 0));
        without_huge_pages(&host);
        in_base(
            &host,
            &[
                "sga_max_size = 4G",
                &format!("use_large_pages = \"{setting}\""),
            ],
        );
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(
            (status.forecast.outlook, status.verdict().0),
            (outlook, severity),
            "{setting}"
        );
        if setting != "FALSE" {
            assert_eq!(status.cause, Some(Cause::PageSizeUnsupported));
            assert!(
                advice::message(status).contains("this kernel has no huge pages"),
                "{}",
                advice::message(status)
            );
            let hint = advice::hint(status).unwrap();
            assert_eq!(
                hint,
                "Set use_large_pages = FALSE, or boot a kernel that has huge pages."
            );
        }
    }
}

#[test]
fn a_stopped_instance_on_a_kernel_without_huge_pages() {
    for (setting, outlook, severity, said) in [
        (
            "ONLY",
            Outlook::Fails,
            Severity::Warning,
            "would fail: use_large_pages = ONLY, and this kernel has no huge pages",
        ),
        (
            "TRUE",
            Outlook::Base,
            Severity::Notice,
            "asks for no huge pages: this kernel has no huge pages",
        ),
    ] {
        let host = OracleHost::new(KERNELS[1], 64, (0, 0));
        without_huge_pages(&host);
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("down:{DB_HOME}:Y\n"));
        host.write(
            &format!("{DB_HOME}/dbs/initdown.ora"),
            &format!("sga_max_size=2G\nuse_large_pages={setting}\n"),
        );
        let survey = host.survey();
        let down = stopped(&survey, "down");
        assert_eq!(
            (down.outlook(), down.severity()),
            (outlook, severity),
            "{setting}"
        );
        assert_eq!(
            down.message(),
            format!("The instance is stopped; its next start {said}.")
        );
        assert_eq!(down.hint(&[]), None);
    }
}
