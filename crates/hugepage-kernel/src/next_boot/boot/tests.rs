//! What sets the pools at the next boot, on trees of files.

use std::fs;

use super::*;
use crate::next_boot::pool_at_boot::PoolAtBoot;

/// A host as a tree of files.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        host.write("proc/meminfo", "MemTotal: 67108864 kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n");
        host.write("proc/sys/kernel/osrelease", "6.12.1\n");
        host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz ro\n");
        host
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn next_boot(&self) -> NextBoot {
        NextBoot::read(&Root::at(self.0.path())).unwrap()
    }

    /// The pool of 2 MB, the default size: `5 /proc/cmdline`, `unset`, or why it is unknown.
    fn huge(&self) -> String {
        shown(self.next_boot().pool(PageSize::from_kib(2048).unwrap()))
    }

    fn gigantic(&self) -> String {
        shown(self.next_boot().pool(PageSize::from_kib(1 << 20).unwrap()))
    }
}

fn shown(pool: PoolAtBoot) -> String {
    match pool {
        PoolAtBoot::Set { pages, file } => format!("{pages} {file}"),
        PoolAtBoot::Unset => "unset".to_owned(),
        PoolAtBoot::Unknown(why) => why,
    }
}

/// What tools write for the next boot: our own commands, and tmpfiles.d.
#[test]
fn later_writers() {
    let host = Host::new();
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet hugepages=5\n");
    assert_eq!(host.huge(), "5 /proc/cmdline");
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
    assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf");
    host.write("usr/lib/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_hugepages - - - - 95\n");
    assert_eq!(host.huge(), "95 /usr/lib/tmpfiles.d/x.conf");
    assert_eq!(host.gigantic(), "unset");
    let gigantic = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    host.write("etc/tmpfiles.d/x.conf", &format!("# ours\nw {gigantic} - - - - 3\n"));
    assert_eq!(host.gigantic(), "3 /etc/tmpfiles.d/x.conf");
    assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "the file of that name is hidden");
    let node =
        |node| format!("w /sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages - - - - 2\n");
    host.write("etc/tmpfiles.d/y.conf", &(node(0) + &node(1)));
    assert_eq!(host.gigantic(), "/etc/tmpfiles.d/y.conf sets a part of it, beside another file");
    host.write("sys/devices/system/node/online", "0-1\n");
    assert_eq!(host.gigantic(), "4 /etc/tmpfiles.d/y.conf");
}

/// Which entry is the next one's is in the firmware, in GRUB's environment, or in the hand of who boots.
#[test]
fn entries_of_the_boot_loader() {
    let host = Host::new();
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet hugepages=5\n");
    let of_entries = |lines: &[&str]| {
        host.write("boot/grub/grub.cfg", &format!("menuentry x {{\n\t{}\n}}\n", lines.join("\n\t")));
    };
    of_entries(&["linux /vmlinuz-6.1 ro hugepages=9", "linux /old ro hugepages=9"]);
    assert_eq!(host.huge(), "9 /boot/grub/grub.cfg");
    // What Debian's scripts add beside.
    of_entries(&["linux /vmlinuz-6.1 ro hugepages=9", "linux /vmlinuz-6.1 ro single", "linux16 /boot/memtest86+.bin"]);
    assert_eq!(host.huge(), "9 /boot/grub/grub.cfg");
    of_entries(&["linux /vmlinuz-6.1 ro hugepages=9", "linux /old ro"]);
    let differ = |files: &str| {
        format!("the entries of the boot loader have different pools ({files}), and which one is next is unknown")
    };
    assert_eq!(host.huge(), differ("/boot/grub/grub.cfg"));
    assert_eq!(host.gigantic(), "unset", "no entry has gigantic pages");
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
    assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "whatever the entry");
    host.write("etc/sysctl.d/50.conf", "");
    host.write("boot/grub/grub.cfg", "blscfg\n");
    host.write("boot/loader/entries/a.conf", "linux /vmlinuz\noptions $kernelopts quiet\n");
    host.write("boot/grub2/grubenv", "# GRUB Environment Block\nkernelopts=ro sysctl.vm.nr_hugepages=11\n");
    assert_eq!(host.huge(), "11 /boot/loader/entries/a.conf");
    host.write("boot/loader/entries/0-rescue.conf", "options ro\n");
    assert_eq!(host.huge(), "11 /boot/loader/entries/a.conf");
    host.write("boot/loader/entries/b.conf", "options ro hugepages=12\n");
    assert_eq!(host.huge(), differ("/boot/loader/entries/a.conf and /boot/loader/entries/b.conf"));
}

/// A number that is not understood is neither none nor the one before.
#[test]
fn numbers_that_can_not_be_read() {
    let unknown = |file: &str| format!("{file} sets it, to a number that could not be read");
    for (path, text) in [
        ("etc/sysctl.d/50.conf", "vm.nr_hugepages = many\n"),
        // The kernel takes it as octal.
        ("etc/sysctl.d/51.conf", "vm.nr_hugepages = 010\n"),
        ("etc/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_hugepages - - - - %b\n"),
        ("etc/tmpfiles.d/y.conf", "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n"),
        ("etc/tmpfiles.d/z.conf", "w! /sys/kernel/mm/hugepages/*/nr_hugepages - - - - 7\n"),
    ] {
        let host = Host::new();
        host.write("proc/cmdline", "hugepages=5\n");
        host.write(path, text);
        let expected = unknown(&format!("/{path}"));
        assert_eq!(host.huge(), expected, "{text}");
        // A pattern may mean any pool.
        assert_eq!(host.gigantic(), if text.contains('*') { expected } else { "unset".to_owned() }, "{text}");
    }
    let host = Host::new();
    host.write("proc/cmdline", "hugepages=5\n");
    host.write("etc/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_overcommit_hugepages - - - - %b\n");
    assert_eq!(host.huge(), "5 /proc/cmdline", "that is another parameter");
    host.write("etc/systemd/system/own.service", "[Service]\nExecStart=/sbin/own /proc/sys/vm/nr_hugepages\n");
    host.write("etc/systemd/system/multi-user.target.wants/own.service", "");
    assert_eq!(host.huge(), not_read("/etc/systemd/system/own.service"));
    assert_eq!(host.gigantic(), not_read("/etc/systemd/system/own.service"), "it may set any pool");
}

fn not_read(file: &str) -> String {
    format!("{file} may set it, and what it does is not understood")
}

#[test]
fn who_wins() {
    let host = Host::new();
    assert_eq!(host.huge(), "unset");
    host.write("proc/cmdline", "hugepages=5 hugepagesz=1G hugepages=4\n");
    assert_eq!(host.huge(), "5 /proc/cmdline");
    assert_eq!(host.gigantic(), "4 /proc/cmdline");
    host.write("etc/tuned/active_profile", "mine\n");
    host.write("usr/lib/tuned/base/tuned.conf", "[sysctl]\nvm.nr_hugepages = 3\nvm.swappiness=1\n");
    host.write("etc/tuned/mine/tuned.conf", "[main]\ninclude=base\n[vm]\nx=1\n[sysctl]\nvm.nr_hugepages=4\n");
    assert_eq!(host.huge(), "4 /etc/tuned/mine/tuned.conf");
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 9\n");
    assert_eq!(host.huge(), "9 /etc/sysctl.d/50.conf");
    host.write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
    assert_eq!(host.huge(), "4 /etc/tuned/mine/tuned.conf");
    assert_eq!(host.gigantic(), "4 /proc/cmdline");
}

/// Whatever runs at boot and mentions pools makes them unknown, with its file.
#[test]
fn programs_that_run_at_boot() {
    const SETS: &str = "#!/bin/sh\necho 70 > /proc/sys/vm/nr_hugepages\n";
    let unit = |command: &str| format!("[Service]\nType=oneshot\nExecStart={command}\n");
    let enabled = "etc/systemd/system/multi-user.target.wants/x.service";
    for (files, expected) in [
        (vec![("usr/lib/systemd/system/x.service", unit("/usr/local/bin/x.sh"))], "/usr/local/bin/x.sh"),
        (
            vec![("usr/local/lib/systemd/system/x.service", unit("-/bin/sh -c '/usr/local/bin/x.sh start'"))],
            "/usr/local/bin/x.sh",
        ),
        (vec![("etc/systemd/system/x.service", unit("+x.sh"))], "/usr/local/bin/x.sh"),
        (
            vec![
                ("etc/systemd/system/x.service", unit("/usr/bin/true")),
                ("etc/systemd/system/x.service.d/a.conf", unit("/sbin/sysctl -w vm.nr_hugepages=70")),
            ],
            "/etc/systemd/system/x.service.d/a.conf",
        ),
        (
            vec![
                ("etc/systemd/system/x.service", "[Unit]\nWants=y.service\n".to_owned()),
                ("usr/lib/systemd/system/y.service", unit("/usr/bin/hugeadm --pool-pages-min 2MB:70")),
            ],
            "/usr/lib/systemd/system/y.service",
        ),
        (
            vec![
                ("etc/systemd/system/timers.target.wants/z.timer", String::new()),
                ("etc/systemd/system/z.timer", "[Timer]\nOnBootSec=1min\n".to_owned()),
                ("etc/systemd/system/z.service", unit("/usr/local/bin/x.sh")),
            ],
            "/usr/local/bin/x.sh",
        ),
        (vec![("etc/rc.local", SETS.to_owned())], "/etc/rc.local"),
        (vec![("etc/rc.local", "#!/bin/sh\n/usr/local/bin/x.sh &\n".to_owned())], "/usr/local/bin/x.sh"),
        (vec![("etc/init.d/x", SETS.to_owned()), ("etc/rc3.d/S01x", String::new())], "/etc/init.d/x"),
        (vec![("etc/cron.d/x", "@reboot root /usr/local/bin/x.sh\n".to_owned())], "/usr/local/bin/x.sh"),
        (
            vec![("var/spool/cron/crontabs/root", "@reboot /usr/local/bin/x.sh >/dev/null\n".to_owned())],
            "/usr/local/bin/x.sh",
        ),
        (
            vec![(
                "etc/udev/rules.d/x.rules",
                "RUN+=\"/bin/sh -c 'echo 70 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'\"".to_owned(),
            )],
            "/etc/udev/rules.d/x.rules",
        ),
        (
            vec![("usr/lib/udev/rules.d/x.rules", "ATTR{hugepages/hugepages-2048kB/nr_hugepages}=\"70\"".to_owned())],
            "/usr/lib/udev/rules.d/x.rules",
        ),
        (
            vec![("var/lib/cloud/instance/vendor-data.txt", "bootcmd: [sysctl -w vm.nr_hugepages=70]".to_owned())],
            "/var/lib/cloud/instance/vendor-data.txt",
        ),
    ] {
        let host = Host::new();
        host.write("usr/local/bin/x.sh", SETS);
        host.write(enabled, "");
        host.write("proc/cmdline", "hugepages=5\n");
        files.iter().for_each(|(path, text)| host.write(path, text));
        assert_eq!(host.huge(), not_read(expected), "{files:?}");
    }
    // What is not started, or masked, or sets no pool.
    for (path, text) in [
        ("etc/systemd/system/y.service", unit("/usr/local/bin/x.sh")),
        ("etc/systemd/system/x.target.wants/z.service", String::new()),
        ("etc/systemd/system/z.service", unit("/usr/bin/postgres_exporter --extend.query-path=/etc/queries.yaml")),
        ("etc/systemd/system/shutdown.target.wants/y.service", String::new()),
        ("etc/init.d/y", SETS.to_owned()),
        ("etc/rc3.d/K01y", String::new()),
        ("etc/systemd/system/sysinit.target.wants/dev-hugepages.mount", String::new()),
        (
            "usr/lib/systemd/system/dev-hugepages.mount",
            "[Unit]\nConditionPathExists=/sys/kernel/mm/hugepages\n[Mount]\nWhat=hugetlbfs\nWhere=/dev/hugepages\n"
                .to_owned(),
        ),
        ("etc/crontab", "# @reboot root echo 1 > /proc/sys/vm/nr_hugepages\n".to_owned()),
    ] {
        let host = Host::new();
        host.write("usr/local/bin/x.sh", SETS);
        host.write("etc/queries.yaml", "SELECT nr_hugepages\n");
        host.write("proc/cmdline", "hugepages=5\n");
        host.write("etc/systemd/system/y.service", &unit("/usr/local/bin/x.sh"));
        host.write(path, &text);
        assert_eq!(host.huge(), "5 /proc/cmdline", "{path}");
    }
    let host = Host::new();
    host.write(enabled, "");
    host.write("usr/lib/systemd/system/x.service", &unit("/bin/sh -c 'echo 7 > /proc/sys/vm/nr_hugepages'"));
    host.write("etc/systemd/system/README", "");
    host.write("etc/systemd/system/x.service", "");
    assert_eq!(host.huge(), "unset");
    std::fs::remove_file(host.0.path().join("etc/systemd/system/x.service")).unwrap();
    std::os::unix::fs::symlink("/dev/null", host.0.path().join("etc/systemd/system/x.service")).unwrap();
    assert_eq!(host.huge(), "unset");
}

/// sysctl.d and counts without a size are for the default size of the next boot.
#[test]
fn another_default_size() {
    let host = Host::new();
    host.write(
        "boot/loader/entries/a.conf",
        "linux /vmlinuz-6.12.1\noptions ro default_hugepagesz=1G hugepagesz=1G hugepages=16\n",
    );
    assert_eq!((host.huge(), host.gigantic()), ("unset".into(), "16 /boot/loader/entries/a.conf".into()));
    assert_eq!(host.next_boot().default_size().unwrap(), PageSize::from_kib(1 << 20).unwrap());
    host.write("etc/sysctl.d/90.conf", "vm.nr_hugepages = 9216\n");
    let too_much =
        "/etc/sysctl.d/90.conf asks for 9216 pages of 1 GB, which are 9216 GB, and this host has 64 GB of memory";
    assert_eq!((host.huge(), host.gigantic()), ("unset".into(), too_much.into()));
    // Two entries with different defaults.
    host.write("boot/loader/entries/b.conf", "linux /vmlinuz-6.1.0\noptions ro\n");
    let expected = "/etc/sysctl.d/90.conf sets the pool of the default size, and the entries of the boot loader have different \
                    default page sizes (/boot/loader/entries/a.conf and /boot/loader/entries/b.conf), and which one is next is \
                    unknown";
    assert_eq!(host.huge(), expected);
    // The running kernel has another default by its own command line.
    let host = Host::new();
    host.write("proc/meminfo", "MemTotal: 67108864 kB\nHugepagesize: 1048576 kB\n");
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz default_hugepagesz=1G");
    host.write("boot/grub/grub.cfg", "linux /vmlinuz-6.12.1 ro hugepages=70\n");
    assert_eq!((host.huge(), host.gigantic()), ("70 /boot/grub/grub.cfg".into(), "unset".into()));
}

/// The kernel decides how a line is read: the release of the entry counts, not that of the running one.
#[test]
fn releases_of_entries() {
    let host = Host::new();
    let of_image = |image: &str| {
        host.write("boot/grub/grub.cfg", &format!("linux /{image} ro hugepages=70 hugepagesz=2M hugepages=90\n"));
        host.huge()
    };
    let differs = "what the kernel makes of /boot/grub/grub.cfg depends on its release and its page sizes";
    assert_eq!(of_image("vmlinuz-6.12.1"), "70 /boot/grub/grub.cfg");
    assert_eq!(of_image("vmlinuz-5.4.0-26-generic"), "90 /boot/grub/grub.cfg");
    assert_eq!(of_image("vmlinuz-4.18.0-553.el8_10.x86_64"), differs, "Red Hat may have taken over the change");
    assert_eq!(of_image("vmlinuz-linux"), "70 /boot/grub/grub.cfg", "the running kernel or a newer one");
}

/// A pool with pages that nothing sets was set by hand, unless a file could not be read.
#[test]
fn unexplained_pools() {
    let host = Host::new();
    let meminfo = "MemTotal: 67108864 kB\nHugePages_Total: 70\nHugepagesize: 2048 kB\n";
    host.write("proc/meminfo", meminfo);
    assert_eq!((host.huge(), host.gigantic()), ("unset".into(), "unset".into()));
    let read = host.next_boot();
    let of_two_mb = |boot: &NextBoot| boot.pool(PageSize::from_kib(2048).unwrap());
    let not_read = NextBoot { not_read: vec!["/boot may not be read".to_owned()], ..read.clone() };
    let why = "no file that was read sets it, and it has 70 pages now; /boot may not be read";
    assert_eq!(of_two_mb(&read), PoolAtBoot::Unset);
    assert_eq!(of_two_mb(&not_read), PoolAtBoot::Unknown(why.to_owned()));
    fs::remove_file(host.0.path().join("proc/cmdline")).unwrap();
    assert_eq!(host.huge(), "the kernel's command line is not there");
    // The running kernel's command line explains it, and the next has none.
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz hugepages=70\n");
    host.write("boot/grub/grub.cfg", "linux /vmlinuz-6.12.1 ro\n");
    assert_eq!(host.huge(), "unset");
    host.write("sys/kernel/kexec_loaded", "1\n");
    assert_eq!(host.huge(), "a kernel is loaded by kexec, and its command line is unknown");
}

/// Both names write the same pool, and the last write counts.
#[test]
fn names_of_the_default_pool() {
    for (text, expected) in [
        ("vm.nr_hugepages = 9216\nvm.nr_hugepages_mempolicy = 0\n", "0 /etc/sysctl.d/a.conf"),
        ("vm.nr_hugepages_mempolicy = 0\n-vm/nr_hugepages=7\n", "7 /etc/sysctl.d/a.conf"),
        ("vm.nr_overcommit_hugepages = 7\n", "unset"),
        ("vm.nr_huge* = 7\n-vm.nr_hugepages\n", "by the name vm.nr_huge*,"),
        ("vm.* = 7\nvm.swappiness = 1\n", "by the name vm.*,"),
        ("vm.nr_* = 7\n", "by the name vm.nr_*,"),
        ("vm.s* = 7\nnet.* = 1\n", "unset"),
        ("/proc/sys/vm/nr_hugepages = 7\n", "by the name .proc.sys.vm.nr_hugepages,"),
        ("nr_hugepages=7\n", "/etc/sysctl.d/a.conf may set it by the name nr_hugepages, which is not understood"),
        ("vm.nr_hugepages = 7 # why\n", "/etc/sysctl.d/a.conf sets it, to a number that could not be read"),
    ] {
        let host = Host::new();
        host.write("etc/sysctl.d/a.conf", text);
        let said = host.huge();
        assert!(said == expected || expected.ends_with(',') && said.contains(expected), "{text}: {said}");
    }
}

/// tuned applies /etc/sysctl.d and then /etc/sysctl.conf after its own parameters.
#[test]
fn what_tuned_applies_again() {
    let host = Host::new();
    host.write("run/systemd/system/x", "");
    host.write("etc/systemd/system/multi-user.target.wants/tuned.service", "");
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 9\n");
    assert_eq!(host.huge(), "unset", "systemd does not read it");
    host.write("etc/tuned/active_profile", "db\n");
    host.write("etc/tuned/db/tuned.conf", "[vm]\ntransparent_hugepages=never\n");
    assert_eq!(host.huge(), "unset", "nothing is applied after it");
    host.write("etc/tuned/db/tuned.conf", "[sysctl]\nvm.nr_hugepages = 7\n");
    assert_eq!(host.huge(), "9 /etc/sysctl.conf");
    host.write("etc/sysctl.conf", "");
    host.write("usr/lib/sysctl.d/50.conf", "vm.nr_hugepages = 8\n");
    assert_eq!(host.huge(), "/usr/lib/sysctl.d/50.conf and tuned set it, and which is later is unknown");
    host.write("usr/lib/sysctl.d/50.conf", "vm.nr_hugepages = 7\n");
    assert_eq!(host.huge(), "7 /usr/lib/sysctl.d/50.conf");
    // A profile that is loaded behind the chosen one.
    host.write("etc/tuned/post_loaded_profile", "more\n");
    host.write("etc/tuned/profiles/more/tuned.conf", "[sysctl]\nvm.nr_hugepages = 6\n");
    host.write("usr/lib/sysctl.d/50.conf", "");
    assert_eq!(host.huge(), "6 /etc/tuned/profiles/more/tuned.conf");
}

/// What applies /etc/sysctl.conf matters where systemd does not read it, or reads another number.
#[test]
fn programs_that_apply_sysctl_conf() {
    let host = Host::new();
    host.write("run/systemd/system/x", "");
    host.write("etc/sysctl.conf", "vm.nr_hugepages = 9\n");
    assert_eq!(host.huge(), "unset");
    host.write("etc/rc.local", "#!/bin/sh\nsysctl -p\n");
    assert_eq!(host.huge(), not_read("/etc/rc.local"));
    std::fs::create_dir_all(host.0.path().join("etc/sysctl.d")).unwrap();
    std::os::unix::fs::symlink("../sysctl.conf", host.0.path().join("etc/sysctl.d/99-sysctl.conf")).unwrap();
    assert_eq!(host.huge(), "9 /etc/sysctl.d/99-sysctl.conf");
    host.write("etc/sysctl.d/99-z.conf", "vm.nr_hugepages = 8\n");
    assert_eq!(host.huge(), not_read("/etc/rc.local"));
    host.write("etc/rc.local", "#!/bin/sh\nsysctl -p /etc/sysctl.d/net.conf\n");
    assert_eq!(host.huge(), "8 /etc/sysctl.d/99-z.conf");
    host.write("etc/systemd/system/multi-user.target.wants/a.service", "");
    host.write("etc/systemd/system/a.service", "[Service]\nExecStart=/sbin/sysctl --system\n");
    assert_eq!(host.huge(), not_read("/etc/systemd/system/a.service"));
}

#[test]
fn masked_service_of_sysctl() {
    let host = Host::new();
    host.write("etc/sysctl.d/a.conf", "vm.nr_hugepages = 7\n");
    host.write("etc/systemd/system/x", "");
    let unit = "etc/systemd/system/systemd-sysctl.service";
    let masked = |host: &Host| {
        assert!(host.huge().ends_with("systemd-sysctl.service, which reads it, is masked"), "{}", host.huge())
    };
    host.write(unit, "");
    masked(&host);
    std::fs::remove_file(host.0.path().join(unit)).unwrap();
    std::os::unix::fs::symlink("/dev/null", host.0.path().join(unit)).unwrap();
    masked(&host);
}

/// Of several lines for one path systemd-tmpfiles takes the first, and ignores the others.
#[test]
fn lines_of_tmpfiles() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let line = |kind: &str, pages: u32| format!("{kind} {pool} - - - - {pages}\n");
    let unclear = "/etc/tmpfiles.d/a.conf sets it, to a number that could not be read";
    for (text, expected) in [
        (line("w", 7) + &line("w", 8), "7 /etc/tmpfiles.d/a.conf"),
        (line("w!", 7) + &line("w-", 8), "7 /etc/tmpfiles.d/a.conf"),
        (line("w", 7) + "w /proc/sys/vm/nr_hugepages - - - - 8\n", "8 /etc/tmpfiles.d/a.conf"),
        (line("w+", 7), unclear),
        (line("w", 7) + &line("w+", 8), unclear),
        (line("w~", 1024), unclear),
        (line("F", 7), unclear),
    ] {
        let host = Host::new();
        host.write("etc/tmpfiles.d/a.conf", &text);
        host.write("usr/lib/tmpfiles.d/z.conf", &line("w", 9));
        assert!(
            host.huge().starts_with(expected) || expected == unclear && host.huge().ends_with("not be read"),
            "{text}"
        );
    }
}

/// Words and files of boot loaders other than GRUB, each with the same pool.
#[test]
fn other_boot_loaders() {
    for (file, text) in [
        ("boot/extlinux.conf", "LABEL lts\n  LINUX vmlinuz-lts\n  APPEND quiet hugepages=70\n"),
        ("boot/limine.conf", "/Arch\n    protocol: linux\n    cmdline: rw hugepages=70\n"),
        (
            "boot/refind_linux.conf",
            "\"Boot it\"  \"root=UUID=x rw hugepages=70\"\n\"One user\" \"root=UUID=x single\"\n",
        ),
        ("boot/armbianEnv.txt", "verbosity=1\nextraargs=hugepagesz=2M hugepages=70\n"),
        ("boot/uEnv.txt", "uname_r=6.12.8\ncmdline=net.ifnames=0 hugepages=70\n"),
        ("boot/firmware/current/cmdline.txt", "console=tty1 hugepages=70\n\n"),
        ("boot/grub/custom.cfg", "menuentry pg {\n  linux /vmlinuz-6.12.8 ro hugepages=70\n}\n"),
        ("boot/efi/EFI/debian/elilo.conf", "image=/vmlinuz\n  append=\"root=/dev/sda3 hugepages=70\"\n"),
        ("etc/yaboot.conf", "image=/vmlinux\n  append=\"root=/dev/sda3 hugepages=70\"\n"),
    ] {
        let host = Host::new();
        host.write("proc/cmdline", "root=UUID=x rw\n");
        host.write(file, text);
        assert_eq!(host.huge(), format!("70 /{file}"));
    }
}

/// GRUB puts BOOT_IMAGE= before the words. Without it, another boot loader has started the kernel, and may do so again.
#[test]
fn files_of_a_boot_loader_that_is_not_used() {
    let host = Host::new();
    host.write("boot/grub/grub.cfg", "linux /vmlinuz-6.8.12-1-pve ro hugepages=70\n");
    assert_eq!(host.huge(), "70 /boot/grub/grub.cfg");
    host.write("proc/cmdline", "initrd=\\EFI\\proxmox\\initrd.img root=ZFS=rpool\n");
    let unclear = "the entries of the boot loader have different pools (/boot/grub/grub.cfg and /proc/cmdline), and which one is \
                   next is unknown";
    assert_eq!(host.huge(), unclear);
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.8.12-1-pve root=ZFS=rpool\n");
    assert_eq!(host.huge(), "70 /boot/grub/grub.cfg");
    // zipl(8) has to install what its file says.
    let host = Host::new();
    host.write("proc/cmdline", "BOOT_IMAGE=0 root=/dev/dasda1\n");
    host.write("etc/zipl.conf", "[linux]\nparameters=\"root=/dev/dasda1 hugepages=70\"\n");
    assert!(host.huge().contains("(/etc/zipl.conf and /proc/cmdline)"), "{}", host.huge());
}

#[test]
fn staged_deployment() {
    let host = Host::new();
    host.write("boot/loader/entries/ostree-1.conf", "linux /vmlinuz-6.12.1\noptions hugepages=70\n");
    assert_eq!(host.huge(), "70 /boot/loader/entries/ostree-1.conf");
    host.write("run/ostree/staged-deployment", "");
    assert_eq!(host.huge(), "a deployment of ostree is staged, and its command line is unknown");
}

/// Programs that a unit names by specifiers, by its own variables, or from its working directory on; and units that others start.
#[test]
fn programs_by_other_names() {
    let enabled = "etc/systemd/system/multi-user.target.wants";
    let unit = |path: &str, text: &str, script: &str| {
        let host = Host::new();
        host.write("etc/sysctl.d/a.conf", "vm.nr_hugepages = 7\n");
        host.write(&format!("{enabled}/{}", path.replace("db@.", "db@one.")), "");
        host.write(&format!("etc/systemd/system/{path}"), text);
        assert_eq!(host.huge(), "7 /etc/sysctl.d/a.conf");
        host.write(script, "#!/bin/sh\nsysctl -w vm.nr_hugepages=9\n");
        host.huge()
    };
    for (path, text, script) in [
        ("db@.service", "ExecStart=/bin/bash /var/lib/db/%i/unit.run\n", "var/lib/db/one/unit.run"),
        ("db@.service", "ExecStart=%h/%p.sh\n", "root/db.sh"),
        ("a.service", "Environment=\"A=1\" DIR=/opt/a\nExecStart=/bin/sh -c \"${DIR}/a.sh\"\n", "opt/a/a.sh"),
        ("a.service", "WorkingDirectory=/opt/a\nExecStart=/bin/sh ./b/a.sh\n", "opt/a/b/a.sh"),
    ] {
        assert_eq!(unit(path, text, script), not_read(&format!("/{script}")), "{text}");
    }
    let host = Host::new();
    host.write("boot/loader/entries/a.conf", "linux /vmlinuz-6.12.1\noptions ro systemd.wants=hp.service\n");
    host.write("etc/systemd/system/hp.service", "ExecStart=/sbin/sysctl -w vm.nr_hugepages=9\n");
    assert_eq!(host.huge(), not_read("/etc/systemd/system/hp.service"));
    for text in ["[Unit]\nOnSuccess=hp.service\n", "[Unit]\nWants=hp.service\n"] {
        let host = Host::new();
        host.write("etc/systemd/system/default.target", text);
        host.write("etc/systemd/system/hp.service", "ExecStart=/sbin/sysctl -w vm.nr_hugepages=9\n");
        assert_eq!(host.huge(), not_read("/etc/systemd/system/hp.service"));
    }
}

/// GRUB's variables are from its environment and from what its configuration sets.
#[test]
fn variables_of_grub() {
    let host = Host::new();
    host.write("boot/loader/entries/a.conf", "linux /vmlinuz-6.12.1\noptions $kernelopts ${tuned_params} $other\n");
    host.write("boot/grub2/grubenv", "kernelopts=ro quiet\ntuned_params=hugepagesz=2M hugepages=70\n");
    assert_eq!(host.huge(), "70 /boot/loader/entries/a.conf");
    host.write("boot/grub2/grub.cfg", "if [ -z \"${kernelopts}\" ]; then\n  set kernelopts=\"ro hugepages=9\"\nfi\n");
    assert_eq!(host.huge(), "70 /boot/loader/entries/a.conf", "it is set");
    host.write("boot/grub2/grub.cfg", "set tuned_params=\"hugepages=80\"\n");
    assert_eq!(host.huge(), "the variable tuned_params in /boot/loader/entries/a.conf has several values");
    // On EFI it may be root's alone.
    let host = Host::new();
    host.write("boot/loader/entries/a.conf", "linux /vmlinuz-6.12.1\noptions $kernelopts\n");
    host.write("boot/grub2/grubenv/x", "");
    assert!(
        host.huge().starts_with("the variable kernelopts in /boot/loader/entries/a.conf is unknown: "),
        "{}",
        host.huge()
    );
    let host = Host::new();
    host.write("boot/EFI/Linux/arch.efi", "MZ");
    assert_eq!(host.huge(), "/boot/EFI/Linux/arch.efi is a unified kernel image, and its command line is not read");
}

/// The files of a container say nothing of the host that boots.
#[test]
fn in_a_container() {
    let host = Host::new();
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
    host.write(".dockerenv", "");
    assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "a host that was made from an image");
    let link = host.0.path().join("proc/self/ns/pid");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("pid:[4026532201]", link).unwrap();
    assert_eq!(host.huge(), "these are the files of a container, not of the host");
}
