//! What writes the files of huge page pools at boot, after sysctl.d: tmpfiles.d and units of systemd.

use crate::read::Root;
use crate::read::root::if_there;
use crate::{PageSize, Pages, ReadError};

/// Where systemd-tmpfiles looks, the most important first: a file hides those of its name further down (tmpfiles.d(5)).
const TMPFILES: [&str; 4] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];
/// Where administrators have their units.
const UNITS: &str = "/etc/systemd/system";

/// A pool that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWrite {
    /// Its page size; `None` is the default size.
    pub size: Option<PageSize>,
    /// The NUMA node whose share is written; `None` for the whole pool.
    pub node: Option<String>,
    /// What is written.
    pub pages: Pages,
    /// The file that says so.
    pub file: String,
}

/// What tmpfiles.d writes, in the order of file names.
pub fn tmpfiles(root: &Root) -> Result<Vec<PoolWrite>, ReadError> {
    let mut files = std::collections::BTreeMap::new();
    for directory in TMPFILES {
        for name in if_there(root.list(directory))?.unwrap_or_default() {
            if name.ends_with(".conf") {
                let path = format!("{directory}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let mut found = Vec::new();
    for file in files.into_values() {
        let text = if_there(root.read(&file))?.unwrap_or_default();
        found.extend(text.lines().filter_map(|line| {
            // Type, path, mode, user, group, age, argument.
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let &[kind, path, _, _, _, _, value] = words.as_slice() else { return None };
            let (size, node) = pool_file(path)?;
            let pages = Pages(value.parse().ok()?);
            kind.starts_with(['w', 'f']).then(|| PoolWrite { size, node, pages, file: file.clone() })
        }));
    }
    Ok(found)
}

/// The pool whose `nr_hugepages` `path` is, and the node; a size of `None` is the default one.
fn pool_file(path: &str) -> Option<(Option<PageSize>, Option<String>)> {
    if path == "/proc/sys/vm/nr_hugepages" {
        return Some((None, None));
    }
    let pool = path.strip_suffix("/nr_hugepages")?;
    let (directory, name) = pool.rsplit_once('/')?;
    let size = Some(PageSize::from_sysfs_name(name)?);
    match directory {
        "/sys/kernel/mm/hugepages" => Some((size, None)),
        _ => {
            let node = directory.strip_prefix("/sys/devices/system/node/")?.strip_suffix("/hugepages")?;
            Some((size, Some(node.to_owned())))
        }
    }
}

/// The enabled units that set a pool: those whose number is understood, as of the unit that `hugepage_fix('systemd')`
/// makes, and the files of those that mention a pool and say no more.
pub fn units(root: &Root) -> Result<(Vec<PoolWrite>, Vec<String>), ReadError> {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let names = if_there(root.list(UNITS))?.unwrap_or_default();
    let targets: Vec<_> = names.iter().filter(|name| name.ends_with(".wants") || name.ends_with(".requires")).collect();
    for name in names.iter().filter(|name| name.ends_with(".service")) {
        let file = format!("{UNITS}/{name}");
        let mut enabled = false;
        for target in &targets {
            enabled |= if_there(root.list(&format!("{UNITS}/{target}")))?.unwrap_or_default().contains(name);
        }
        if !enabled {
            continue;
        }
        // A link to a unit that is gone is no unit.
        let Some(text) = if_there(root.read(&file))?.filter(|text| text.contains("nr_hugepages")) else { continue };
        let variable = |name: &str| text.lines().find_map(|line| line.strip_prefix("Environment=")?.strip_prefix(name));
        let pool = variable("POOL=").and_then(|pool| pool_file(&format!("{}/nr_hugepages", pool.trim())));
        match (pool, variable("PAGES=").and_then(|pages| pages.trim().parse().ok())) {
            (Some((size, node)), Some(pages)) => found.push(PoolWrite { size, node, pages: Pages(pages), file }),
            _ => others.push(file),
        }
    }
    Ok((found, others))
}
