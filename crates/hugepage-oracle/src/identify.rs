//! What the files of an Oracle instance tell of it, and what refuses it huge pages.

use std::time::{SystemTime, UNIX_EPOCH};

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::{Landing, LockLimit, Product, Requested, Segment};
use hugepage_kernel::fields::value;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process as processes;
use hugepage_kernel::proc::rlimit::{LockedMemory, Rlimit};
use hugepage_kernel::{Bytes, InstanceFiles, Root};

use crate::readers::locate::Search;
use crate::readers::oratab::HostOratab;
use crate::readers::process::home_of;
use crate::readers::{LastStart, OracleInstance, OracleKind, Parameters};
use crate::registered::{Registered, names};
use crate::requested::{of_kind, requested_by};
use crate::running::RunningOracle;
use crate::settings::{OracleSettings, Settings};
use crate::sga::ShmFiles;

/// The process PMON of an instance.
pub struct PmonProcess<'a> {
    /// Its process id.
    pub pid: i32,
    /// When it started.
    pub started: Option<SystemTime>,
    /// The systemd service that started it.
    pub service: Option<&'a str>,
}

/// What the files of a running instance tell of it. `shm_files`: the files of /dev/shm that it has, where they may be seen.
pub fn running(
    oratab: &HostOratab<'_>,
    pmon: PmonProcess<'_>,
    files: &InstanceFiles,
    instance: &OracleInstance,
    shm_files: Option<ShmFiles>,
    notes: &mut Notes,
) -> (RunningOracle, OracleSettings) {
    let root = oratab.root();
    let PmonProcess { pid, started, service } = pmon;
    let exe = processes::link(root, pid, "exe").ok().flatten();
    let of_oratab = || {
        let entries = oratab.entries(files, notes);
        entries.iter().find(|entry| entry.sid == instance.sid).map(|entry| entry.home.clone())
    };
    let home = exe.as_deref().and_then(home_of).map(str::to_owned).or_else(of_oratab);
    let search = Search { instance, home: home.as_deref(), diagnostic_dest: None, pmon: Some((root, pid)) };
    let is_of = |start: &LastStart| {
        let seconds = started.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let started = seconds.and_then(|seconds| i64::try_from(seconds.as_secs()).ok());
        started.is_some_and(|started| start.is_of(pid, started) == Some(true))
    };
    let settings = Settings::on_disk(&search, files, is_of, notes);
    let known = [settings.start.as_ref().map(|start| &start.parameters), settings.parameters.as_ref()];
    let known: Vec<_> = known.into_iter().flatten().collect();
    let names = names(&known, settings.log.as_deref());
    let by_agent = || {
        service.is_some_and(|service| service.contains("ohasd"))
            || oratab
                .entries(files, &mut Notes::default())
                .iter()
                .any(|entry| entry.by_agent && entry.sid == instance.sid)
    };
    let registered = Registered {
        instance,
        parameters: &known,
        log: settings.log.as_deref(),
        version: settings.start.as_ref().and_then(|start| start.version.as_deref()),
        by_agent: &by_agent,
    };
    let clusterware = registered.clusterware(files, notes);
    let automatic = shm_files.map(|files| files.are_sga);
    let requested = requested(settings.start.as_ref(), settings.parameters.as_ref(), automatic, instance.kind);
    if matches!(requested.product, Product::Oracle { use_large_pages: None, .. }) {
        notes.add(
                "use_large_pages is unknown: neither an alert log of this start nor a parameter file shows it; TRUE, the default, \
                 is assumed",
            );
    }
    let Settings { parameters, start, log, is_in_asm } = settings;
    let oracle = RunningOracle {
        kind: instance.kind,
        home,
        database: names,
        alert_log: log,
        last_start: start,
        clusterware,
        managed_global_area: shm_files.map(|files| files.managed_global_area),
    };
    (oracle, OracleSettings { requested, parameters, is_in_asm })
}

/// What the start was asked for, by its log, or else by the parameter file. `automatic`: whether the SGA was seen in
/// files of /dev/shm.
fn requested(
    start: Option<&LastStart>,
    on_disk: Option<&Parameters>,
    automatic: Option<bool>,
    kind: OracleKind,
) -> Requested {
    let of_parameters = start.and_then(|start| start.parameters.get("use_large_pages"));
    let of_log = of_parameters.or_else(|| start?.use_large_pages.as_deref());
    // A list of the parameters that were set shows that one is not among them.
    let is_default = start.is_some_and(|start| !start.parameters.is_empty());
    let setting = of_log.or_else(|| if is_default { Some("TRUE") } else { on_disk?.get("use_large_pages") });
    let memory_target = automatic.unwrap_or_else(|| start.is_some_and(|start| start.parameters.is_automatic_memory()));
    let sga = start.and_then(|start| start.parameters.sga_max_size());
    let requested = requested_by(setting, start.and_then(|start| start.version.as_deref()), memory_target, sga);
    of_kind(requested, kind)
}

/// What the kernel requires for System V segments in huge pages and the instance does not have: CAP_IPC_LOCK, the group
/// `vm.hugetlb_shm_group`, or before 5.18 a limit on locked memory of at least their size. `None` for an instance that
/// is in huge pages.
pub fn lock_limit(
    root: &Root,
    pid: i32,
    requested: &Requested,
    segment: Option<&Segment>,
    memlock: Option<LockedMemory>,
) -> Option<LockLimit> {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let is_let = segment.is_some_and(|segment| segment.in_huge_pages > Bytes(0));
    if is_let || requested.product == Product::PostgreSql {
        return None;
    }
    let text = root.read_once(&format!("/proc/{pid}/status"), str::to_owned).ok()?;
    let line = |name: &str| value(&text, name);
    let capabilities = line("CapEff").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())?;
    let group = sysctl::running(root, "vm.hugetlb_shm_group").ok().flatten()?;
    let of_process = || line("Gid").into_iter().chain(line("Groups")).flat_map(str::split_ascii_whitespace);
    if capabilities & CAP_IPC_LOCK != 0 || of_process().any(|gid| gid == group) {
        return None;
    }
    // The effective group is the second of four (proc(5)).
    let gid = || line("Gid")?.split_ascii_whitespace().nth(1)?.parse().ok();
    let counts_memlock = Advisories::known().affects("shm_memlock", &KernelRelease::text(root)?);
    match (counts_memlock, memlock?.soft?) {
        (Some(true), Rlimit::At(limit)) => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
        (Some(true), Rlimit::Unlimited) => None,
        (Some(false), _) => Some(LockLimit::ShmGroup { gid: gid()? }),
        (None, limit) => Some(LockLimit::Either { gid: gid()?, limit: limit.bytes() }),
    }
}

/// What refused huge pages at a start whose table in the log has enough available pages and allocated none of them:
/// the memlock limit in the log if it was too small, else something that is not visible. `None` if the table shows
/// something else.
pub fn logged_refusal(start: &LastStart, segment: &Segment) -> Option<LockLimit> {
    let mut huge = start.page_sizes.iter().filter(|row| !row.is_base && row.expected.is_some_and(|pages| pages.0 > 0));
    let is_refused = huge.all(|row| row.available >= row.expected && row.allocated.is_some_and(|pages| pages.0 == 0));
    if !is_refused || segment.landing != Landing::Base || start.page_sizes.iter().all(|row| row.is_base) {
        return None;
    }
    match start.memlock {
        Some(Rlimit::At(limit)) if limit < segment.to_reserve => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
        _ => Some(LockLimit::Unexplained),
    }
}
