//! Processes beside database servers that have huge pages: virtual machines, DPDK, MySQL, Java.

use std::collections::BTreeMap;

use hugepage_assess::model::PoolHolder;
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::fields::value;
use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process::{self, Processes};
use hugepage_kernel::{Bytes, PageSize, Pages, Root, escape};

use crate::discover;

/// So many programs are named, those with the most pages.
const MAX_HOLDERS: usize = 10;
/// More processes than a host usually has.
const MAX_PROCESSES: usize = 1 << 16;

/// The programs that have huge pages and are no database server, by their names and users, the largest first. A process may
/// have more than it shows, because processes share page tables of huge pages (`HugetlbPages` in proc(5)), and a page that
/// several have mapped counts for each.
pub(super) fn holders(root: &Root, pools: &[PoolRow], notes: &mut Notes) -> Vec<PoolHolder> {
    let all = Processes::open(root);
    let mut accounts = None;
    let mut found: BTreeMap<(String, String), (u64, Bytes)> = BTreeMap::new();
    for pid in notes.keep(process::pids(root)).unwrap_or_default().into_iter().take(MAX_PROCESSES) {
        // A process that ends meanwhile has none.
        let Ok(Some(status)) = all.status(pid) else { continue };
        let Some(memory) = status.hugetlb_pages.filter(|memory| memory.0 > 0) else { continue };
        if discover::is_of_server(&all, pid) {
            continue;
        }
        let text = root.read_once(&format!("/proc/{pid}/status"), str::to_owned).unwrap_or_default();
        let name = value(&text, "Name").map(str::trim).unwrap_or_default();
        let accounts = accounts.get_or_insert_with(|| accounts::accounts(root).unwrap_or_default());
        let sum = found.entry((escape::line(name).into_owned(), user(&text, accounts))).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(memory));
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
    let mut holders: Vec<_> = found.into_iter().map(holder).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.memory));
    holders.truncate(MAX_HOLDERS);
    holders
}

/// The page size of the one pool that has pages in use; `None` if there are several, or none.
fn size_in_use(pools: &[PoolRow]) -> Option<PageSize> {
    let mut used = pools::of_host(pools).filter(|row| row.pool.nr.saturating_sub(row.pool.free) > Pages(0));
    let size = used.next()?.pool.page_size;
    used.next().is_none().then_some(size)
}

/// The name of the real user, or its number.
fn user(status: &str, accounts: &[Account]) -> String {
    let uid = value(status, "Uid").and_then(|line| line.split_ascii_whitespace().next()).unwrap_or("?");
    let account = accounts.iter().find(|account| uid.parse() == Ok(account.uid));
    account.map_or_else(|| uid.to_owned(), |account| escape::line(&account.name).into_owned())
}
