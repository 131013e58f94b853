//! What the kernel lets the io_uring rings of a PostgreSQL server have, from the files of its postmaster.

use hugepage_assess::assessment::ring_answer::counts_memlock;
use hugepage_assess::model::{RingDemand, RingLimits, StartLimit};
use hugepage_kernel::fields::value;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::process;
use hugepage_kernel::proc::rlimit;
use hugepage_kernel::proc::service::{self, UnitLimit};
use hugepage_kernel::{Bytes, PageSize, Root};

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
/// The mapping of the host's own user namespace (user_namespaces(7)).
const OF_HOST: [&str; 3] = ["0", "0", "4294967295"];

/// The limits for the server of `process`, as it is named below /proc. `running`: the rings that it was started with.
pub fn ring_limits(root: &Root, process: &str, running: Option<RingDemand>, notes: &mut Notes) -> RingLimits {
    let base = root.base_page_size().unwrap_or_else(|_| PageSize::base());
    let read = |file: &str, notes: &mut Notes| {
        notes.keep(root.read_once(&format!("/proc/{process}/{file}"), str::to_owned)).unwrap_or_default()
    };
    let (status, limits) = (read("status", notes), read("limits", notes));
    let open = process::open_rings(root, process).unwrap_or(0);
    let files = process::descriptors(root, process).map_or(0, |files| files.len() as u64);
    let service = process.parse().ok().and_then(|pid| service::service_of(root, pid));
    let memlock = rlimit::memlock(&limits).and_then(|limit| limit.bytes()).map(|limit| limit.0);
    let mut with_unit = |running: Option<u64>, name: &str| {
        let of_unit = service.as_deref().map(|service| service::limit(root, service, name));
        let next = match of_unit.and_then(|limit| notes.keep(limit)).flatten() {
            Some(UnitLimit::Infinity) => None,
            Some(UnitLimit::At(limit)) => Some(limit),
            Some(UnitLimit::Invalid) | None => running,
        };
        StartLimit { running, next }
    };
    let (memlock, open_files) =
        (with_unit(memlock, "LimitMEMLOCK"), with_unit(rlimit::open_files(&limits), "LimitNOFILE"));
    let is_free = has_capability(&status, CAP_IPC_LOCK) && is_of_host(root, process);
    // What the server has the kernel has granted.
    let has_more = || running.zip(memlock.running).is_some_and(|(rings, limit)| rings.memory(open, base).0 > limit);
    let by_release = counts_memlock(KernelRelease::running(root));
    RingLimits {
        base,
        is_disabled: is_disabled(root, &status, open),
        counts_memlock: if is_free { Some(false) } else { by_release.or_else(|| has_more().then_some(false)) },
        memlock,
        open_files,
        open,
        other_files: files.saturating_sub(open),
        locked_by_others: Bytes(0),
        service,
    }
}

/// Whether a process with this status is refused rings, whatever it may lock (admin-guide/sysctl/kernel, io_uring_disabled).
fn is_disabled(root: &Root, status: &str, open: u64) -> Result<bool, String> {
    let number = |name: &str| sysctl::running(root, name).ok().flatten();
    match number("kernel.io_uring_disabled").as_deref() {
        Some("2") => return Ok(true),
        Some("1") if !has_capability(status, CAP_SYS_ADMIN) => {
            let group = number("kernel.io_uring_group").unwrap_or_default();
            let groups = Credentials::parse(status).map(|found| found.groups).unwrap_or_default();
            if !groups.iter().any(|own| own.to_string() == group) {
                let why =
                    || format!("whether its user is in the group {group} of kernel.io_uring_group when it starts");
                return if group == "-1" { Ok(true) } else { Err(why()) };
            }
        }
        _ => {}
    }
    match value(status, "Seccomp").map(str::trim) {
        Some("2") if open == 0 => {
            Err("its system call filter (seccomp), which may forbid io_uring, as those of containers do".to_owned())
        }
        _ => Ok(false),
    }
}

fn has_capability(status: &str, capability: u32) -> bool {
    let effective = value(status, "CapEff").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|effective| effective & (1 << capability) != 0)
}

/// Whether the process is in the host's user namespace, so that its capabilities count.
fn is_of_host(root: &Root, process: &str) -> bool {
    let text = root.read(&format!("/proc/{process}/uid_map")).unwrap_or_default();
    text.split_ascii_whitespace().eq(OF_HOST)
}
