//! A host with a server as it should be, one in base pages whose name tries to be markup, and an Oracle instance.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::trees::Tree;

const HUGE: u64 = 2 << 20;
const MAIN: &str = "/var/lib/postgresql/15/main";
const HOSTILE: &str =
    "/srv/<script>alert('&amp;')</script>\"><img src=http://report.example/x onerror=alert(1)>";

/// What a server recorded that lost its huge pages and got them back.
const HISTORY: &[u8] = include_bytes!("busy.history");

/// Adds processes to a tree.
struct Processes<'a> {
    tree: &'a Tree,
    pid: u32,
}

/// The host, with a kernel of that release.
pub fn host(release: &str) -> Tree {
    let tree =
        Tree::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/two-nodes"));
    tree.write("/proc/sys/kernel/osrelease", format!("{release}\n"));
    let mut processes = Processes {
        tree: &tree,
        pid: 1000,
    };
    processes.postgresql(MAIN, 4000 * HUGE, HUGE, 12);
    processes.postgresql(HOSTILE, 30 << 30, 4096, 6);
    let pmon = processes.add("ora_pmon_ORCL", 1, 300, 0);
    processes.map(
        pmon,
        0x6000_0000,
        3000 * HUGE,
        HUGE,
        "/SYSV00000000 (deleted)",
    );
    for _ in 0..3 {
        processes.add("oracleORCL (LOCAL=NO)", 1, 500, 0);
    }
    tree.write(&format!("{MAIN}/pg_hugepages.history"), HISTORY);
    tree
}

impl Processes<'_> {
    /// A server with that much shared memory, of which each backend in base pages has touched a twelfth.
    fn postgresql(&mut self, data: &str, size: u64, page_size: u64, backends: u32) {
        let name = if page_size == HUGE {
            "/anon_hugepage (deleted)"
        } else {
            "/dev/zero (deleted)"
        };
        let pid = self.add(
            &format!("/usr/lib/postgresql/15/bin/postgres\0-D\0{data}\0"),
            1,
            120,
            0,
        );
        self.map(pid, 0x7f00_0000_0000, size, page_size, name);
        symlink(data, self.tree.path.join(format!("proc/{pid}/cwd"))).unwrap();
        for _ in 0..backends {
            let tables = 400
                + if page_size == HUGE {
                    0
                } else {
                    size / 12 / 4096 * 8 / 1024
                };
            self.add(
                "postgres: app app [local] idle",
                pid,
                tables,
                size / 12 / 1024,
            );
        }
        self.tree.write(&format!("{data}/PG_VERSION"), "15\n");
        self.tree.write(
            &format!("{data}/global/pg_control"),
            7_710_572_194_914_248_055_u64.to_le_bytes(),
        );
        self.tree
            .write(&format!("{data}/postgresql.conf"), "huge_pages = try\n");
    }

    fn map(&self, pid: u32, start: u64, size: u64, page_size: u64, name: &str) {
        let mapping = format!(
            "{start:x}-{:x} rw-s 00000000 00:0f 12345                      {name}\n",
            start + size
        );
        let (size, kb) = (size / 1024, page_size / 1024);
        self.tree.write(&format!("/proc/{pid}/maps"), &mapping);
        self.tree.write(
            &format!("/proc/{pid}/smaps"),
            format!("{mapping}Size: {size} kB\nKernelPageSize: {kb} kB\nMMUPageSize: {kb} kB\n"),
        );
    }

    /// A process with page tables and shared memory of so many kB.
    fn add(&mut self, cmdline: &str, parent: u32, tables: u64, shared: u64) -> u32 {
        self.pid += 1;
        let pid = self.pid;
        let write =
            |file: &str, text: String| self.tree.write(&format!("/proc/{pid}/{file}"), text);
        write("cmdline", cmdline.to_owned());
        write(
            "status",
            format!(
                "Name:\tx\nPPid:\t{parent}\nVmPTE:\t{tables} kB\nRssAnon:\t9000 kB\nRssFile:\t900 kB\nRssShmem:\t{shared} kB\n"
            ),
        );
        write(
            "stat",
            format!(
                "{pid} (postgres) S {parent} {}100000 0 0\n",
                "0 ".repeat(17)
            ),
        );
        write("cgroup", "0::/\n".to_owned());
        write(
            "limits",
            "Max locked memory         unlimited            unlimited            bytes\n"
                .to_owned(),
        );
        pid
    }
}
