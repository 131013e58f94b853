//! Hosts with several Oracle instances as trees of files: the farm whose pool of 9216 pages one instance
//! has in full, one in part and one not at all, and the host of 48 GB that was told to set 36569 pages.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

use hugepage_assess::advice::{hint, message};
use hugepage_assess::assessment::Severity;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::metrics::MetricsSnapshot;
use hugepage_host::{Survey, host_advice, survey};
use hugepage_kernel::{PageSize, Pages, Root};
use hugepage_sizing::Sizing;

/// PMON's mappings: huge pages are on a device of their own.
const FULL: &str = "\
60000000-61000000 rw-s 00000000 00:0a 1575813166                         /SYSV00000000 (deleted)
61000000-a3000000 rw-s 00000000 00:0a 1575878704                         /SYSV00000000 (deleted)
a3000000-a3200000 rw-s 00000000 00:0a 1576599617                         /SYSV00000000 (deleted)
";
/// 32768, 4063232 and 2048 kB.
const MIXED: &str = "\
60000000-62000000 rw-s 00000000 00:0a 1582858240                         /SYSV00000000 (deleted)
62000000-15a000000 rw-s 00000000 00:0a 1582891009                        /SYSV00000000 (deleted)
15a000000-15a200000 rw-s 00000000 00:06 1582923793                       /SYSV5e898110 (deleted)
";
const EMPTY: &str = "\
60000000-60c00000 rw-s 00000000 00:06 81002502                           /SYSV00000000 (deleted)
60c00000-81000000 rw-s 00000000 00:06 81035271                           /SYSV00000000 (deleted)
81000000-81200000 rw-s 00000000 00:06 81068066                           /SYSVee9b42e0 (deleted)
";
/// 36569 pages of 2 MB.
const LARGE: &str = "\
60000000-123b200000 rw-s 00000000 00:06 98307                            /SYSV00000000 (deleted)
";

struct Farm(tempfile::TempDir);

impl Farm {
    /// A host of 48 GB on a kernel without /sys/kernel/mm/hugepages.
    fn new(pool: u64, free: u64) -> Self {
        let farm = Self(tempfile::tempdir().unwrap());
        farm.write(
            "proc/meminfo",
            &format!(
                "MemTotal:     50331648 kB\nMemFree:      1048576 kB\nPageTables:    524288 kB\nHugePages_Total: {pool}\n\
                 HugePages_Free:  {free}\nHugePages_Rsvd:     0\nHugepagesize:     2048 kB\n"
            ),
        );
        farm.write("proc/uptime", "100000.00 400000.00\n");
        farm.write("proc/sys/kernel/hostname", "farm\n");
        farm.write("proc/sys/kernel/osrelease", "3.10.0-1160.el7.x86_64\n");
        farm.write("proc/self/mountinfo", "");
        let auxv: Vec<u8> = [6u64, 4096, 0, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        fs::create_dir_all(farm.0.path().join("proc/self")).unwrap();
        fs::write(farm.0.path().join("proc/self/auxv"), auxv).unwrap();
        farm
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    /// PMON with these mappings, and a server process; each has 8 MB of page tables.
    fn runs(&self, pid: u32, sid: &str, maps: &str) {
        for (pid, title) in [
            (pid, format!("ora_pmon_{sid}\0")),
            (pid + 1, format!("oracle{sid}\0(LOCAL=NO)\0")),
        ] {
            self.write(&format!("proc/{pid}/cmdline"), &title);
            self.write(
                &format!("proc/{pid}/status"),
                "Name:\toracle\nPPid:\t1\nVmPTE:\t    8192 kB\n",
            );
            self.write(
                &format!("proc/{pid}/stat"),
                &format!("{pid} (oracle) S 1 {}5000 0 0\n", "0 ".repeat(17)),
            );
            self.write(
                &format!("proc/{pid}/limits"),
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max locked memory         unlimited            unlimited            bytes     \n",
            );
            self.write(
                &format!("proc/{pid}/maps"),
                &format!(
                    "00400000-0a4b3000 r-xp 00000000 fd:00 12345 /u01/app/oracle/bin/oracle\n{maps}"
                ),
            );
            let sized = |line: &str| {
                let size = if line.contains(" 00:0a ") { 2048 } else { 4 };
                format!("{line}\nKernelPageSize: {size} kB\nMMUPageSize: {size} kB\n")
            };
            self.write(
                &format!("proc/{pid}/smaps"),
                &maps.lines().map(sized).collect::<String>(),
            );
        }
    }

    fn look(&self) -> (Survey, Vec<Sizing>) {
        let survey = survey(&Root::at(self.0.path()), 20);
        let sizings = survey.sizings();
        (survey, sizings)
    }
}

#[test]
fn the_farm_of_9216_pages() {
    let farm = Farm::new(9216, 0);
    farm.runs(100, "FULL", FULL);
    farm.runs(200, "MIXED", MIXED);
    farm.runs(300, "EMPTY", EMPTY);
    let (survey, sizings) = farm.look();

    let who: Vec<_> = survey
        .instances
        .iter()
        .map(|instance| {
            let status = &instance.status;
            let count = |pages: Option<Pages>| pages.map(|pages| pages.0);
            let cause = status.cause.map(|cause| cause.to_string());
            (
                instance.id.name.as_str(),
                instance.landed_in().to_string(),
                count(status.crash.needed),
                status.facts.own().0,
                count(status.missing),
                cause,
            )
        })
        .collect();
    let taken = || Some("pool_taken".to_owned());
    let (hugetlb, mixed, base) = ("hugetlb".to_owned(), "mixed".to_owned(), "base".to_owned());
    assert_eq!(
        who,
        [
            ("FULL", hugetlb, Some(537), 537, Some(0), None),
            ("MIXED", mixed, Some(2001), 2000, Some(1), taken()),
            ("EMPTY", base, Some(265), 0, Some(265), taken()),
        ]
    );
    for instance in &survey.instances {
        assert_eq!(
            instance.memory.page_tables.total.unwrap().0,
            16 << 20,
            "{}",
            instance.id.name
        );
    }

    let [sizing] = &sizings[..] else {
        panic!("{sizings:?}")
    };
    assert_eq!(sizing.page_size, PageSize::from_kib(2048).unwrap());
    // Of the pool 6679 pages are somebody's who is not seen here.
    assert_eq!(
        (sizing.others, sizing.recommended),
        (Pages(9216 - 2537), Some(Pages(9216 + 1 + 265)))
    );
    assert!(sizing.misfits.is_empty());
    let text = HostVerdict::of_survey(&survey, &sizings).message();
    assert!(
        text.starts_with("1 of 3 instances is in huge pages"),
        "{text}"
    );
    let pool = host_advice::recommendations(&survey, &sizings)
        .into_iter()
        .find(|one| one.instance.is_none())
        .unwrap();
    assert_eq!(pool.recommendation.severity, Severity::Warning);
    assert_eq!(
        pool.recommendation.command.as_deref(),
        Some("sysctl -w vm.nr_hugepages=9482")
    );
    assert_eq!(
        message(&survey.instances[1].status),
        "The SGA (4002 MB) is in huge pages for 4000 MB, in base pages for the other 2 MB although huge pages were asked \
         for: only 2000 of the pool's 9216 pages of 2 MB are available; 2001 are needed (1 missing)."
    );
}

#[test]
fn thirty_six_thousand_pages_on_48_gb() {
    let farm = Farm::new(0, 0);
    farm.runs(100, "FULL", EMPTY);
    farm.runs(200, "LARGE", LARGE);
    let (survey, sizings) = farm.look();
    let [sizing] = &sizings[..] else {
        panic!("{sizings:?}")
    };
    // 80% of 48 GB.
    assert_eq!(
        (
            sizing.total,
            sizing.capacity.map(|capacity| capacity.within_reserve)
        ),
        (Pages(36569 + 265), Some(Pages(19660)))
    );
    assert_eq!(sizing.recommended, Some(Pages(265)));
    let misfits: Vec<_> = sizing
        .misfits
        .iter()
        .map(|misfit| (misfit.name.as_str(), misfit.pages.0, misfit.over.0))
        .collect();
    assert_eq!(misfits, [("LARGE", 36569, 36569 + 265 - 19660)]);
    let text = HostVerdict::of_survey(&survey, &sizings).message();
    assert!(
        text.contains("LARGE: The SGA (71.4 GB)")
            && text.contains("exceeds the 19660 that this host can hold"),
        "{text}"
    );
    for one in host_advice::recommendations(&survey, &sizings) {
        let command = one.recommendation.command.unwrap_or_default();
        assert!(
            !command.contains("36569") && !command.contains("36834"),
            "{command}"
        );
    }
    for instance in &survey.instances {
        let (message, hint) = (message(&instance.status), hint(&instance.status));
        assert!(
            !hint.unwrap_or_default().contains("nr_hugepages=36"),
            "{}: {message}",
            instance.id.name
        );
    }
}

/// Any user may call a process `ora_pmon_FAKE` and give it shared memory: it is listed, and changes nothing.
#[test]
fn who_does_not_count_changes_nothing() {
    let farm = Farm::new(9216, 0);
    farm.runs(100, "FULL", FULL);
    farm.runs(300, "EMPTY", EMPTY);
    let (before, sizings_before) = farm.look();
    let said = |survey: &Survey, sizings: &[Sizing]| {
        let recommended: Vec<_> = host_advice::recommendations(survey, sizings)
            .into_iter()
            .map(|one| one.recommendation.command)
            .collect();
        (
            recommended,
            MetricsSnapshot::from(survey).instances.len(),
            HostVerdict::of_survey(survey, sizings).severity,
        )
    };
    farm.runs(400, "FAKE", LARGE);
    farm.write("etc/passwd", "root:x:0:0:::\n");
    for (pid, name) in [(400, "ora_pmon_FAKE"), (401, "oracle")] {
        let users = "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nVmPTE:\t8192 kB\n";
        farm.write(
            &format!("proc/{pid}/status"),
            &format!("Name:\t{name}\nPPid:\t1\n{users}"),
        );
    }
    let (survey, sizings) = farm.look();
    assert_eq!(sizings, sizings_before);
    assert_eq!(said(&survey, &sizings), said(&before, &sizings_before));
    let fakes: Vec<_> = survey
        .host
        .strangers
        .first
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        fakes,
        ["process 400 (ora_pmon_FAKE, 0 bytes) runs as uid 1000"]
    );
    let text = HostVerdict::of_survey(&survey, &sizings).message();
    assert!(
        text.starts_with("1 of 2 instances is in huge pages (1 more not counted)"),
        "{text}"
    );
    for (one, same) in survey.instances.iter().zip(&before.instances) {
        assert_eq!(
            (&one.id.name, message(&one.status)),
            (&same.id.name, message(&same.status))
        );
    }
}
