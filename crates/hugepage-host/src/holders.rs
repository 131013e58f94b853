//! Processes beside database servers that have huge pages: virtual machines, DPDK, MySQL, Java.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_assess::model::PoolHolder;
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::mapping::maps;
use hugepage_kernel::memory::hugetlb_files::{self, HugetlbFile};
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::glance::ProcessGlance;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::{Bytes, PageSize, Pages, Root, escape};

use super::service_accounts::ServiceAccounts;

/// So many programs are named, those with the most pages.
const MAX_HOLDERS: usize = 10;
/// With more processes, which of them map files is not looked at.
const MAX_PROCESSES: usize = 100;

/// The programs that have huge pages and are no database server, by their names and users, the largest first. A process may
/// have more than it shows, because processes share page tables of huge pages (`HugetlbPages` in proc(5)), and a page that
/// several have mapped counts for each.
pub(super) fn holders(
    root: &Root,
    accounts: &ServiceAccounts,
    pools: &[PoolRow],
    processes: &[(i32, ProcessGlance)],
) -> Vec<PoolHolder> {
    let mut found: BTreeMap<(String, String), (u64, Bytes)> = BTreeMap::new();
    for (_, process) in processes {
        let user = match &process.credentials {
            Some(Credentials { real, .. }) => accounts
                .account_name(root, *real)
                .map_or_else(|| real.to_string(), |name| escape::line(name).into_owned()),
            None => "unknown user".to_owned(),
        };
        let sum = found.entry((escape::line(&process.name).into_owned(), user)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(process.status.hugetlb_pages.unwrap_or_default()));
    }
    // The kernel does not say of which pool they are.
    let size = size_in_use(pools);
    let holder = |((name, user), (processes, memory))| PoolHolder {
        name,
        user,
        processes,
        memory,
        pages: size.map(|size| size.pages_within(memory)),
    };
    let files = files_without_process(root, processes).into_iter().map(|(point, memory)| PoolHolder {
        name: format!("files in {}", escape::line(&point)),
        user: "hugetlbfs".to_owned(),
        processes: 0,
        memory,
        pages: size.map(|size| size.pages_within(memory)),
    });
    let mut holders: Vec<_> = found.into_iter().map(holder).chain(files).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.memory));
    holders.truncate(MAX_HOLDERS);
    holders
}

/// The memory of files at each mount point of hugetlbfs that none of these processes has mapped: all that have huge pages, but for
/// database servers, which map no such files. Empty where a process may not be looked at.
fn files_without_process(root: &Root, processes: &[(i32, ProcessGlance)]) -> Vec<(String, Bytes)> {
    let mounted = hugetlb_files::mounted(root);
    if mounted.iter().all(|(_, files)| files.is_empty()) || processes.len() > MAX_PROCESSES {
        return Vec::new();
    }
    let mut mapped = BTreeSet::new();
    for (pid, _) in processes {
        match if_there(maps::read(root, &maps::path(*pid), |mapping| mapping.inode > 0)) {
            Ok(mappings) => mapped.extend(mappings.into_iter().flatten().map(|one| (one.device, one.inode))),
            Err(_) => return Vec::new(),
        }
    }
    // A file system may be mounted at several points.
    let mut unmapped = |files: Vec<HugetlbFile>| {
        let files = files.into_iter().filter(|file| mapped.insert(file.id));
        files.fold(Bytes(0), |sum, file| sum.saturating_add(file.memory))
    };
    let sums = mounted.into_iter().map(|(point, files)| (point, unmapped(files)));
    sums.filter(|(_, memory)| *memory > Bytes(0)).collect()
}

/// The page size of the one pool that has pages in use; `None` if there are several, or none.
fn size_in_use(pools: &[PoolRow]) -> Option<PageSize> {
    let mut used = pools::of_host(pools).filter(|row| row.pool.nr.saturating_sub(row.pool.free) > Pages(0));
    let size = used.next()?.pool.page_size;
    used.next().is_none().then_some(size)
}
