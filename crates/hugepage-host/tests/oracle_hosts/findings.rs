//! Findings on the whole host: a kernel without huge pages, a pool that nobody can use, transparent huge pages.

use std::fs;

use hugepage_assess::advice::{self, Recommendation};
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::Cause;
use hugepage_host::{Survey, host_advice};

use crate::builder::*;

fn recommendations(survey: &Survey) -> Vec<Recommendation> {
    let sizings = survey.sizings();
    host_advice::recommendations(survey, &sizings).into_iter().map(|one| one.recommendation).collect()
}

fn found(survey: &Survey, setting: &str) -> Option<Recommendation> {
    let mut all = recommendations(survey).into_iter().filter(|one| one.setting == setting);
    let found = all.next();
    assert_eq!(all.next(), None, "once");
    found
}

/// An SGA of 4 GB in base pages, with these parameters.
fn in_base(host: &OracleHost, parameters: &[&str]) {
    host.run(&Running { segments: vec![(4 * GIB, 4)], ..Running::default() });
    let parameters = parameters.iter().map(|line| (*line).to_owned()).collect();
    host.log("orcl", "orcl", &host.start(&LoggedStart { parameters, ..LoggedStart::default() }));
}

/// The SGA in files of /dev/shm.
fn automatic(host: &OracleHost) {
    in_base(host, &["memory_target = 8G"]);
    for file in ["maps", "smaps"] {
        let path = host.path(&format!("/proc/4000/{file}"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("/SYSV00000000 (deleted)", "/dev/shm/ora_orcl_0_0")).unwrap();
    }
}

fn without_huge_pages(host: &OracleHost) {
    fs::remove_dir_all(host.path("/sys/kernel/mm/hugepages")).unwrap();
    let text = fs::read_to_string(host.path("/proc/meminfo")).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("Huge")).map(|line| format!("{line}\n"));
    host.write("/proc/meminfo", &kept.collect::<String>());
}

#[test]
fn a_kernel_without_huge_pages() {
    for (setting, outlook, severity) in [
        ("TRUE", Outlook::Base, Some(Severity::Warning)),
        ("ONLY", Outlook::Fails, Some(Severity::Critical)),
        ("FALSE", Outlook::Base, None),
    ] {
        let host = OracleHost::new(KERNELS[1], 64, (0, 0));
        without_huge_pages(&host);
        in_base(&host, &["sga_max_size = 4G", &format!("use_large_pages = \"{setting}\"")]);
        let survey = host.survey();
        let status = &running(&survey, "orcl").status;
        assert_eq!(status.outlook, outlook, "{setting}");
        let finding = found(&survey, "use_large_pages");
        assert_eq!(finding.as_ref().map(|one| one.severity), severity, "{setting}");
        if let Some(finding) = finding {
            assert_eq!((finding.current.as_deref(), finding.recommended.as_deref()), (Some(setting), Some("FALSE")));
            assert_eq!(status.cause, Some(Cause::PageSizeUnsupported));
            assert!(finding.reason.contains("this kernel has no huge pages"), "{}", finding.reason);
            let hint = advice::hint(status).unwrap();
            assert_eq!(hint, "Set use_large_pages = FALSE, or boot a kernel that has huge pages.");
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
        ("TRUE", Outlook::Base, Severity::Notice, "asks for no huge pages: this kernel has no huge pages"),
    ] {
        let host = OracleHost::new(KERNELS[1], 64, (0, 0));
        without_huge_pages(&host);
        host.home(DB_HOME);
        host.write("/etc/oratab", &format!("down:{DB_HOME}:Y\n"));
        host.write(&format!("{DB_HOME}/dbs/initdown.ora"), &format!("sga_max_size=2G\nuse_large_pages={setting}\n"));
        let survey = host.survey();
        let down = stopped(&survey, "down");
        assert_eq!((down.outlook(), down.severity()), (outlook, severity), "{setting}");
        assert_eq!(down.message(), format!("The instance is stopped; its next start {said}."));
        assert_eq!(down.hint(&[]).is_some(), setting == "ONLY");
    }
}

#[test]
fn a_pool_beside_instances_that_cannot_use_it() {
    let host = OracleHost::new(KERNELS[1], 64, (8000, 8000));
    automatic(&host);
    let finding = found(&host.survey(), "vm.nr_hugepages").unwrap();
    assert_eq!((finding.severity, finding.saving.map(|size| size.0)), (Severity::Warning, Some(8000 * 2 * MIB)));
    assert_eq!((finding.command, finding.recommended), (None, None), "either the setting is wrong or the pool");
    assert!(finding.reason.contains("orcl (MEMORY_TARGET) cannot use huge pages"), "{}", finding.reason);

    let off = OracleHost::new(KERNELS[1], 64, (8000, 8000));
    in_base(&off, &["use_large_pages = \"FALSE\""]);
    assert!(found(&off.survey(), "vm.nr_hugepages").unwrap().reason.contains("orcl (use_large_pages = FALSE)"));

    // What a stopped instance needs is not idle.
    host.write("/etc/oratab", &format!("down:{DB_HOME}:N\n"));
    host.write(&format!("{DB_HOME}/dbs/initdown.ora"), "sga_max_size=4G\n");
    let finding = found(&host.survey(), "vm.nr_hugepages").unwrap();
    assert_eq!(finding.saving.map(|size| size.0), Some((8000 - 2052) * 2 * MIB));
    host.write(&format!("{DB_HOME}/dbs/initdown.ora"), "sga_max_size=16G\n");
    assert_eq!(found(&host.survey(), "vm.nr_hugepages").and_then(|finding| finding.saving), None);
    // Its need is unknown, and so is whether the pool is idle.
    host.write(&format!("{DB_HOME}/dbs/initdown.ora"), "processes=300\n");
    assert_eq!(found(&host.survey(), "vm.nr_hugepages"), None);

    let none = OracleHost::new(KERNELS[1], 64, (0, 0));
    automatic(&none);
    // A step of the hint, for an SGA that is no longer in files.
    let finding = found(&none.survey(), "vm.nr_hugepages").unwrap();
    assert_eq!((finding.finding, finding.recommended.as_deref()), (Some("base_pages"), Some("2048")));
}

#[test]
fn transparent_huge_pages_on_a_host_of_oracle() {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const UEK8: &str = "6.12.0-103.40.4.2.el9uek.x86_64";
    for (kernel, version, wanted, beside_unknown) in [
        (KERNELS[3], "19.24.0.0.0", "madvise", "madvise"),
        (KERNELS[3], "21.3.0.0.0", "madvise", "madvise"),
        (UEK8, "23.5.0.24.07", "madvise", "madvise"),
        (UEK8, "23.26.1.0.0", "madvise", "madvise"),
        (KERNELS[3], "12.2.0.1.0", "never", "never"),
        // UEK6.
        (KERNELS[2], "19.24.0.0.0", "never", "never"),
        (KERNELS[2], "23.5.0.24.07", "never", "never"),
        // Not UEK: both are content with what the older release asks for.
        (KERNELS[4], "19.24.0.0.0", "never", "never"),
        (KERNELS[4], "23.26.1.0.0", "madvise", "never"),
        (KERNELS[5], "21.3.0.0.0", "never", "never"),
    ] {
        let host = OracleHost::new(kernel, 64, (2048, 0));
        host.run(&Running { segments: vec![(4 * GIB, 2048)], ..Running::default() });
        host.log("orcl", "orcl", &host.start(&LoggedStart { version, ..LoggedStart::default() }));
        assert_eq!(found(&host.survey(), "transparent_hugepage/enabled"), None);
        host.write(ENABLED, "[always] madvise never\n");
        let finding = found(&host.survey(), "transparent_hugepage/enabled").unwrap();
        let recommended = finding.recommended.as_deref();
        assert_eq!((finding.severity, recommended), (Severity::Notice, Some(wanted)), "{kernel} {version}");
        assert_eq!(finding.command.unwrap(), format!("echo {wanted} > {ENABLED}"));
        assert!(finding.reason.starts_with("Oracle's installation guides"), "{}", finding.reason);
        host.run(&Running { pid: 6000, sid: "unknown", segments: vec![(GIB, 2048)], ..Running::default() });
        let finding = found(&host.survey(), "transparent_hugepage/enabled").unwrap();
        assert_eq!(finding.recommended.as_deref(), Some(beside_unknown), "{kernel} {version}");
    }
    // Without Oracle it is no finding of this kind.
    let host = OracleHost::new(KERNELS[3], 64, (0, 0));
    host.write(ENABLED, "[always] madvise never\n");
    assert_eq!(found(&host.survey(), "transparent_hugepage/enabled"), None);
}

/// 40 GB of SGA, 2 GB of MGA and 30 GB of PGA on a host of 64 GB.
#[test]
fn more_memory_promised_than_there_is() {
    for (limit, expected) in [("30G", true), ("20G", false)] {
        let host = OracleHost::new(KERNELS[3], 64, (20480, 0));
        host.run(&Running { segments: vec![(40 * GIB, 2048)], ..Running::default() });
        let mga = "7f0000000000-7f0080000000 rw-s 00000000 00:18 9                      /dev/shm/ora_mga_1";
        for file in ["maps", "smaps"] {
            let path = host.path(&format!("/proc/4000/{file}"));
            let of_smaps = if file == "smaps" { "\nSize: 2097152 kB\nKernelPageSize: 4 kB" } else { "" };
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{text}{mga}{of_smaps}\n")).unwrap();
        }
        let parameters = vec!["sga_max_size = 40G".to_owned(), format!("pga_aggregate_limit = {limit}")];
        host.log("orcl", "orcl", &host.start(&LoggedStart { parameters, ..LoggedStart::default() }));
        let survey = host.survey();
        assert_eq!(running(&survey, "orcl").id.oracle().unwrap().managed_global_area.map(|size| size.0), Some(2 * GIB));
        let finding = found(&survey, "pga_aggregate_limit");
        assert_eq!(finding.is_some(), expected, "{limit}");
        if let Some(finding) = finding {
            let said = "may take 72 GB of the host's 64 GB: 40 GB SGA, 2 GB Managed Global Area and 30 GB";
            assert!(finding.reason.contains(said), "{}", finding.reason);
        }
    }
}

/// Before the patch, and not after it, where such a database does not run.
#[test]
fn small_pages_on_exadata_before_the_patch() {
    for (version, setting, allocated, is_told) in [
        ("19.26.0.0.0", "TRUE", 2048, true),
        ("19.26.0.0.0", "FALSE", 0, true),
        ("23.7.0.25.01", "AUTO", 2048, true),
        ("19.26.0.0.0", "ONLY", 2048, false),
        ("19.26.0.0.0", "AUTO_ONLY", 2048, false),
        ("19.27.0.0.0", "TRUE", 2048, false),
        ("23.26.1.0.0", "TRUE", 2048, false),
        ("12.2.0.1.0", "TRUE", 2048, false),
    ] {
        let host = OracleHost::new(KERNELS[3], 64, (2048, 0));
        let page = if allocated > 0 { 2048 } else { 4 };
        host.run(&Running { segments: vec![(4 * GIB, page)], ..Running::default() });
        let parameters = vec![format!("use_large_pages = \"{setting}\"")];
        host.log("orcl", "orcl", &host.start(&LoggedStart { version, parameters, ..LoggedStart::default() }));
        let of_exadata = || {
            let all = recommendations(&host.survey());
            all.into_iter().find(|one| one.setting == "use_large_pages" && one.finding.is_none())
        };
        assert_eq!(of_exadata(), None, "not on Exadata");
        host.write("/etc/oracle/cell/network-config/cellip.ora", "cell=\"192.168.10.3\"\n");
        let finding = of_exadata();
        assert_eq!(finding.is_some(), is_told, "{version} {setting}");
        if let Some(finding) = finding {
            assert!(finding.reason.contains(&format!(": orcl (use_large_pages = {setting}). ")), "{}", finding.reason);
        }
    }
    let host = OracleHost::new(KERNELS[3], 64, (2048, 2048));
    host.home(DB_HOME);
    host.write("/etc/oracle/cell/network-config/cellip.ora", "");
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
    let parameters = vec!["use_large_pages = \"TRUE\"".to_owned()];
    host.log("orcl", "orcl", &host.start(&LoggedStart { parameters, ..LoggedStart::default() }));
    assert!(found(&host.survey(), "use_large_pages").unwrap().reason.contains(": orcl (use_large_pages = TRUE). "));
}
