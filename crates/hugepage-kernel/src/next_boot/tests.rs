use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use super::sources::{SYSCTL_CONF, SYSCTL_UNIT, TMPFILES, on_command_line};
use super::*;

/// Command lines, and what kernels of several releases made of each (tests/lab).
const TABLE: &str = include_str!("../../../../tests/lab/command-lines.tsv");
const MIB: u64 = 1 << 20;
const UNSEEN: PoolAtBoot = PoolAtBoot::Unseen { has_systemd: true };

/// A host that runs systemd, booted an hour ago, with 70 pages now.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        host.write("proc/uptime", "3600.00 7000.00\n");
        host.write("proc/sys/kernel/random/boot_id", "this-boot\n");
        host.write("etc/machine-id", "0123\n");
        host.write(
            "proc/meminfo",
            "MemTotal: 8388608 kB\nHugepagesize: 2048 kB\n",
        );
        host.write(
            "proc/cmdline",
            "root=/dev/vda1 ro transparent_hugepage=never hugetlb_free_vmemmap=on\n",
        );
        host.write("run/systemd/system/own.conf", "");
        for (size, pages) in [("2048", "70"), ("1048576", "0")] {
            for (name, value) in [
                ("nr", pages),
                ("free", "0"),
                ("resv", "0"),
                ("surplus", "0"),
                ("nr_overcommit", "0"),
            ] {
                let pool = format!("sys/kernel/mm/hugepages/hugepages-{size}kB");
                host.write(&format!("{pool}/{name}_hugepages"), value);
            }
        }
        host
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(path)).unwrap();
    }

    fn read(&self) -> NextBoot {
        NextBoot::read(&Root::at(self.0.path()))
    }

    /// The pool with what was seen.
    fn recalled(&self, looks: &[BootLook]) -> PoolAtBoot {
        let mut boot = self.read();
        boot.recall((looks.to_vec(), None));
        boot.pool(size(2))
    }

    fn pool(&self, mebibytes: u64) -> PoolAtBoot {
        self.read().pool(size(mebibytes))
    }

    /// The reason why nothing is known.
    fn why(&self) -> String {
        match self.pool(2) {
            PoolAtBoot::Unknown(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

fn size(mebibytes: u64) -> PageSize {
    PageSize::new(mebibytes * MIB).unwrap()
}

fn set(pages: u64, file: &str) -> PoolAtBoot {
    PoolAtBoot::Set(Pages(pages), file.to_owned())
}

#[test]
fn nothing_sets_it() {
    let host = Host::new();
    // Places that nobody looks at, and names that set no pool.
    host.write("etc/systemd/system/a.service", "sysctl vm.nr_hugepages=5\n");
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 4\n");
    host.write(
        "etc/sysctl.d/98-oracle.conf",
        "vm.hugetlb_shm_group = 54321\nvm.hugetlb_optimize_vmemmap = 1\nvm.s* = 1\n",
    );
    assert_eq!([host.pool(2), host.pool(1024)], [UNSEEN, UNSEEN]);
    fs::remove_dir_all(host.path("run/systemd/system")).unwrap();
    host.write("etc/sysctl.conf", "vm.swappiness = 1\n");
    let without = PoolAtBoot::Unseen { has_systemd: false };
    assert_eq!(host.pool(2), without);
}

/// It lets Oracle have huge pages. The kernel's own is 0.
#[test]
fn the_group_of_system_v_memory() {
    let host = Host::new();
    let group = |left| {
        let mut boot = host.read();
        let look = BootLook {
            boot_age_seconds: 200,
            shm_group: left,
            ..boot.look.clone()
        };
        boot.recall((vec![look], None));
        boot.shm_group().unwrap()
    };
    host.write("proc/sys/vm/hugetlb_shm_group", "54321\n");
    assert_eq!(host.read().look.shm_group, Some(54321));
    assert_eq!([None, Some(0), Some(54321)].map(group), [0, 0, 54321]);
    let mut lines = String::new();
    for (line, expected) in [
        ("vm.hugetlb_shm_group = 54321", 54321),
        // The kernel refuses it.
        ("vm.hugetlb_shm_group = dba", 5),
        ("vm/hugetlb_shm_group=7", 7),
        ("vm.huge* = 9", 7),
        ("-vm.hugetlb_shm_group", 5),
    ] {
        lines += &format!("{line}\n");
        host.write("etc/sysctl.d/98-oracle.conf", &lines);
        assert_eq!(group(Some(5)), expected, "{line}");
    }
    host.write("etc/sysctl.d/98-oracle.conf", "vm.hugetlb_shm_group = 1\n");
    fs::remove_dir_all(host.path("run/systemd/system")).unwrap();
    assert_eq!(group(None), 0, "only systemd reads it");
}

/// The real systemd-sysctl is asked the same in tests/scenarios/test_sysctl_d.py.
#[test]
fn the_last_line_of_sysctl_d() {
    let host = Host::new();
    host.write("usr/lib/sysctl.d/50-db.conf", "vm.nr_hugepages = 1\n");
    host.write("etc/sysctl.d/README", "vm.nr_hugepages = 99\n");
    assert_eq!(host.pool(2), set(1, "/usr/lib/sysctl.d/50-db.conf"));
    // The same name in /etc hides the vendor's file, all of it.
    host.write("etc/sysctl.d/50-db.conf", "# vm.nr_hugepages = 7\n");
    assert_eq!(host.pool(2), UNSEEN);
    host.write("etc/sysctl.d/60-db.conf", "-vm/nr_hugepages=5\n");
    assert_eq!(
        (host.pool(2), host.pool(1024)),
        (set(5, "/etc/sysctl.d/60-db.conf"), UNSEEN)
    );
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 4\n");
    host.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
    host.link("etc/sysctl.d/70-off.conf", "/dev/null");
    assert_eq!(host.pool(2), set(4, "/etc/sysctl.conf"));
    for (line, expected) in [
        ("vm.nr_overcommit_hugepages = 0", set(4, "/etc/sysctl.conf")),
        ("vm.nr_* = 3", UNSEEN),
        ("-vm.nr_hugepages", UNSEEN),
        ("vm.nr_hugepages = 70\u{a0}", UNSEEN),
        (
            "vm.nr_hugepages = 0x10 # sixteen",
            set(16, "/etc/sysctl.d/99-z.conf"),
        ),
    ] {
        host.write("etc/sysctl.d/99-z.conf", line);
        host.write("etc/sysctl.d/.99-zz.conf", "vm.nr_hugepages = 8\n");
        if line.contains('*') {
            assert_eq!(host.why(), "/etc/sysctl.d/99-z.conf sets vm.nr_* = 3");
        } else {
            assert_eq!(host.pool(2), expected, "{line}");
        }
    }
    for line in [
        "vm.nr_overcommit_hugepages = 9",
        "vm/nr_hugepages_mempolicy = 3",
    ] {
        host.write("etc/sysctl.d/99-z.conf", line);
        let named = line.replace('/', ".");
        assert_eq!(host.why(), format!("/etc/sysctl.d/99-z.conf sets {named}"));
    }
}

/// A boot empties /run, and something may write it again.
#[test]
fn run_sysctl_d_may_be_gone() {
    let host = Host::new();
    host.write("usr/lib/sysctl.d/50-db.conf", "vm.nr_hugepages = 7\n");
    host.write("run/sysctl.d/60-other.conf", "vm.swappiness = 1\n");
    assert_eq!(host.pool(2), set(7, "/usr/lib/sysctl.d/50-db.conf"));
    host.link("run/sysctl.d/50-db.conf", "/dev/null");
    assert!(host.why().starts_with("/run/sysctl.d"), "{}", host.why());
    host.write("etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 8\n");
    assert_eq!(host.pool(2), set(8, "/etc/sysctl.d/50-db.conf"));
}

#[test]
fn a_count_on_the_command_line() {
    let host = Host::new();
    host.write("proc/cmdline", "ro hugepages=512\n");
    assert_eq!(host.pool(2), set(512, COMMAND_LINE));
    // It is set later.
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 513\n");
    assert_eq!(host.pool(2), set(513, "/etc/sysctl.d/1.conf"));
    for other in [
        "hugepagesz=1G hugepages=4",
        "default_hugepagesz=1G hugepagesz=1G hugepages=4",
        "hugepages=1 hugepages=2",
        "hugepages=0:1,1:2",
        "hugepages=4 hugepagesz=1G",
        "hugepagesz=1G",
        "hugepages=0x10",
        "sysctl.vm.nr_hugepages=3",
        "dyndbg=\"a b\" hugepages=3",
        "dyndbg=\"a -- b\" hugepages=3",
        "hugepages=3 systemd.mask=systemd-sysctl.service",
        "systemd.set_credential_binary=sysctl.extra:dm0=",
    ] {
        host.write("proc/cmdline", other);
        assert!(
            host.why().starts_with("/proc/cmdline has "),
            "{other}: {}",
            host.why()
        );
    }
}

/// What is understood is what each kernel made of it.
#[test]
fn command_lines_that_were_booted() {
    let (mut understood, rows) = (
        0,
        TABLE.lines().filter(|line| !line.starts_with('#')).skip(1),
    );
    for row in rows {
        let mut cells = row.split('\t');
        let Ok(count) = on_command_line(cells.next().unwrap()) else {
            continue;
        };
        let expected = format!("2M {} 0", count.unwrap_or_default());
        for booted in cells.filter(|booted| !booted.is_empty()) {
            assert_eq!(booted.replace('-', "0"), expected, "{row}");
            understood += 1;
        }
    }
    assert!(understood >= 3, "{understood}");
}

/// The line that `apply --persist` writes.
#[test]
fn our_own_line_of_tmpfiles_d() {
    let host = Host::new();
    let line = |pages: &str| {
        format!("w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - {pages}\n")
    };
    host.write("etc/tmpfiles.d/other.conf", &line("9"));
    host.write(
        TMPFILES.trim_start_matches('/'),
        &format!("# ours\n{}", line("4")),
    );
    assert_eq!((host.pool(2), host.pool(1024)), (UNSEEN, set(4, TMPFILES)));
}

#[test]
fn the_memory_of_the_last_boot() {
    let host = Host::new();
    let first = BootLook {
        boot_age_seconds: 40,
        ..host.read().look
    };
    let remembered = PoolAtBoot::Remembered(Pages(70));
    assert_eq!(host.recalled(&[]), UNSEEN);
    assert_eq!(host.recalled(std::slice::from_ref(&first)), remembered);
    host.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3");
    assert_eq!(host.recalled(std::slice::from_ref(&first)), remembered);
    let none = BootLook {
        pools: BTreeMap::from([(size(2), Pages(0))]),
        ..first.clone()
    };
    assert_eq!(host.recalled(&[none]), PoolAtBoot::Unset);
    let changed: [fn(&mut BootLook); 5] = [
        |look| look.boot_age_seconds = 301,
        |look| look.boot_id = "another".to_owned(),
        |look| look.machine_id = "another".to_owned(),
        |look| look.sources = "/etc/sysctl.d/1.conf sets 3 of 2 MB".to_owned(),
        |look| look.pools.clear(),
    ];
    for (number, change) in changed.into_iter().enumerate() {
        let mut look = first.clone();
        change(&mut look);
        let later = [
            look,
            BootLook {
                boot_age_seconds: 9,
                ..first.clone()
            },
        ];
        assert_eq!(host.recalled(&later[..1]), UNSEEN, "{number}");
        // A second look is none.
        let expected = if number == 1 {
            remembered.clone()
        } else {
            UNSEEN
        };
        assert_eq!(host.recalled(&later), expected, "{number}");
    }
    // What is not understood is as it was, too.
    host.write("proc/cmdline", "hugepagesz=2M hugepages=70\n");
    assert!(host.why().starts_with("/proc/cmdline has "));
    let sources = host.read().look.sources;
    assert_eq!(host.recalled(&[BootLook { sources, ..first }]), remembered);
}

/// What may be missing there may be a look at fewer pages.
#[test]
fn a_damaged_memory_is_unknown_and_no_boot_that_nobody_saw() {
    let host = Host::new();
    let first = BootLook {
        boot_age_seconds: 40,
        ..host.read().look
    };
    for looks in [vec![], vec![first]] {
        let mut boot = host.read();
        boot.recall((looks, Some("boots.history is damaged".to_owned())));
        let expected = PoolAtBoot::Unknown("boots.history is damaged".to_owned());
        assert_eq!(boot.pool(size(2)), expected);
    }
}

/// Also where what they say is long.
#[test]
fn sources_that_differ_at_their_end() {
    let host = Host::new();
    let first = |rest| {
        host.write(
            "proc/cmdline",
            &format!("{} {rest}\n", "hugepagesz=2M ".repeat(40)),
        );
        BootLook {
            boot_age_seconds: 40,
            ..host.read().look
        }
    };
    let [one, other] = ["hugepages=1", "hugepages=2"].map(first);
    assert_ne!(one.sources, other.sources);
    assert_eq!(host.recalled(&[other]), PoolAtBoot::Remembered(Pages(70)));
    assert!(matches!(host.recalled(&[one]), PoolAtBoot::Unknown(_)));
}

/// Something may lower a pool a while after the first look.
#[test]
fn the_fewest_pages_of_the_last_boot() {
    let host = Host::new();
    let at = |second, pages| BootLook {
        boot_age_seconds: second,
        pools: BTreeMap::from([(size(2), Pages(pages))]),
        ..host.read().look
    };
    let remembered = |pages| PoolAtBoot::Remembered(Pages(pages));
    assert_eq!(host.recalled(&[at(20, 70), at(90, 60)]), remembered(60));
    assert_eq!(host.recalled(&[at(20, 70), at(90, 80)]), remembered(70));
    assert_eq!(host.recalled(&[at(20, 70), at(301, 60)]), remembered(70));
}

/// A boot may leave another number than the file says.
#[test]
fn the_memory_beside_a_file() {
    let host = Host::new();
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 70\n");
    let seen = |pages| BootLook {
        boot_age_seconds: 40,
        pools: BTreeMap::from([(size(2), Pages(pages))]),
        ..host.read().look
    };
    assert_eq!(host.recalled(&[seen(70)]), set(70, "/etc/sysctl.d/1.conf"));
    for other in [0, 69, 71] {
        let remembered = PoolAtBoot::Remembered(Pages(other));
        assert_eq!(host.recalled(&[seen(other)]), remembered);
    }
}

/// This look is the first, unless the pools were changed since the boot.
#[test]
fn the_first_look() {
    let host = Host::new();
    let first = || {
        let mut boot = host.read();
        boot.recall(([boot.look.clone()], None));
        (boot.first_look().is_some(), boot.pool(size(2)))
    };
    assert_eq!(first(), (false, UNSEEN));
    host.write("proc/uptime", "299.00 7000.00\n");
    assert_eq!(first(), (true, PoolAtBoot::Remembered(Pages(70))));
    host.write(APPLIED.trim_start_matches('/'), "");
    assert_eq!(first(), (false, UNSEEN));
}

#[test]
fn what_root_says() {
    let host = Host::new();
    let told = |pages| PoolAtBoot::Told(Pages(pages), "tuned, by us".to_owned());
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 3\n");
    let before = BootLook {
        boot_age_seconds: 40,
        ..host.read().look
    };
    host.write(TOLD.trim_start_matches('/'), "# ours\n3200 tuned, by us\n");
    assert_eq!((host.pool(2), host.pool(1024)), (told(3200), UNSEEN));
    // It was written after the boot, which the next one confirms or refutes.
    assert_eq!(host.recalled(&[before]), told(3200));
    let with = |pages| BootLook {
        boot_age_seconds: 40,
        pools: BTreeMap::from([(size(2), Pages(pages))]),
        ..host.read().look
    };
    assert_eq!(host.recalled(&[with(3200)]), told(3200));
    let refuted = PoolAtBoot::Remembered(Pages(3));
    assert_eq!(host.recalled(&[with(3)]), refuted);
    for text in ["tuned 4200\n", "4200\n", "1 a\n2 b\n"] {
        host.write(TOLD.trim_start_matches('/'), text);
        assert!(host.why().starts_with(TOLD), "{text}");
    }
    host.write(TOLD.trim_start_matches('/'), "1 a\n");
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(host.path(TOLD.trim_start_matches('/')), open).unwrap();
    assert!(host.why().contains("others than root may write to it"));
}

#[test]
fn more_than_the_memory_holds() {
    let host = Host::new();
    let why = |file, what| format!("{file} sets {what}, which the memory does not hold");
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 4096\n");
    assert_eq!(
        host.why(),
        why("/etc/sysctl.d/1.conf", "4096 pages of 2 MB")
    );
    // Programs need memory, too.
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 3900\n");
    assert_eq!(
        host.why(),
        why("/etc/sysctl.d/1.conf", "3900 pages of 2 MB")
    );
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 3800\n");
    assert_eq!(host.pool(2), set(3800, "/etc/sysctl.d/1.conf"));
    // Each of two pools by itself fits.
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 2048\n");
    let line = "w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 4\n";
    host.write(TMPFILES.trim_start_matches('/'), line);
    assert_eq!(host.why(), why(TMPFILES, "4 pages of 1 GB"));
    // Root's word stands for the file's.
    host.write(TOLD.trim_start_matches('/'), "1700 tuned\n");
    assert_eq!(host.pool(1024), set(4, TMPFILES));
    host.write(TOLD.trim_start_matches('/'), "4096 tuned\n");
    assert_eq!(host.why(), why(TOLD, "4096 pages of 2 MB"));
}

/// A unit of the administrator's decides what a boot does with sysctl.d, and nothing of it is read.
#[test]
fn systemd_sysctl_is_masked_or_changed() {
    for path in SYSCTL_UNIT {
        let host = Host::new();
        host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 70\n");
        host.link(path.trim_start_matches('/'), "/dev/null");
        assert_eq!(
            host.why(),
            format!("{path} changes what a boot does with sysctl.d")
        );
    }
}

/// Something reads them, or not: without systemd that is another program.
#[test]
fn sysctl_d_without_systemd() {
    let host = Host::new();
    fs::remove_dir_all(host.path("run/systemd/system")).unwrap();
    host.write("proc/cmdline", "hugepages=70\n");
    host.write("etc/sysctl.conf", "vm.swappiness = 1\n");
    assert_eq!(host.pool(2), set(70, COMMAND_LINE));
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 7\n");
    for line in ["hugepages=70\n", "ro\n"] {
        host.write("proc/cmdline", line);
        let why = "whether a boot without systemd reads /etc/sysctl.conf is not known";
        assert_eq!(host.why(), why, "{line}");
    }
    host.write("etc/sysctl.conf", "");
    host.write("etc/sysctl.d/90-db.conf", "vm.nr_hugepages = 70\n");
    let why = "whether a boot without systemd reads /etc/sysctl.d/90-db.conf is not known";
    assert_eq!(host.why(), why);
}

#[test]
fn what_leads_to_sysctl_conf() {
    let host = Host::new();
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 70\n");
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 7\n");
    host.link("usr/lib/sysctl.d/99.conf", "../sysctl.conf");
    assert!(
        host.why()
            .starts_with("/usr/lib/sysctl.d/99.conf is a symbolic link")
    );
    fs::remove_file(host.path("usr/lib/sysctl.d/99.conf")).unwrap();
    assert_eq!(host.pool(2), set(70, "/etc/sysctl.d/1.conf"));
    host.write("proc/sys/kernel/osrelease", "3.10.0-1160.el7.x86_64\n");
    assert_eq!(host.pool(2), set(7, SYSCTL_CONF), "Enterprise Linux 7");
    host.write("proc/sys/kernel/osrelease", "6.12.0\n");
    host.link("etc/sysctl.d/99.conf", "../sysctl.conf");
    fs::rename(host.path("etc/sysctl.conf"), host.path("etc/other")).unwrap();
    host.link("etc/sysctl.conf", "other");
    assert!(
        host.why()
            .starts_with("/etc/sysctl.conf is a symbolic link")
    );
    let host = Host::new();
    host.write("etc/sysctl.d/1.conf/x", "");
    assert_eq!(host.why(), "/etc/sysctl.d/1.conf is a directory");
}

/// Nothing that a file names is opened, and nothing that others may have written.
#[test]
fn only_plain_files_of_root() {
    let host = Host::new();
    host.link("etc/sysctl.d/a.conf", "/home/user/pool.conf");
    assert_eq!(
        host.why(),
        "/etc/sysctl.d/a.conf is a symbolic link, which is not followed"
    );
    const FILE: &str = "etc/sysctl.d/a.conf";
    let host = Host::new();
    host.write(FILE, "");
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(host.path(FILE), open).unwrap();
    assert_eq!(
        host.why(),
        format!("/{FILE} is not read: others than root may write to it")
    );
    let host = Host::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        host.path(FILE),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(
        host.why(),
        format!("/{FILE} is not read: it is not a regular file")
    );
    let host = Host::new();
    host.write(FILE, &" ".repeat(65_537));
    assert_eq!(
        host.why(),
        format!("/{FILE} is not read: it is longer than 64 kB")
    );
    let host = Host::new();
    (0..201).for_each(|number| host.write(&format!("etc/sysctl.d/{number}.conf"), ""));
    assert!(
        host.why()
            .ends_with("is not read: too many files were read before it"),
        "{}",
        host.why()
    );
}

#[test]
fn a_long_sysctl_d_costs_as_much_a_line_as_a_short_one() {
    /// As many lines as fit into one of the files that are read.
    const LINES: usize = (64 << 10) / LINE.len();
    const LINE: &str = "vm.nr_hugepages = 7\n";
    let host = Host::new();
    let mut written = 0;
    let mut shortest = |files: usize| {
        for number in written..files {
            host.write(
                &format!("etc/sysctl.d/{number:03}.conf"),
                &LINE.repeat(LINES),
            );
        }
        written = files;
        let time = || {
            let begun = Instant::now();
            assert_eq!(
                host.pool(2),
                set(7, &format!("/etc/sysctl.d/{:03}.conf", files - 1))
            );
            begun.elapsed()
        };
        (0..20).map(|_| time()).min().unwrap()
    };
    // 45,000 lines, and four times as many, for which a quadratic reader takes sixteen times as long. Beside other work the few may fit
    // into a slice of time and the many into none, so the shortest of three rounds counts.
    let [few, many] = [14, 56].map(&mut shortest);
    let many = many.min(shortest(56)).min(shortest(56));
    assert!(
        many < few * 8,
        "{few:?} for {} lines, {many:?} for {}",
        14 * LINES,
        56 * LINES
    );
}

/// Only of an enabled unit, and while nobody has taken from what it left.
#[test]
fn what_the_unit_makes() {
    let host = Host::new();
    let pool = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    host.write(pool, "120");
    host.write("run/hugepage-sidecar/reserved", "2048 120\n");
    assert_eq!(host.pool(2), UNSEEN);
    let wants = "etc/systemd/system/sysinit.target.wants/hugepage-reserve.service";
    host.write(wants, "");
    assert_eq!(host.pool(2), UNSEEN, "systemd makes a link");
    let link = host.0.path().join(wants);
    fs::remove_file(&link).unwrap();
    symlink("/usr/lib/systemd/system/hugepage-reserve.service", &link).unwrap();
    let made = |smaller| PoolAtBoot::Made {
        pages: Pages(120),
        smaller,
    };
    assert_eq!(host.pool(2), made(None));
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 72\n");
    let smaller = Some((Pages(72), "/etc/sysctl.d/1.conf".to_owned()));
    assert_eq!(host.pool(2), made(smaller.clone()));
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 121\n");
    assert_eq!(host.pool(2), set(121, "/etc/sysctl.d/1.conf"));
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 72\n");
    // It was lower once.
    let look = |pages| BootLook {
        pools: BTreeMap::from([(size(2), Pages(pages))]),
        boot_age_seconds: 40,
        ..host.read().look
    };
    assert_eq!(host.recalled(&[look(120)]), made(smaller));
    assert_eq!(
        host.recalled(&[look(120), look(119)]),
        PoolAtBoot::Remembered(Pages(119))
    );
    host.write(pool, "119");
    assert_eq!(host.pool(2), set(72, "/etc/sysctl.d/1.conf"));
}
