//! The kernel's facts on huge pages in one list, which an administrator would otherwise read file by file.

use hugepage_kernel::memory::meminfo::{self, LXCFS};
use hugepage_kernel::memory::{pressure, sysctl, thp};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::{Bytes, ReadError, Root};

/// A setting or counter of the kernel. One that this kernel does not have has no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFact {
    /// The kernel's own name of it.
    pub name: String,
    /// The value: memory in bytes, everything else as the kernel prints it; `None` if lxcfs shows that of a container.
    pub setting: Option<String>,
    /// `bytes`, `kB`, `pages`, `events` or `%`; `None` for a choice.
    pub unit: Option<&'static str>,
    /// The file that it comes from.
    pub source: String,
}

const MEMINFO: &str = "/proc/meminfo";
const MEMORY: [&str; 13] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "PageTables",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "Hugepagesize",
    "Hugetlb",
    "SwapTotal",
    "SwapFree",
    "CommitLimit",
    "Committed_AS",
];
const PARAMETERS: [(&str, Option<&str>); 7] = [
    ("vm.nr_hugepages", Some("pages")),
    ("vm.nr_overcommit_hugepages", Some("pages")),
    ("vm.hugetlb_shm_group", None),
    ("vm.overcommit_memory", None),
    ("vm.overcommit_ratio", Some("%")),
    ("vm.swappiness", None),
    ("vm.min_free_kbytes", Some("kB")),
];
/// Counters of /proc/vmstat since boot that grow when the kernel reclaims memory; the kernel splits some of them by zone.
const EVENTS: [&str; 5] = ["pgscan_kswapd", "pgscan_direct", "allocstall", "compact_stall", "compact_fail"];

/// All facts, in a fixed order; what cannot be read is a note.
pub fn facts(root: &Root, notes: &mut Notes) -> Vec<HostFact> {
    let mut facts = Vec::new();
    type FactReader = fn(&Root) -> Result<Vec<HostFact>, ReadError>;
    let sources: [FactReader; 5] = [memory, transparent_huge_pages, parameters, boot_command_line, memory_pressure];
    for source in sources {
        facts.extend(notes.keep(source(root)).unwrap_or_default());
    }
    if facts.iter().any(|fact| fact.setting.is_none()) {
        notes.add(LXCFS);
    }
    facts.extend(notes.keep(events(root)).unwrap_or_default());
    facts
}

fn memory(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let text = root.read(MEMINFO)?;
    let is_of_lxcfs = meminfo::is_of_lxcfs(root);
    let line = |name: &&str| {
        let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found == name)?;
        let shown = in_bytes(name, value.split_ascii_whitespace().next()?, MEMINFO);
        let is_of_container = is_of_lxcfs && !meminfo::is_hosts_under_lxcfs(name);
        Some(if is_of_container { HostFact { setting: None, ..shown } } else { shown })
    };
    Ok(MEMORY.iter().filter_map(line).collect())
}

fn transparent_huge_pages(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let mut facts = Vec::new();
    for file in ["enabled", "defrag", "shmem_enabled"] {
        if let Some(setting) = thp::choice(root, file)? {
            facts.push(of_thp(file, setting));
        }
    }
    for file in thp::shmem_files(root)? {
        // What the kernel never does by itself has no row for each size.
        if let Some(setting) = thp::choice(root, &file)?.filter(|setting| setting != "never") {
            facts.push(of_thp(&file, setting));
        }
    }
    Ok(facts)
}

fn of_thp(file: &str, setting: String) -> HostFact {
    let name = format!("transparent_hugepage/{file}");
    fact(&name, setting, None, format!("/sys/kernel/mm/{name}"))
}

fn parameters(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let mut facts = Vec::new();
    for (name, unit) in PARAMETERS {
        if let Some(setting) = sysctl::running(root, name)? {
            facts.push(fact(name, setting, unit, sysctl::path(name)));
        }
    }
    Ok(facts)
}

/// `hugepages=`, `hugepagesz=` and similar parameters, one row each. Their order has a meaning and is kept.
fn boot_command_line(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    const PATH: &str = "/proc/cmdline";
    let text = if_there(root.read(PATH))?.unwrap_or_default();
    let words = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    let wanted = ["hugepages", "hugepagesz", "default_hugepagesz", "hugetlb_cma", "transparent_hugepage"];
    let words = words.filter(|(name, _)| wanted.contains(name));
    Ok(words.map(|(name, value)| fact(&format!("boot {name}"), value.to_owned(), None, PATH.to_owned())).collect())
}

/// The share of time that some, or all, tasks waited for memory (accounting/psi).
fn memory_pressure(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let share =
        |(name, percent)| fact(&format!("memory pressure {name}"), percent, Some("%"), pressure::PATH.to_owned());
    Ok(pressure::memory(root).into_iter().map(share).collect())
}

fn events(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    const PATH: &str = "/proc/vmstat";
    let text = root.read(PATH)?;
    let counters: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let sum = |event: &&str| {
        // allocstall_normal, pgscan_direct_dma32 and similar; pgscan_direct_throttle counts something else.
        let of_event = |name: &str| {
            name == *event
                || ["_dma", "_dma32", "_normal", "_high", "_movable", "_device"]
                    .iter()
                    .any(|zone| name.strip_prefix(event) == Some(zone))
        };
        let values =
            counters.iter().filter(|(name, _)| of_event(name)).filter_map(|(_, value)| value.parse::<u64>().ok());
        let sum = values.reduce(u64::saturating_add)?;
        Some(fact(event, sum.to_string(), Some("events"), PATH.to_owned()))
    };
    Ok(EVENTS.iter().filter_map(sum).collect())
}

fn fact(name: &str, setting: String, unit: Option<&'static str>, source: String) -> HostFact {
    HostFact { name: name.to_owned(), setting: Some(setting), unit, source }
}

/// The kernel's kB as bytes; text that is not a number is shown unchanged.
fn in_bytes(name: &str, kib: &str, source: &str) -> HostFact {
    let bytes = kib.parse().map(Bytes::from_kib);
    let (setting, unit) = match bytes {
        Ok(bytes) => (bytes.0.to_string(), Some("bytes")),
        Err(_) => (kib.to_owned(), None),
    };
    fact(name, setting, unit, source.to_owned())
}
