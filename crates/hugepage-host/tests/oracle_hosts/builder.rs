//! One builder of hosts with Oracle: a tree of the files that the kernel, the installer and the instances leave.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hugepage_host::{Instance, Survey, survey};
use hugepage_kernel::Root;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::Sizing;

pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
/// Seconds between the start of every instance and the moment of the survey.
const AGE: u64 = 90_000;
const UPTIME: u64 = 100_000;
/// The moment of the survey, which of a tree is the time of its /proc/uptime: so long after 1970, 2026-12-01 00:00:00 UTC.
pub const NOW: Duration = Duration::from_secs(1_796_083_200);

pub const DB_HOME: &str = "/u01/app/oracle/product/19.0.0/dbhome_1";
pub const GRID_HOME: &str = "/u01/app/19.0.0/grid";

/// The kernels of the distributions that Oracle is certified on.
pub const KERNELS: [&str; 6] = [
    "3.10.0-1160.el7.x86_64",
    "4.18.0-553.el8_10.x86_64",
    "5.4.17-2136.330.7.1.el8uek.x86_64",
    "5.15.0-209.161.7.2.el9uek.x86_64",
    "5.14.0-427.13.1.el9_4.x86_64",
    "5.14.21-150500.55.65-default",
];

/// A host as a tree of files.
pub struct OracleHost {
    tree: tempfile::TempDir,
}

/// An instance that runs.
#[derive(Clone)]
pub struct Running<'a> {
    pub pid: u32,
    pub sid: &'a str,
    /// The prefix of its background processes.
    pub kind: &'a str,
    pub home: &'a str,
    /// Sizes of its segments with their page sizes in kB.
    pub segments: Vec<(u64, u64)>,
    pub uid: u32,
    pub gid: u32,
    /// In bytes; `None` is unlimited.
    pub memlock: Option<u64>,
    /// Its page tables in kB.
    pub page_tables: u64,
}

impl Default for Running<'_> {
    fn default() -> Self {
        Self {
            pid: 4000,
            sid: "orcl",
            kind: "ora",
            home: DB_HOME,
            segments: Vec::new(),
            uid: 54321,
            gid: 54321,
            memlock: None,
            page_tables: 100,
        }
    }
}

/// A start in an alert log of 19c.
#[derive(Clone)]
pub struct LoggedStart<'a> {
    /// Seconds before the survey.
    pub ago: u64,
    pub pmon: Option<u32>,
    pub version: &'a str,
    /// Lines of `System parameters with non-default values`.
    pub parameters: Vec<String>,
    /// Rows of the table: page size, AVAILABLE (`Configured` for 4K), EXPECTED, ALLOCATED.
    pub table: Vec<(&'a str, Option<u64>, u64, u64)>,
    pub memlock: &'a str,
    pub errors: Vec<&'a str>,
    pub spfile: Option<&'a str>,
}

impl Default for LoggedStart<'_> {
    fn default() -> Self {
        Self {
            ago: AGE + 5,
            pmon: Some(4000),
            version: "19.24.0.0.0",
            parameters: Vec::new(),
            table: Vec::new(),
            memlock: "UNLIMITED",
            errors: Vec::new(),
            spfile: None,
        }
    }
}

impl OracleHost {
    /// `pool`: pages of 2 MB and how many of them are free.
    pub fn new(kernel: &str, memory_gib: u64, pool: (u64, u64)) -> Self {
        let host = Self {
            tree: tempfile::tempdir().unwrap(),
        };
        let total = memory_gib << 20;
        let (nr, free) = pool;
        let unused = total.saturating_sub(nr * 2048) * 6 / 10;
        host.write(
            "/proc/meminfo",
            &format!(
                "MemTotal:       {total} kB\nMemFree:        {unused} kB\nMemAvailable:   {unused} kB\nPageTables:       \
                 20000 kB\nHugePages_Total:   {nr}\nHugePages_Free:    {free}\nHugePages_Rsvd:        0\nHugePages_Surp:    \
                 \x20   0\nHugepagesize:       2048 kB\n"
            ),
        );
        host.pool(2048, nr, free);
        host.write("/proc/uptime", &format!("{UPTIME}.00 400000.00\n"));
        File::open(host.path("/proc/uptime"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH + NOW)
            .unwrap();
        let told = format!("{} us\n", total / 2048 / 20 * 19 - 1);
        host.write("/etc/hugepage-sidecar/next-boot", &told);
        host.write("/proc/sys/kernel/hostname", "db01\n");
        host.write("/proc/sys/kernel/osrelease", &format!("{kernel}\n"));
        host.write("/proc/sys/vm/hugetlb_shm_group", "0\n");
        host.write(
            "/proc/self/mountinfo",
            "20 1 0:18 / /dev/shm rw - tmpfs tmpfs rw\n",
        );
        host.write(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always madvise [never]\n",
        );
        host.write(
            "/etc/passwd",
            "root:x:0:0::/root:/bin/bash\noracle:x:54321:54321::/home/oracle:/bin/bash\n\
             grid:x:54322:54321::/home/grid:/bin/bash\n",
        );
        host.write(
            "/etc/group",
            "root:x:0:\noinstall:x:54321:\ndba:x:54322:oracle\n",
        );
        let auxv: Vec<u8> = [6u64, 4096, 0, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        fs::write(host.path("/proc/self/auxv"), auxv).unwrap();
        host
    }

    /// The files of one pool below /sys.
    pub fn pool(&self, kb: u64, nr: u64, free: u64) {
        for (name, value) in [
            ("nr_hugepages", nr),
            ("free_hugepages", free),
            ("resv_hugepages", 0),
            ("surplus_hugepages", 0),
            ("nr_overcommit_hugepages", 0),
        ] {
            self.write(
                &format!("/sys/kernel/mm/hugepages/hugepages-{kb}kB/{name}"),
                &format!("{value}\n"),
            );
        }
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.tree.path().join(path.trim_start_matches('/'))
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    /// An ORACLE_HOME with its program.
    pub fn home(&self, home: &str) {
        self.write(&format!("{home}/bin/oracle"), "");
    }

    /// PMON and one server process.
    pub fn run(&self, running: &Running<'_>) {
        let Running {
            pid,
            sid,
            kind,
            home,
            uid,
            gid,
            ..
        } = running;
        self.home(home);
        let (mut maps, mut smaps, mut start) = (String::new(), String::new(), 0x6000_0000_u64);
        for (index, (size, page_kb)) in running.segments.iter().enumerate() {
            let end = start + size;
            let line = format!(
                "{start:x}-{end:x} rw-s 00000000 00:0f {}                      /SYSV00000000 (deleted)\n",
                100 + index
            );
            maps += &line;
            smaps += &format!(
                "{line}Size:  {} kB\nKernelPageSize:  {page_kb} kB\nMMUPageSize:  {page_kb} kB\n",
                size >> 10
            );
            start = end;
        }
        let huge: u64 = running
            .segments
            .iter()
            .filter(|(_, kb)| *kb > 4)
            .map(|(size, _)| size >> 10)
            .sum();
        let limit = running
            .memlock
            .map_or("unlimited".to_owned(), |limit| limit.to_string());
        for (pid, title) in [
            (*pid, format!("{kind}_pmon_{sid}\0")),
            (pid + 1, format!("oracle{sid}\0(LOCAL=NO)\0")),
        ] {
            let process = format!("/proc/{pid}");
            self.write(&format!("{process}/cmdline"), &title);
            self.write(
                &format!("{process}/status"),
                &format!(
                    "Name:\toracle\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{gid}\t{gid}\t{gid}\t{gid}\nGroups:\t{gid}\n\
                     VmPTE:\t{} kB\nHugetlbPages:\t{huge} kB\nCapEff:\t0000000000000000\n",
                    running.page_tables
                ),
            );
            let ticks = (UPTIME - AGE) * 100;
            self.write(
                &format!("{process}/stat"),
                &format!("{pid} (oracle) S 1 {}{ticks} 0 0\n", "0 ".repeat(17)),
            );
            self.write(
                &format!("{process}/limits"),
                &format!(
                    "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max locked memory         {limit:<20} {limit:<20} bytes     \n"
                ),
            );
            self.write(&format!("{process}/maps"), &maps);
            self.write(&format!("{process}/smaps"), &smaps);
            self.write(
                &format!("{process}/cgroup"),
                "0::/system.slice/oracle-ohasd.service\n",
            );
            symlink(
                format!("{home}/bin/oracle"),
                self.path(&format!("{process}/exe")),
            )
            .unwrap();
        }
    }

    /// The namespaces of PMON and its server process: of process ids, of System V segments, of mounts.
    pub fn namespaces(&self, pid: u32, numbers: [u64; 3]) {
        for pid in [pid, pid + 1] {
            for (name, number) in ["pid", "ipc", "mnt"].into_iter().zip(numbers) {
                let link = self.path(&format!("/proc/{pid}/ns/{name}"));
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                symlink(format!("{name}:[{number}]"), link).unwrap();
            }
        }
    }

    /// An alert log in the ADR of /u01/app/oracle.
    pub fn log(&self, database: &str, sid: &str, text: &str) {
        self.write(
            &format!("/u01/app/oracle/diag/rdbms/{database}/{sid}/trace/alert_{sid}.log"),
            text,
        );
    }

    /// The time of so many seconds before the survey, as a log since 12.2 has it.
    pub fn at(&self, ago: u64) -> String {
        humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + NOW - Duration::from_secs(ago))
            .to_string()
            .replace('Z', "+00:00")
    }

    pub fn start(&self, start: &LoggedStart<'_>) -> String {
        let at = self.at(start.ago);
        let mut text = format!(
            "{at}\nStarting ORACLE instance (normal) (OS id: 3999)\n{at}\nDump of system resources acquired for SHARED GLOBAL \
             AREA (SGA) \n{at}\n Per process system memlock (soft) limit = {}\n{at}\n Available system pagesizes:\n  4K, 2048K, \
             1048576K \n{at}\n",
            start.memlock
        );
        if !start.table.is_empty() {
            text += "  PAGESIZE  AVAILABLE_PAGES  EXPECTED_PAGES  ALLOCATED_PAGES  ERROR(s)\n";
            for (size, available, expected, allocated) in &start.table {
                let available =
                    available.map_or("Configured".to_owned(), |pages| pages.to_string());
                text += &format!(
                    "{size:>10} {available:>16} {expected:>15} {allocated:>16}        NONE\n"
                );
            }
        }
        for error in &start.errors {
            text += &format!("{at}\n{error}\n");
        }
        if start.pmon.is_some() || start.errors.is_empty() {
            text += &format!(
                "{at}\nOracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production\nVersion {}.\n",
                start.version
            );
        }
        if let Some(spfile) = start.spfile {
            text += &format!("Using parameter settings in server-side spfile {spfile}\n");
        }
        text += "System parameters with non-default values:\n";
        for line in &start.parameters {
            text += &format!("  {line}\n");
        }
        if let Some(pmon) = start.pmon {
            text += &format!("{at}\nPMON started with pid=2, OS id={pmon} \n");
        }
        text
    }

    pub fn root(&self) -> Root {
        Root::at(self.tree.path())
    }

    pub fn survey(&self) -> Survey {
        survey(&self.root(), 20)
    }
}

/// What `status` and `size` say of the pool of 2 MB pages.
pub fn sizing(survey: &Survey) -> Sizing {
    survey
        .sizings()
        .into_iter()
        .find(|sizing| sizing.page_size.bytes().0 == 2 * MIB)
        .unwrap()
}

pub fn running<'a>(survey: &'a Survey, sid: &str) -> &'a Instance {
    let names: Vec<_> = survey
        .instances
        .iter()
        .map(|instance| &instance.id.name)
        .collect();
    survey
        .instances
        .iter()
        .find(|instance| instance.id.name == sid)
        .unwrap_or_else(|| panic!("{sid}: {names:?}"))
}

pub fn stopped<'a>(survey: &'a Survey, sid: &str) -> &'a StoppedOracle {
    let names: Vec<_> = survey.stopped.iter().map(|stopped| &stopped.name).collect();
    survey
        .stopped
        .iter()
        .find(|stopped| stopped.name == sid)
        .unwrap_or_else(|| panic!("{sid}: {names:?}"))
}
