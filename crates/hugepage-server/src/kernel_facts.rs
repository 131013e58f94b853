//! The kernel's facts on huge pages in one list, which an administrator would otherwise read file by file.

use hugepage_kernel::memory::meminfo::{self, LXCFS};
use hugepage_kernel::memory::{sysctl, thp};
use hugepage_kernel::{Bytes, Notes, ReadError, Root};

/// A setting of the kernel, or a line of its memory. One that this kernel does not have has no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFact {
    /// The kernel's own name of it.
    pub name: String,
    /// The value: memory in bytes, everything else as the kernel prints it; `None` if lxcfs shows that of a container.
    pub setting: Option<String>,
    /// `bytes`, `kB`, `pages` or `%`; `None` for a choice.
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

/// All facts, in a fixed order; what cannot be read is a note.
pub fn facts(root: &Root, notes: &mut Notes) -> Vec<HostFact> {
    let sources = [memory(root), transparent_huge_pages(root), parameters(root)];
    let facts: Vec<_> = sources
        .into_iter()
        .filter_map(|source| notes.keep(source))
        .flatten()
        .collect();
    if facts.iter().any(|fact| fact.setting.is_none()) {
        notes.add(LXCFS);
    }
    facts
}

fn memory(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let text = root.read(MEMINFO)?;
    let is_of_lxcfs = meminfo::is_of_lxcfs(root);
    let line = |name: &&str| {
        let (_, value) = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(found, _)| found == name)?;
        let bytes = Bytes::from_kib(value.split_ascii_whitespace().next()?.parse().ok()?);
        let shown = fact(name, bytes.0.to_string(), Some("bytes"), MEMINFO.to_owned());
        let is_of_container = is_of_lxcfs && !meminfo::is_hosts_under_lxcfs(name);
        Some(HostFact {
            setting: shown.setting.filter(|_| !is_of_container),
            ..shown
        })
    };
    Ok(MEMORY.iter().filter_map(line).collect())
}

fn transparent_huge_pages(root: &Root) -> Result<Vec<HostFact>, ReadError> {
    let mut facts = Vec::new();
    for file in ["enabled", "defrag", "shmem_enabled"] {
        if let Some(setting) = thp::choice(root, file)? {
            let name = format!("transparent_hugepage/{file}");
            facts.push(fact(&name, setting, None, format!("/sys/kernel/mm/{name}")));
        }
    }
    Ok(facts)
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

fn fact(name: &str, setting: String, unit: Option<&'static str>, source: String) -> HostFact {
    HostFact {
        name: name.to_owned(),
        setting: Some(setting),
        unit,
        source,
    }
}
