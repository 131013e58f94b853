//! Servers of which something can't be known from outside, or is not what the files say.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use hugepage_assess::StatusRow;
use hugepage_assess::advice;
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status};
use hugepage_assess::model::{HugePages, Pending, RESIZABLE};
use hugepage_facts::{Cause, Landing};
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::{Instance, Survey, survey};
use hugepage_kernel::{Notes, Pages, Root};
use hugepage_server::kernel_facts;

const MEMINFO: &str =
    "MemTotal: 16777216 kB\nPageTables: 65536 kB\nHugepagesize: 2048 kB\nHugetlb: 2097152 kB\n";
const MOUNTS: &str = "23 28 0:21 / /proc rw shared:14 - proc proc rw\n30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
const SEGMENT: &str = "7f0000000000-7f0040000000 rw-s 00000000 00:10 1028                       /anon_hugepage (deleted)\n";

/// A host of 16 GB whose pool of 600 pages has 512 of a server in /data.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        host.write("proc/meminfo", MEMINFO);
        host.write("proc/uptime", "1000.00 4000.00\n");
        host.write("etc/hugepage-sidecar/next-boot", "7000 us\n");
        host.write("proc/sys/kernel/osrelease", "6.12.0\n");
        host.write("proc/self/mountinfo", MOUNTS);
        host.write("proc/self/cgroup", "0::/\n");
        host.write("proc/1/status", "Name:\tsystemd\nPPid:\t0\n");
        let auxv: Vec<u8> = [6u64, 4096, 0, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        fs::write(host.0.path().join("proc/self/auxv"), auxv).unwrap();
        for (file, value) in [
            ("nr", 600),
            ("free", 88),
            ("resv", 0),
            ("surplus", 0),
            ("nr_overcommit", 0),
        ] {
            host.write(
                &format!("sys/kernel/mm/hugepages/hugepages-2048kB/{file}_hugepages"),
                &format!("{value}\n"),
            );
        }
        host
    }

    fn with_server(arguments: &str) -> Self {
        let host = Self::new();
        host.write(
            "proc/70/cmdline",
            &format!("/usr/lib/postgresql/17/bin/postgres\0{arguments}"),
        );
        host.write(
            "proc/70/status",
            "PPid:\t1\nVmPTE:\t64 kB\nHugetlbPages:\t1048576 kB\nMems_allowed_list:\t0\n",
        );
        host.write(
            "proc/70/stat",
            &format!("70 (postgres) S 1 {}", "0 ".repeat(40)),
        );
        host.write("proc/70/cgroup", "0::/\n");
        host.write("proc/70/maps", SEGMENT);
        host.write(
            "proc/70/smaps",
            &format!("{SEGMENT}Size: 1048576 kB\nKernelPageSize: 2048 kB\nMMUPageSize: 2048 kB\n"),
        );
        std::os::unix::fs::symlink("/data", host.0.path().join("proc/70/cwd")).unwrap();
        host.write("data/PG_VERSION", "17\n");
        host.write("data/postgresql.auto.conf", "# none\n");
        host
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        // What is configured was so when the server started.
        if path.starts_with(self.0.path().join("data"))
            || path.starts_with(self.0.path().join("etc"))
        {
            fs::File::open(path)
                .unwrap()
                .set_modified(SystemTime::UNIX_EPOCH)
                .unwrap();
        }
    }

    fn survey(&self) -> Survey {
        survey(&Root::at(self.0.path()), 20)
    }

    fn server(&self) -> Instance {
        self.survey().instances.pop().unwrap()
    }
}

fn words(status: &Status) -> (Severity, Outlook) {
    (status.verdict().0, status.forecast.outlook)
}

#[test]
fn a_server_as_requested() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "huge_pages = try\nshared_buffers = 900MB\n",
    );
    let server = host.server();
    assert_eq!(
        server.status.facts.landing(),
        Landing::Hugetlb,
        "{:?}",
        server.notes
    );
    assert_eq!(
        words(&server.status),
        (Severity::Ok, Outlook::Hugetlb),
        "{:?}",
        server.notes
    );
}

/// Nothing is set in it, and all of it was read.
#[test]
fn a_configuration_without_settings() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "# nothing\ninclude_if_exists 'none.conf'\n",
    );
    assert_eq!(host.server().notes, Vec::<String>::new());
}

/// Its files have another time in a tree of another host, but not of their contents.
#[test]
fn a_configuration_that_was_written_since() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "huge_pages = try\nshared_buffers = 900MB\n",
    );
    fs::File::open(host.0.path().join("data/postgresql.conf"))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let server = host.server();
    assert_eq!(
        (
            server.status.forecast.outlook,
            server.status.crash_outlook()
        ),
        (Outlook::Unknown, Some(Outlook::Hugetlb))
    );
    assert!(
        server
            .notes
            .iter()
            .any(|note| note.contains("\" has changed since the server")),
        "{:?}",
        server.notes
    );
}

/// No program has to be asked whether the server takes it.
#[test]
fn an_invalid_value_that_was_written_since() {
    let host = Host::with_server("-D\0/data\0");
    host.write("data/postgresql.conf", "huge_pages = maybe\n");
    fs::File::open(host.0.path().join("data/postgresql.conf"))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let server = host.server();
    let error = "invalid value for parameter \"huge_pages\": \"maybe\"";
    assert_eq!(
        (server.status.forecast.outlook, &server.status.facts.pending),
        (Outlook::Fails, &Pending::Refused(error.to_owned())),
        "{:?}",
        server.notes
    );
}

/// A container's script makes the files, and then becomes the server: its process is older than they are.
#[test]
fn a_script_that_becomes_the_server() {
    // Seconds before now.
    let outlook = |file: u64, told: u64, child: Option<u64>| {
        let host = Host::with_server("-D\0/data\0");
        let before = |seconds| SystemTime::now() - Duration::from_secs(seconds);
        host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
        fs::File::open(host.0.path().join("data/postgresql.conf"))
            .unwrap()
            .set_modified(before(file))
            .unwrap();
        let told = before(told).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        host.write(
            "data/postmaster.pid",
            &format!("1\n/data\n{}\n5432\n", told.as_secs()),
        );
        if let Some(child) = child {
            host.write("proc/70/task/70/children", "71 72 ");
            host.write(
                "proc/71/stat",
                &format!(
                    "71 (postgres) S 70 {}{} {}",
                    "0 ".repeat(17),
                    (1000 - child) * 100,
                    "0 ".repeat(20)
                ),
            );
        }
        host.server().status.forecast.outlook
    };
    assert_eq!(outlook(900, 800, Some(700)), Outlook::Hugetlb);
    assert_eq!(
        outlook(750, 800, Some(700)),
        Outlook::Unknown,
        "changed since"
    );
    assert_eq!(
        outlook(900, 600, Some(700)),
        Outlook::Unknown,
        "the clock was ahead"
    );
    assert_eq!(
        outlook(900, 800, None),
        Outlook::Unknown,
        "no child is seen"
    );
}

/// With unchanged files, too: the server may have understood more of them.
#[test]
fn a_configuration_that_is_not_understood() {
    for (line, note) in [
        (
            "huge_pages = 'o\\156'",
            Some("line 2 of \"/data/postgresql.conf\" is not understood"),
        ),
        (
            "huge_page_size = 0x100000",
            Some("line 2 of \"/data/postgresql.conf\" is not understood"),
        ),
        (
            "huge_page_size = '0x100000'",
            Some("huge_page_size = '0x100000' is not a size"),
        ),
        (
            "include_if_exists 'a\\\\b.conf'",
            Some("names nothing that is read here"),
        ),
        ("log_line_prefix = '\\t%m'", None),
    ] {
        let host = Host::with_server("-D\0/data\0");
        host.write(
            "data/postgresql.conf",
            &format!("shared_buffers = 900MB\n{line}\n"),
        );
        host.write("data/PG_VERSION", "17\n");
        let server = host.server();
        let expected = if note.is_some() {
            Outlook::Unknown
        } else {
            Outlook::Hugetlb
        };
        assert_eq!(
            (
                server.status.forecast.outlook,
                server.status.crash_outlook()
            ),
            (expected, Some(Outlook::Hugetlb)),
            "{line}"
        );
        assert!(
            note.is_none_or(|note| server.notes.iter().any(|one| one.contains(note))),
            "{:?}",
            server.notes
        );
    }
}

/// Of a command line only `pg_ctl restart` and a container repeat what the files do not have.
#[test]
fn options_that_the_files_do_not_have() {
    let outlook = |options: &str, file: &str, ids: &str| {
        let host = Host::with_server(&format!("-D\0/data\0{options}"));
        host.write("data/postgresql.conf", file);
        host.write(
            "proc/70/status",
            &format!("PPid:\t1\nNSpid:\t{ids}\nHugetlbPages:\t1048576 kB\nMems_allowed_list:\t0\n"),
        );
        let server = host.server();
        let is_noted = server
            .notes
            .iter()
            .any(|note| note.contains("which only pg_ctl restart repeats"));
        (
            server.status.forecast.outlook,
            server.status.crash_outlook(),
            is_noted,
        )
    };
    let known = (Outlook::Hugetlb, Some(Outlook::Hugetlb), false);
    let unknown = (Outlook::Unknown, Some(Outlook::Hugetlb), true);
    let buffers = "-c\0shared_buffers=900MB\0";
    assert_eq!(outlook(buffers, "shared_buffers = 900MB\n", "70"), known);
    assert_eq!(outlook(buffers, "shared_buffers = 30GB\n", "70"), unknown);
    assert_eq!(outlook(buffers, "shared_buffers = 30GB\n", "70\t1"), known);
    assert_eq!(
        outlook("-B115200\0", "shared_buffers = 30GB\n", "70"),
        unknown
    );
    assert_eq!(
        outlook("-c\0huge_pages=try\0", "huge_pages = off\n", "70"),
        unknown
    );
    assert_eq!(
        outlook(
            "-c\0port=5433\0-c\0config_file=/data/postgresql.conf\0",
            "",
            "70"
        ),
        known
    );
}

/// What starts the server is not read: it says nothing, however new it is.
#[test]
fn a_unit_is_not_read() {
    let host = Host::with_server("-D\0/data\0");
    let unit = "etc/systemd/system/postgresql-17.service.d/x.conf";
    host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
    host.write("proc/70/cgroup", "0::/system.slice/postgresql-17.service\n");
    host.write(
        unit,
        "[Service]\nEnvironment=PGOPTIONS=-cshared_buffers=9GB\n",
    );
    fs::File::open(host.0.path().join(unit))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let server = host.server();
    assert_eq!(server.status.forecast.outlook, Outlook::Hugetlb);
    assert!(server.notes.is_empty(), "{:?}", server.notes);
}

#[test]
fn a_program_that_was_replaced() {
    let host = Host::with_server("-D\0/data\0");
    host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
    symlink(
        "/usr/lib/postgresql/17/bin/postgres (deleted)",
        host.0.path().join("proc/70/exe"),
    )
    .unwrap();
    let server = host.server();
    assert_eq!(
        (
            server.status.forecast.outlook,
            server.status.crash_outlook()
        ),
        (Outlook::Unknown, Some(Outlook::Hugetlb))
    );
    let note = "\"/usr/lib/postgresql/17/bin/postgres\" has changed since";
    assert!(
        server.notes.iter().any(|found| found.contains(note)),
        "{:?}",
        server.notes
    );
}

/// The file is for the next start; a crash keeps what the server has, and no cgroup is involved.
#[test]
fn huge_pages_off_in_the_file_of_a_server_in_huge_pages() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "huge_pages = off\nshared_buffers = 900MB\n",
    );
    let status = host.server().status;
    assert_eq!(
        (words(&status), status.of_pending),
        ((Severity::Warning, Outlook::Base), true)
    );
    assert_eq!(status.forecast.cause, Some(Cause::Disabled));
    assert_eq!(
        advice::message(&status),
        "Shared memory (1 GB) is in huge pages, but a restart with the configuration on disk would lose them: huge_pages = \
         off."
    );
    assert_eq!(
        advice::hint(&status).unwrap(),
        "Set huge_pages = try in the configuration, or do not restart the server."
    );
}

#[test]
fn a_directory_of_the_configuration() {
    let host = Host::with_server("-D\0/etc/pg\0");
    host.write(
        "etc/pg/postgresql.conf",
        "data_directory = '/data'\nhuge_pages = on\nshared_buffers = 900MB\n",
    );
    let server = host.server();
    assert_eq!(server.status.facts.requested.huge_pages, HugePages::On);
    assert_eq!(
        (
            words(&server.status),
            server.id.postgresql().unwrap().directory.as_deref()
        ),
        ((Severity::Ok, Outlook::Hugetlb), Some("/data"))
    );
    // By PGDATA, or a relative path.
    let elsewhere = Host::with_server("-D\0pg\0").server();
    assert_eq!(
        words(&elsewhere.status),
        (Severity::Notice, Outlook::Unknown)
    );
    assert!(
        elsewhere
            .notes
            .iter()
            .any(|note| note.contains("its place is unknown")),
        "{:?}",
        elsewhere.notes
    );
}

#[test]
fn cgroups_that_can_not_be_read_leave_the_outlook_unknown() {
    let host = Host::with_server("-D\0/data\0");
    host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
    host.write(
        "proc/self/mountinfo",
        "23 28 0:21 / /proc rw shared:14 - proc proc rw\n",
    );
    host.write("proc/self/cgroup", "0::/system.slice\n");
    let server = host.server();
    assert_eq!(words(&server.status), (Severity::Notice, Outlook::Unknown));
    assert!(
        server
            .notes
            .iter()
            .any(|note| note.starts_with("cgroup limits")),
        "{:?}",
        server.notes
    );
}

const UNDETERMINED: &str = "Whether PostgreSQL or Oracle runs here could not be determined:";

#[test]
fn hidden_processes_are_not_absent_ones() {
    let host = Host::new();
    let verdict = |host: &Host| HostVerdict::of_survey(&host.survey(), &[]).message();
    assert_eq!(
        verdict(&host),
        "No PostgreSQL and no Oracle instance runs here."
    );
    host.write(
        "proc/self/mountinfo",
        &MOUNTS.replace("proc rw", "proc rw,hidepid=invisible"),
    );
    assert!(!host.survey().host.processes_are_hidden, "root sees all");
    fs::remove_dir_all(host.0.path().join("proc/1")).unwrap();
    assert!(host.survey().host.processes_are_hidden);
    assert_eq!(
        verdict(&host),
        format!("{UNDETERMINED} hidepid hides the processes of other users. Run this as root.")
    );
}

#[test]
fn processes_outside_of_a_container_are_not_absent_ones() {
    let host = Host::new();
    let link = host.0.path().join("proc/self/ns/pid");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    for (namespace, expected) in [
        (
            "pid:[4026531836]",
            "No PostgreSQL and no Oracle instance runs here.".to_owned(),
        ),
        (
            "pid:[4026532201]",
            format!(
                "{UNDETERMINED} this container shows no processes of the host. Run this on the host."
            ),
        ),
    ] {
        symlink(namespace, &link).unwrap();
        assert_eq!(
            HostVerdict::of_survey(&host.survey(), &[]).message(),
            expected
        );
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn lxcfs_knows_the_container_and_not_the_host() {
    let host = Host::with_server("-D\0/data\0");
    host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
    host.write("proc/meminfo", &MEMINFO.replace("16777216", "65536"));
    assert_eq!(
        host.server().status.severity_of("page_tables"),
        Severity::Critical
    );
    host.write(
        "proc/self/mountinfo",
        &format!("{MOUNTS}99 23 0:50 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n"),
    );
    let survey = host.survey();
    let status = &survey.instances[0].status;
    assert_eq!(
        (words(status), status.capacity, status.recommended),
        ((Severity::Notice, Outlook::Hugetlb), None, None)
    );
    assert_eq!(status.verdict().1, &Finding::HostMemoryUnknown);
    assert_eq!(
        advice::message(status),
        "Shared memory (1 GB) is in 512 huge pages of 2 MB, but the page tables and the memory of the host are unknown: lxcfs \
         shows those of a container."
    );
    assert!(
        survey
            .host
            .notes
            .iter()
            .any(|note| note.starts_with("lxcfs")),
        "{:?}",
        survey.notes
    );
}

/// Lines that lxcfs replaces are no facts of the host; it shows the kernel's others as they are.
#[test]
fn host_facts_under_lxcfs() {
    let host = Host::new();
    host.write(
        "proc/meminfo",
        &format!("{MEMINFO}SwapTotal: 1024 kB\nAnonHugePages: 2048 kB\n"),
    );
    let facts = || {
        let mut notes = Notes::default();
        let facts = kernel_facts::facts(&Root::at(host.0.path()), &mut notes);
        let of = |name: &str| {
            facts
                .iter()
                .find(|fact| fact.name == name)
                .unwrap()
                .setting
                .clone()
        };
        (
            ["MemTotal", "SwapTotal", "AnonHugePages"].map(of),
            ["PageTables", "Hugepagesize"].map(of),
            notes.into_vec(),
        )
    };
    let (of_container, of_host, notes) = facts();
    assert!(
        of_container.iter().chain(&of_host).all(Option::is_some) && notes.is_empty(),
        "{notes:?}"
    );
    host.write(
        "proc/self/mountinfo",
        &format!("{MOUNTS}99 23 0:50 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n"),
    );
    let (of_container, of_host, notes) = facts();
    assert_eq!(of_container, [None, None, None]);
    assert!(of_host.iter().all(Option::is_some));
    assert!(
        notes.len() == 1 && notes[0].starts_with("lxcfs"),
        "{notes:?}"
    );
}

/// Whether the server runs with io_uring is seen by its rings: what a start gets is unknown with them, whatever the files say.
/// What is there and can't be read is neither absent nor a default.
#[test]
fn errors_are_no_defaults() {
    let server = |unseen: &str| {
        let host = Host::with_server("-D\0/data\0");
        host.write("data/postgresql.conf", "huge_pages = on\n");
        if !unseen.is_empty() {
            let path = host.0.path().join(unseen);
            let _ = fs::remove_file(&path);
            symlink(format!("/{unseen}"), path).unwrap();
        }
        host.server()
    };
    let known = server("").status;
    let row = StatusRow::new(&known);
    assert_eq!(row.huge_pages, Some("on"));
    assert_ne!(known.crash.outlook, Outlook::Unknown);
    for unseen in [
        "data/PG_VERSION",
        "data/postgresql.conf",
        "data/postgresql.auto.conf",
        "data/standby.signal",
        "data/recovery.signal",
    ] {
        let Instance { status, notes, .. } = server(unseen);
        assert_eq!(status.forecast.outlook, Outlook::Unknown, "{unseen}");
        assert!(!notes.is_empty(), "{unseen}");
        if unseen.ends_with("conf") {
            assert_eq!(StatusRow::new(&status).huge_pages, None, "{unseen}");
        }
    }
}

#[test]
fn rings_of_a_postmaster() {
    let host = Host::with_server("-D\0/data\0");
    let write = |method: &str| {
        host.write(
            "data/postgresql.conf",
            &format!("shared_buffers = 900MB\nio_method = {method}\n"),
        );
    };
    let outlooks = || {
        let status = host.server().status;
        (words(&status), status.crash_outlook())
    };
    let (without, with) = (
        ((Severity::Ok, Outlook::Hugetlb), Some(Outlook::Hugetlb)),
        ((Severity::Notice, Outlook::Unknown), Some(Outlook::Unknown)),
    );
    write("worker");
    assert_eq!(outlooks(), without);
    write("io_uring");
    assert_eq!(
        outlooks(),
        with,
        "its descriptors can't be read, so its files count"
    );
    let directory = host.0.path().join("proc/70/fd");
    fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink("socket:[1]", directory.join("3")).unwrap();
    assert_eq!(outlooks(), without);
    std::os::unix::fs::symlink("anon_inode:[io_uring]", directory.join("4")).unwrap();
    assert_eq!(outlooks(), with);
    write("worker");
    assert_eq!(outlooks(), with);
}

/// The sidecar does not see a memory policy: nodes whose pools differ leave the outlook unknown.
#[test]
fn nodes_of_a_server() {
    let with = |shares: [(u64, u64); 2], allowed: &str| {
        let host = Host::with_server("-D\0/data\0");
        host.write("data/postgresql.conf", "shared_buffers = 900MB\n");
        host.write(
            "proc/70/status",
            &format!("PPid:\t1\nVmPTE:\t64 kB\nMems_allowed:\t3\nMems_allowed_list:\t{allowed}\n"),
        );
        for (node, (nr, free)) in shares.into_iter().enumerate() {
            let directory = format!("sys/devices/system/node/node{node}");
            host.write(
                &format!("{directory}/meminfo"),
                &format!("Node {node} MemTotal:       8388608 kB\n"),
            );
            for (file, value) in [("nr", nr), ("free", free), ("surplus", 0)] {
                host.write(
                    &format!("{directory}/hugepages/hugepages-2048kB/{file}_hugepages"),
                    &format!("{value}\n"),
                );
            }
        }
        words(&host.server().status)
    };
    assert_eq!(
        with([(300, 44), (300, 44)], "0-1"),
        (Severity::Ok, Outlook::Hugetlb)
    );
    assert_eq!(
        with([(400, 44), (200, 44)], "0-1"),
        (Severity::Notice, Outlook::Unknown)
    );
    assert_eq!(
        with([(300, 44), (300, 44)], "0"),
        (Severity::Warning, Outlook::Base)
    );
}

/// Whatever the kernel shows of such a mapping, nobody sees from outside how much of it is in use.
#[test]
fn a_server_that_can_resize_shared_memory() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "huge_pages = try\nshared_buffers = 100MB\n",
    );
    let parts = "7f0000000000-7f0008000000 rw-s 00000000 00:10 1028                       /anon_hugepage (deleted)\n\
                 7f0008000000-7f0040000000 ---s 08000000 00:10 1028                       /anon_hugepage (deleted)\n";
    host.write("proc/70/maps", parts);
    let server = host.server();
    assert!(
        server.notes.iter().any(|note| note == RESIZABLE),
        "{:?}",
        server.notes
    );
    assert_eq!(
        (
            server.status.facts.landing(),
            server.status.forecast.outlook
        ),
        (Landing::Unknown, Outlook::Unknown)
    );
    assert_ne!(server.status.verdict().0, Severity::Ok);
}

/// The servers are left out, and of the others each name and user is one row.
#[test]
fn programs_that_hold_the_pool() {
    let host = Host::with_server("-D\0/data\0");
    host.write(
        "data/postgresql.conf",
        "huge_pages = try\nshared_buffers = 900MB\n",
    );
    host.write(
        "etc/passwd",
        "root:x:0:0::/root:/bin/sh\nlibvirt-qemu:x:64055:64055::/:/bin/false\n",
    );
    for (file, value) in [("nr", 6000), ("free", 100)] {
        host.write(
            &format!("sys/kernel/mm/hugepages/hugepages-2048kB/{file}_hugepages"),
            &format!("{value}\n"),
        );
    }
    let process = |pid: u32, name: &str, uid: u32, pages: u64| {
        let memory = pages * 2048;
        let status = format!(
            "Name:\t{name}\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nHugetlbPages:\t{memory} kB\n"
        );
        host.write(&format!("proc/{pid}/status"), &status);
        host.write(
            &format!("proc/{pid}/cmdline"),
            &format!("/usr/bin/{name}\0"),
        );
    };
    process(80, "qemu-system-x86", 64055, 3000);
    process(81, "qemu-system-x86", 64055, 2000);
    process(82, "mysqld", 27, 10);
    process(83, "bash", 0, 0);
    let survey = host.survey();
    let rows: Vec<_> = survey
        .host
        .holders
        .iter()
        .map(|row| (row.to_string(), row.processes, row.pages.unwrap().0))
        .collect();
    assert_eq!(
        rows,
        [
            ("qemu-system-x86 (libvirt-qemu)".to_owned(), 2, 5000),
            ("mysqld (uid 27)".to_owned(), 1, 10)
        ]
    );
    let words = |others| survey.host.holders[0].clause(Pages(others));
    assert_eq!(
        words(5388),
        "; qemu-system-x86 (libvirt-qemu) holds 5000 pages"
    );
    assert_eq!(
        words(4999),
        "",
        "pages that several processes share may count more than once"
    );

    // Who has the others of 5388 a tree does not tell, so they count; those of other users do not.
    let [sizing] = &survey.sizings()[..] else {
        panic!()
    };
    assert_eq!(
        (
            sizing.others.0,
            sizing.strangers.pages.0,
            sizing.counted_others().0
        ),
        (5388, 5010, 378)
    );
    assert_eq!(
        sizing.strangers.holder(),
        "qemu-system-x86 (libvirt-qemu) with others"
    );
    assert_eq!(survey.instances[0].status.recommended, sizing.recommended);
    host.write(
        "etc/hugepage-sidecar/service-accounts",
        "libvirt-qemu\n27\n",
    );
    let [sizing] = &host.survey().sizings()[..] else {
        panic!()
    };
    assert_eq!((sizing.others.0, sizing.strangers.pages.0), (5388, 0));

    // Two programs, each of which seems to have more than there is: at most one of them has all.
    for pid in 82..88 {
        process(pid, if pid % 2 == 0 { "mysqld" } else { "java" }, 27, 3000);
    }
    let survey = host.survey();
    let shown: Vec<_> = survey
        .host
        .holders
        .iter()
        .map(|row| (&*row.name, row.verb(), row.pages.unwrap().0))
        .collect();
    let expected = [
        ("java", "holds up to", 5900),
        ("mysqld", "holds up to", 5900),
        ("qemu-system-x86", "holds", 5000),
    ];
    assert_eq!(shown, expected);
}

/// Eight processes with one shared mapping of 2000 pages, and one that has pages of its own.
#[test]
fn shared_pages_count_once() {
    let host = Host::new();
    for (file, value) in [("nr", 2200), ("free", 190)] {
        host.write(
            &format!("sys/kernel/mm/hugepages/hugepages-2048kB/{file}_hugepages"),
            &format!("{value}\n"),
        );
    }
    let holder = || {
        let survey = host.survey();
        survey
            .host
            .holders
            .iter()
            .map(|row| (row.processes, row.pages.unwrap().0))
            .collect::<Vec<_>>()
    };
    for pid in 80..89 {
        let (inode, pages) = if pid == 88 { (7, 10) } else { (5, 2000) };
        let memory = pages * 2048;
        host.write(
            &format!("proc/{pid}/status"),
            &format!("Name:\tyb-tserver\nPPid:\t1\nUid:\t0 0 0 0\nGid:\t0 0 0 0\nHugetlbPages:\t{memory} kB\n"),
        );
        host.write(&format!("proc/{pid}/cmdline"), "/opt/yb-tserver\0");
        let maps = format!(
            "7f0000000000-7f{:010x} rw-s 00000000 00:10 {inode} /anon_hugepage (deleted)\n",
            pages << 21
        );
        host.write(&format!("proc/{pid}/later"), &maps);
    }
    assert_eq!(
        holder(),
        [(9, 2010)],
        "no more than are in use, where the mappings may not be seen"
    );
    for pid in 80..89 {
        let maps = fs::read_to_string(host.0.path().join(format!("proc/{pid}/later"))).unwrap();
        host.write(&format!("proc/{pid}/maps"), &maps);
    }
    assert_eq!(holder(), [(9, 2010)]);
    host.write(
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "0\n",
    );
    assert_eq!(holder(), [(9, 2010)], "each mapping counts once");
}

/// An ordinary user may not look at the servers of others.
#[test]
fn servers_that_may_not_be_looked_at() {
    let host = Host::with_server("-D\0/data\0");
    let verdict = || HostVerdict::of_survey(&host.survey(), &[]);
    assert!(
        verdict()
            .message()
            .starts_with("The one instance is in huge pages."),
        "{}",
        verdict().message()
    );
    host.write(
        "proc/70/status",
        "PPid:\t1\nVmPTE:\t64 kB\nMems_allowed_list:\t0\n",
    );
    for file in ["maps", "smaps"] {
        fs::remove_file(host.0.path().join(format!("proc/70/{file}"))).unwrap();
    }
    host.write("refused", "13 /proc/70/maps\n13 /proc/71/maps\n");
    assert_eq!(
        verdict().message(),
        "The one instance could not be inspected: run this on the host as root."
    );
    for (path, text) in [
        (
            "cmdline",
            "/usr/lib/postgresql/17/bin/postgres\0-D\0/other\0".to_owned(),
        ),
        (
            "status",
            "PPid:\t1\nVmPTE:\t64 kB\nMems_allowed_list:\t0\n".to_owned(),
        ),
        ("stat", format!("71 (postgres) S 1 {}", "0 ".repeat(40))),
        ("cgroup", "0::/\n".to_owned()),
    ] {
        host.write(&format!("proc/71/{path}"), &text);
    }
    assert_eq!(
        verdict().message(),
        "2 instances could not be inspected: run this on the host as root."
    );
    assert!(verdict().is_unknown);
}
