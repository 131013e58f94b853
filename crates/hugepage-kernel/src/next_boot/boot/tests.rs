//! What sets the pools at the next boot, on trees of files.

use std::fs;

use super::*;

#[test]
fn sizes_of_the_command_line() {
    let gigantic = PageSize::from_kib(1 << 20);
    let huge = PageSize::from_kib(2048);
    let pools = pools_of("quiet hugepages=5 hugepagesz=1G hugepages=4 hugepagesz=2048K hugepages=x hugepages=7 a=b");
    assert_eq!(pools, [(None, Pages(5)), (gigantic, Pages(4)), (huge, Pages(7))]);
    for text in ["", "G", "1T", "-1M", "0"] {
        assert_eq!(memparse(text), None, "{text}");
    }
}

#[test]
fn nodes_and_parameters_of_the_command_line() {
    let gigantic = PageSize::from_kib(1 << 20);
    assert_eq!(pools_of("hugepages=0:70,1:71"), [(None, Pages(141))]);
    assert_eq!(pools_of("hugepages=0:70,x"), []);
    assert_eq!(pools_of("hugetlb_cma=4G hugepagesz=1G hugepages=4"), [(gigantic, Pages(0))]);
    assert_eq!(kernel_sysctl_of("a sysctl.vm.nr_hugepages=7 sysctl.vm/nr_hugepages=8 quiet"), Some(Pages(8)));
    assert_eq!(kernel_sysctl_of("vm.nr_hugepages=7"), None);
}

/// A host as a tree of files.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
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
        shown(self.next_boot().pool(PageSize::from_kib(2048).unwrap(), true))
    }

    fn gigantic(&self) -> String {
        shown(self.next_boot().pool(PageSize::from_kib(1 << 20).unwrap(), false))
    }
}

fn shown(pool: PoolAtBoot) -> String {
    match pool {
        PoolAtBoot::Set { pages, file } => format!("{pages} {file}"),
        PoolAtBoot::Unset => "unset".to_owned(),
        PoolAtBoot::Unknown(why) => why,
    }
}

/// What tools write for the next boot: our own commands, tmpfiles.d and units.
#[test]
fn later_writers() {
    let host = Host::new();
    host.write("proc/cmdline", "quiet hugepages=5\n");
    let unit = include_str!("../../../../hugepage-assess/src/advice/fix/hugepages.service.in")
        .replace("@PAGES@", "70")
        .replace("@POOL@", "/sys/kernel/mm/hugepages/hugepages-2048kB");
    host.write("etc/systemd/system/postgresql-hugepages.service", &unit);
    assert_eq!(host.huge(), "5 /proc/cmdline", "it is not enabled");
    host.write("etc/systemd/system/sysinit.target.wants/postgresql-hugepages.service", "");
    assert_eq!(host.huge(), "70 /etc/systemd/system/postgresql-hugepages.service");
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
    assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "a unit never reduces");
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
    assert_eq!(host.gigantic(), "4 /etc/tmpfiles.d/y.conf");
}

/// Which entry is the next one's is in the firmware, in GRUB's environment, or in the hand of who boots.
#[test]
fn entries_of_the_boot_loader() {
    let host = Host::new();
    host.write("proc/cmdline", "quiet hugepages=5\n");
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
    assert_eq!(host.huge(), unknown("/etc/systemd/system/own.service"));
    assert_eq!(host.gigantic(), unknown("/etc/systemd/system/own.service"), "it may set any pool");
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
    assert_eq!(host.next_boot().assignment("vm.swappiness").unwrap().value, "1");
    host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 9\n");
    assert_eq!(host.huge(), "9 /etc/sysctl.d/50.conf");
    host.write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
    assert_eq!(host.huge(), "4 /etc/tuned/mine/tuned.conf");
    assert_eq!(host.gigantic(), "4 /proc/cmdline");
}
