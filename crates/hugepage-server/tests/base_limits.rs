//! What the kernel grants in base pages, from files of /proc to the decision.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

use hugepage_assess::assessment::base_limits;
use hugepage_assess::model::{BaseLimit, HugePages, Product, Requested, Segment};
use hugepage_facts::Landing;
use hugepage_kernel::memory::kernel_limits::shares_ipc;
use hugepage_kernel::{Bytes, KernelLimits, Meminfo, Root};

/// More than any request.
const ALL: Bytes = Bytes(u64::MAX);
const HEAD: &str = "key shmid perms size cpid lpid nattch uid";

fn write(tree: &Path, path: &str, text: &str) {
    let file = tree.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn requested(sysv: bool) -> Requested {
    Requested {
        product: Product::PostgreSql,
        huge_pages: HugePages::Off,
        huge_page_size: None,
        sysv,
        shared_buffers: Bytes(0),
        io_uring: false,
    }
}

/// In kB: what is granted, and what is not refused.
fn limits(tree: &Path, sysv: bool) -> Vec<(String, u64, u64)> {
    limits_beside(tree, sysv, None)
}

/// The same once a server with `segment` has ended.
fn limits_beside(tree: &Path, sysv: bool, segment: Option<&Segment>) -> Vec<(String, u64, u64)> {
    let root = Root::at(tree);
    let meminfo = Meminfo::read(&root).ok();
    let found = base_limits(
        &KernelLimits::read(&root),
        shares_ipc(&root, "7"),
        &requested(sysv),
        segment,
        meminfo.as_ref(),
    );
    let kib = |bytes: Bytes| {
        if bytes == ALL {
            u64::MAX
        } else {
            bytes.0 / 1024
        }
    };
    let shown = |limit: BaseLimit| (limit.name, kib(limit.granted), kib(limit.most));
    found.into_iter().map(shown).collect()
}

#[test]
fn by_mode_and_kernel() {
    let tree = tempfile::tempdir().unwrap();
    let tree = tree.path();
    let one = |mode: &str, release: &str| {
        write(tree, "proc/sys/vm/overcommit_memory", mode);
        write(tree, "proc/sys/kernel/osrelease", release);
        let (_, granted, most) = limits(tree, false).remove(0);
        (granted, most)
    };
    write(
        tree,
        "proc/meminfo",
        "MemTotal: 1000000 kB\nMemAvailable: 300000 kB\nSwapTotal: 5000 kB\nCommitLimit: 500000 kB\nCommitted_AS: 100000 kB\n",
    );
    write(tree, "proc/sys/vm/admin_reserve_kbytes", "8192\n");
    assert_eq!(one("0\n", "6.1.0-18-amd64\n"), (1_005_000, 1_005_000));
    assert_eq!(one("0\n", "5.2.0\n"), (1_005_000, 1_005_000));
    assert_eq!(one("0\n", "4.18.0-513.el8.x86_64\n"), (300_000, 1_005_000));
    assert_eq!(one("1\n", "6.1.0\n"), (u64::MAX, u64::MAX));
    assert_eq!(one("2\n", "6.1.0\n"), (391_808 - 65_536, 391_808 + 65_536));
    assert_eq!(one("x\n", "6.1.0\n"), (0, u64::MAX));
    // A server in surplus pages gives them back at its end, and CommitLimit grows by a part of them.
    write(tree, "proc/sys/vm/overcommit_memory", "2\n");
    let size = Bytes::from_kib(200_000);
    let in_huge_pages = |in_huge_pages| Segment {
        name: "/anon_hugepage".to_owned(),
        size,
        to_reserve: size,
        in_huge_pages,
        page_size: None,
        landing: Landing::Mixed,
    };
    for (huge, granted, most) in [(Bytes(0), 591_808, 591_808), (size, 391_808, 591_808)] {
        let (_, found, not_refused) =
            limits_beside(tree, false, Some(&in_huge_pages(huge))).remove(0);
        assert_eq!((found, not_refused), (granted - 65_536, most + 65_536));
    }
    // lxcfs shows those of a container.
    let mount = "24 1 0:44 / /proc/meminfo rw - fuse.lxcfs lxcfs rw\n";
    write(tree, "proc/self/mountinfo", mount);
    assert_eq!(one("0\n", "6.1.0\n"), (1_005_000, u64::MAX));
    assert_eq!(one("1\n", "6.1.0\n"), (u64::MAX, u64::MAX));
    assert_eq!(one("2\n", "6.1.0\n"), (0, u64::MAX));
    fs::remove_file(tree.join("proc/meminfo")).unwrap();
    assert_eq!(one("0\n", "6.1.0\n"), (0, u64::MAX));
}

#[test]
fn of_system_v_segments() {
    let tree = tempfile::tempdir().unwrap();
    let tree = tree.path();
    write(tree, "proc/meminfo", "MemTotal: 1000000 kB\n");
    let own = fs::read("/proc/self/auxv").unwrap();
    fs::create_dir_all(tree.join("proc/self")).unwrap();
    fs::write(tree.join("proc/self/auxv"), own).unwrap();
    let segment = format!("{HEAD}\n1 2 600 {} 3 3 1 26\n", 1 << 20);
    write(tree, "proc/sysvipc/shm", &segment);
    let second = |shmmax: u64, shmall: u64| {
        write(tree, "proc/sys/kernel/shmmax", &shmmax.to_string());
        write(tree, "proc/sys/kernel/shmall", &shmall.to_string());
        limits(tree, true).remove(1)
    };
    let named = |name: &str, kib| (name.to_owned(), kib, kib);
    assert_eq!(second(4 << 20, 1024), named("kernel.shmall", 3072));
    assert_eq!(second(2 << 20, 1024), named("kernel.shmmax", 2048));
    assert_eq!(second(2 << 20, 1), named("kernel.shmall", 0));
    // In another IPC namespace other limits hold.
    for (pid, inode) in [("self", 1), ("7", 2)] {
        fs::create_dir_all(tree.join(format!("proc/{pid}/ns"))).unwrap();
        let link = tree.join(format!("proc/{pid}/ns/ipc"));
        std::os::unix::fs::symlink(format!("ipc:[{inode}]"), link).unwrap();
    }
    assert_eq!(second(2 << 20, 1024).1, 0);
}
