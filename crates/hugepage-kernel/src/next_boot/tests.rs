use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::*;

/// Command lines, and what kernels of several releases made of each (tests/lab).
const TABLE: &str = include_str!("../../../../tests/lab/command-lines.tsv");
const MIB: u64 = 1 << 20;

/// A host that runs systemd, booted an hour ago.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        host.write("proc/uptime", "3600.00 7000.00\n");
        host.write("proc/meminfo", "MemTotal: 8388608 kB\nHugepagesize: 2048 kB\n");
        host.write("proc/cmdline", "root=/dev/vda1 ro quiet deferred_init=lazy rdinit=/init\n");
        host.write("run/systemd/system/own.conf", "");
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

    /// A file that was there before the boot.
    fn write_before(&self, path: &str, text: &str) {
        self.write(path, text);
        self.age(path);
    }

    fn age(&self, path: &str) {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        fs::File::open(self.path(path)).unwrap().set_modified(yesterday).unwrap();
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(path)).unwrap();
    }

    fn pool(&self, mebibytes: u64) -> PoolAtBoot {
        NextBoot::read(&Root::at(self.0.path())).pool(PageSize::new(mebibytes * MIB).unwrap())
    }

    /// The reason why nothing is known.
    fn why(&self) -> String {
        match self.pool(2) {
            PoolAtBoot::Unknown(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

fn set(pages: u64, file: &str) -> PoolAtBoot {
    PoolAtBoot::Set(Pages(pages), file.to_owned())
}

#[test]
fn nothing_sets_it() {
    let host = Host::new();
    assert_eq!([host.pool(2), host.pool(1024)], [PoolAtBoot::Unset, PoolAtBoot::Unset]);
}

#[test]
fn the_last_file_of_sysctl_d() {
    let host = Host::new();
    host.write("usr/lib/sysctl.d/50-db.conf", "vm.nr_hugepages = 1\n");
    host.write("etc/sysctl.d/README", "vm.nr_hugepages = 99\n");
    assert_eq!(host.pool(2), set(1, "/usr/lib/sysctl.d/50-db.conf"));
    // The same name in /etc hides the vendor's file, all of it.
    host.write("etc/sysctl.d/50-db.conf", "# vm.nr_hugepages = 7\nvm.swappiness = 1\n");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/sysctl.d/60-db.conf", "-vm/nr_hugepages=5\n");
    assert_eq!((host.pool(2), host.pool(1024)), (set(5, "/etc/sysctl.d/60-db.conf"), PoolAtBoot::Unset));
    // systemd reads /etc/sysctl.conf only by a link.
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 4\n");
    assert_eq!(host.why(), "/etc/sysctl.conf mentions huge pages, and systemd does not read it");
    host.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
    assert_eq!(host.pool(2), set(4, "/etc/sysctl.conf"));
    host.link("etc/sysctl.d/70-off.conf", "/dev/null");
    assert_eq!(host.pool(2), set(4, "/etc/sysctl.conf"));
    host.write("etc/sysctl.d/99-z.conf", "vm.nr_overcommit_hugepages = 0\n");
    assert_eq!(host.pool(2), set(4, "/etc/sysctl.conf"));
    host.write("etc/sysctl.d/99-z.conf", "vm.nr_overcommit_hugepages = 9\n");
    assert_eq!(host.why(), "/etc/sysctl.d/99-z.conf sets vm.nr_overcommit_hugepages = 9");
    for (line, name) in [
        ("vm.nr_hugepages = 0x10", "vm.nr_hugepages"),
        ("vm.nr_* = 3", "vm.nr_*"),
        ("v?/nr_* = 3", "v?.nr_*"),
        ("*/* = 3", "*.*"),
    ] {
        host.write("etc/sysctl.d/99-z.conf", line);
        assert!(host.why().starts_with(&format!("/etc/sysctl.d/99-z.conf sets {name} = ")), "{line}: {}", host.why());
    }
    host.write("etc/sysctl.d/99-z.conf", "net.ipv4.conf.*.rp_filter = 1\nv4l.* = 1\n");
    assert_eq!(host.pool(2), set(4, "/etc/sysctl.conf"));
    host.link("etc/systemd/system/systemd-sysctl.service", "/dev/null");
    assert_eq!(host.why(), "/etc/systemd/system/systemd-sysctl.service decides whether sysctl.d is read");
}

/// A boot empties /run, and something may write it again.
#[test]
fn run_sysctl_d_may_be_gone() {
    const VENDOR: &str = "usr/lib/sysctl.d/50-db.conf";
    for (vendor, run) in
        [("", "vm.nr_hugepages = 5\n"), ("vm.nr_hugepages = 7\n", ""), ("vm.nr_hugepages = 7\n", "*=5\n")]
    {
        let host = Host::new();
        host.write(VENDOR, vendor);
        host.write("run/sysctl.d/50-db.conf", run);
        assert!(host.why().starts_with("/run/sysctl.d"), "{vendor}{run}: {}", host.why());
    }
    let host = Host::new();
    host.write(VENDOR, "vm.nr_hugepages = 7\n");
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
    host.write("proc/cmdline", "ro hugepages=512 transparent_hugepage=never\n");
    assert_eq!(host.pool(2), set(512, COMMAND_LINE));
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 512\n");
    assert_eq!(host.pool(2), set(512, "/etc/sysctl.d/1.conf"));
    host.write("etc/sysctl.d/1.conf", "vm.nr_hugepages = 513\n");
    assert_eq!(host.why(), "/proc/cmdline and /etc/sysctl.d/1.conf set different numbers");
    host.write("proc/cmdline", "hugepagesz=1G hugepages=4 ro\n");
    assert_eq!((host.pool(2), host.pool(1024)), (set(513, "/etc/sysctl.d/1.conf"), set(4, COMMAND_LINE)));
    for other in [
        "default_hugepagesz=1G hugepagesz=1G hugepages=4",
        "hugepages=1 hugepages=2",
        "hugepages=0:1,1:2",
        "hugepages=4 hugepagesz=1G",
        "hugepagesz=1G quiet hugepages=4",
        "hugepagesz=1G",
        "hugepages=0x10",
        "sysctl.vm.nr_hugepages=3",
    ] {
        host.write("proc/cmdline", other);
        assert!(host.why().starts_with("/proc/cmdline has "), "{other}: {}", host.why());
    }
}

/// What is understood is what each kernel made of it.
#[test]
fn command_lines_that_were_booted() {
    let [huge, gigantic] = [2 * MIB, 1 << 30].map(|size| PageSize::new(size).unwrap());
    let (mut understood, mut rows) = (0, TABLE.lines().filter(|line| !line.starts_with('#')).skip(1));
    let mut compared = |row: &str| {
        let mut cells = row.split('\t');
        let Ok(pools) = on_command_line(cells.next().unwrap(), huge) else { return };
        let of = |size: PageSize| pools.get(&size).map_or(0, |(pages, _)| pages.0);
        let expected = format!("2M {} {}", of(huge), of(gigantic));
        for booted in cells.filter(|booted| !booted.is_empty()) {
            assert_eq!(booted.replace('-', "0"), expected, "{row}");
            understood += 1;
        }
    };
    rows.by_ref().for_each(&mut compared);
    assert!(understood >= 5, "{understood}");
}

#[test]
fn what_else_may_set_it() {
    let mentions = "ExecStart=/bin/sh -c 'echo 70 > /proc/sys/vm/nr_hugepages'\n";
    for path in [
        "etc/tmpfiles.d/a.conf",
        "usr/lib/tmpfiles.d/a.conf",
        "etc/systemd/system/a.service",
        "etc/systemd/system/a.service.d/b.conf",
        "etc/rc.local",
        "etc/cron.d/a",
        "etc/init.d/a",
        "etc/udev/rules.d/a.rules",
        "var/spool/cron/crontabs/root",
        "usr/local/lib/systemd/system/a.service",
        "usr/lib/systemd/system/a.service.d/b.conf",
        "var/lib/cloud/instance/vendor-data.txt",
        "etc/sysfs.conf",
        "etc/sysfs.d/a.conf",
        "var/spool/cron/tabs/root",
        "usr/local/lib/udev/rules.d/a.rules",
        "etc/network/interfaces",
        "etc/network/if-pre-up.d/a",
        "etc/networkd-dispatcher/carrier.d/a",
        "etc/NetworkManager/dispatcher.d/no-wait.d/a",
        "usr/lib/NetworkManager/dispatcher.d/a",
        "etc/saptune/override/a",
        "etc/credstore/tmpfiles.extra",
    ] {
        let host = Host::new();
        host.write(path, "echo never > /sys/kernel/mm/transparent_hugepage/enabled\n# nr_hugepages\n");
        assert_eq!(host.pool(2), PoolAtBoot::Unset, "{path}");
        host.write(path, mentions);
        assert_eq!(host.why(), format!("/{path} mentions huge pages"));
    }
    let host = Host::new();
    host.write("etc/dpdk/dpdk.conf", "#NR_2M_PAGES=64\n");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/dpdk/dpdk.conf", "NR_1G_PAGES=64\n");
    assert_eq!(host.why(), "/etc/dpdk/dpdk.conf mentions huge pages");
    // A unit of the administrator's own that is enabled.
    let host = Host::new();
    host.write("etc/systemd/system/own.service", "ExecStart=/bin/true\n");
    host.link("etc/systemd/system/multi-user.target.wants/own.service", "/etc/systemd/system/own.service");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    let host = Host::new();
    host.write("usr/lib/systemd/system/pool@.service", mentions);
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.link("etc/systemd/system/multi-user.target.wants/pool@5.service", "/usr/lib/systemd/system/pool@.service");
    assert_eq!(host.why(), "/usr/lib/systemd/system/pool@.service mentions huge pages");
    for link in
        ["etc/systemd/system/timers.target.wants/pool.timer", "usr/lib/systemd/system/a.target.wants/pool.service"]
    {
        let host = Host::new();
        host.write("usr/lib/systemd/system/pool.service", mentions);
        assert_eq!(host.pool(2), PoolAtBoot::Unset);
        host.link(link, "/usr/lib/systemd/system/pool.timer");
        assert_eq!(host.why(), "/usr/lib/systemd/system/pool.service mentions huge pages");
    }
    let host = Host::new();
    host.link("etc/systemd/system/sysinit.target.wants/hugeadm.service", "/opt/own/x.service");
    assert!(host.why().ends_with("hugeadm.service mentions huge pages"), "{}", host.why());
    let host = Host::new();
    host.link("etc/systemd/system/x.service", "/opt/own/x.service");
    host.link("etc/systemd/system/local-fs.target.wants/tmp.mount", "/usr/share/systemd/tmp.mount");
    // It is a link itself, to a file elsewhere.
    assert_eq!(host.why(), "/etc/systemd/system/x.service leads to a place that is not read");
}

/// A file that sysctl loads may have any name, and is not read.
#[test]
fn another_file_for_sysctl() {
    for path in ["etc/rc.local", "etc/systemd/system/a.service"] {
        let host = Host::new();
        for line in [
            "sysctl -p",
            "sysctl --system",
            "sysctl -q -p >/dev/null",
            "mkdir -p /etc/sysctl.d",
            "systemd-sysctl --prefix=/net",
        ] {
            host.write(path, line);
            assert_eq!(host.pool(2), PoolAtBoot::Unset, "{line}");
        }
        for line in [
            "/sbin/sysctl -q -p /opt/a",
            "sysctl -p/opt/a",
            "sysctl --load=/opt/a",
            "sysctl -p $a",
            "/usr/lib/systemd/systemd-sysctl /opt/a",
        ] {
            host.write(path, line);
            assert_eq!(host.why(), format!("/{path} has sysctl load another file"), "{line}");
        }
    }
}

#[test]
fn the_active_profile_of_tuned() {
    let host = Host::new();
    host.write("usr/lib/tuned/db/tuned.conf", "[main]\ninclude = base\n[vm]\ntransparent_hugepages=never\n");
    host.write("usr/lib/tuned/base/tuned.conf", "[sysctl]\nvm.nr_hugepages=5\n");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/tuned/active_profile", "db\n");
    assert_eq!(host.why(), "/usr/lib/tuned/base/tuned.conf mentions huge pages");
    host.write("etc/tuned/base/tuned.conf", "[vm]\n");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/tuned/base/own.sh", "sysctl -w vm.nr_hugepages=5\n");
    assert_eq!(host.why(), "/etc/tuned/base/own.sh mentions huge pages");
    host.write("etc/tuned/active_profile", "\n");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/tuned/post_loaded_profile", "base\n");
    assert_eq!(host.why(), "/etc/tuned/base/own.sh mentions huge pages");
    fs::remove_file(host.path("etc/tuned/base/own.sh")).unwrap();
    host.write("etc/tuned/active_profile", "../../home/user\n");
    assert_eq!(host.why(), "the profile ../../home/user of tuned is not found");
}

#[test]
fn a_boot_loader_that_was_changed() {
    let host = Host::new();
    host.write_before("boot/grub/grub.cfg", "linux /vmlinuz hugepages=5\n");
    host.write_before("etc/default/grub.d/a.cfg", "");
    host.age("etc/default/grub.d");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.write("etc/default/grub.d/a.cfg", "");
    assert_eq!(host.why(), "/etc/default/grub.d/a.cfg is newer than the boot");
    for (directory, name) in
        [("boot/efi/EFI", "redhat"), ("boot/efi/EFI/Linux", "a.efi"), ("efi/EFI/Linux", "a.efi.extra.d")]
    {
        let host = Host::new();
        host.write(&format!("{directory}/{name}/own"), "");
        host.age(directory);
        host.age(directory.trim_end_matches("/Linux"));
        host.age(&format!("{directory}/{name}"));
        assert_eq!(host.pool(2), PoolAtBoot::Unset);
        fs::remove_file(host.path(&format!("{directory}/{name}/own"))).unwrap();
        assert_eq!(host.why(), format!("/{directory}/{name} is newer than the boot"));
    }
    for path in ["boot/grub/custom.cfg", "boot/grub2/custom.cfg", "boot/grub/menu.lst"] {
        let host = Host::new();
        host.write(path, "");
        assert_eq!(host.why(), format!("/{path} is newer than the boot"));
    }
    let host = Host::new();
    host.write("sys/kernel/kexec_loaded", "1\n");
    assert_eq!(host.why(), "another kernel or deployment is loaded for the next start");
}

#[test]
fn without_systemd() {
    let host = Host::new();
    fs::remove_dir_all(host.path("run/systemd/system")).unwrap();
    assert_eq!(host.why(), "systemd does not run, whose settings are known here");
}

/// Nothing that a file names is opened, and nothing that others may have written.
#[test]
fn only_plain_files_of_root() {
    let host = Host::new();
    host.write("home/user/pool.sh", "sysctl vm.nr_hugepages=5\n");
    host.write("etc/systemd/system/a.service", "ExecStart=/home/user/pool.sh\n");
    host.link("etc/tmpfiles.d/a.conf", "/home/user/pool.sh");
    assert_eq!(host.pool(2), PoolAtBoot::Unset);
    host.link("etc/sysctl.d/a.conf", "/home/user/pool.sh");
    assert_eq!(host.why(), "/etc/sysctl.d/a.conf is a symbolic link, which is not followed");
    let host = Host::new();
    host.write("etc/tmpfiles.d/a.conf", "");
    fs::set_permissions(host.path("etc/tmpfiles.d/a.conf"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(host.why(), "/etc/tmpfiles.d/a.conf is not read: others than root may write to it");
    let host = Host::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        host.path("etc/rc.local"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(host.why(), "/etc/rc.local is not read: it is not a regular file");
    let host = Host::new();
    host.write("etc/cron.d/a", &" ".repeat(65_537));
    assert_eq!(host.why(), "/etc/cron.d/a is not read: it is longer than 64 kB");
    let host = Host::new();
    (0..201).for_each(|number| host.write(&format!("etc/cron.d/{number}"), ""));
    assert!(host.why().ends_with("is not read: too many files were read before it"), "{}", host.why());
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
            host.write(&format!("etc/sysctl.d/{number:03}.conf"), &LINE.repeat(LINES));
        }
        written = files;
        let time = || {
            let begun = Instant::now();
            assert_eq!(host.pool(2), set(7, &format!("/etc/sysctl.d/{:03}.conf", files - 1)));
            begun.elapsed()
        };
        (0..5).map(|_| time()).min().unwrap()
    };
    // 45,000 lines, and four times as many, for which a quadratic reader takes sixteen times as long.
    let [few, many] = [14, 56].map(&mut shortest);
    assert!(many < few * 8, "{few:?} for {} lines, {many:?} for {}", 14 * LINES, 56 * LINES);
}
