//! The NUMA nodes that the pages of a server's segment are on. A process has mapped only the pages that it has touched
//! itself, so several are asked, each for the pages that no other one had. This touches nothing.

use std::collections::BTreeMap;
use std::io;

use hugepage_assess::assessment::Placement;
use hugepage_assess::assessment::Status;
use hugepage_assess::model::PoolFact;
use hugepage_kernel::mapping::page_nodes;
use hugepage_kernel::memory::pool::{self, Pool};
use hugepage_kernel::proc::process;
use hugepage_kernel::{Mapping, Notes, PageSize, Pages, Root};

use crate::server::nodes_with_allowed;

/// Questions for pages in one call: with 150 ns each, about half a second.
const MAX_QUESTIONS: u64 = 4 << 20;

/// The nodes of this server's host, with the pool that it is in or would be in. `mapping` is the main segment in this process, and
/// `postmaster` the process whose cpuset counts. `None` and a note where there is no pool, or the kernel has no nodes.
pub fn placement(
    root: &Root,
    status: &Status,
    mapping: Option<&Mapping>,
    postmaster: Option<i32>,
    pulse: &mut dyn FnMut(),
    notes: &mut Notes,
) -> Option<Placement> {
    let facts = &status.facts;
    let PoolFact::Known(pool) = &facts.pool_state.pool else {
        notes.add("the pool of huge pages is unknown, and so are its shares on NUMA nodes");
        return None;
    };
    let mut pools = notes.keep(pool::node_pools(root, pool.page_size))?;
    if pools.is_empty() {
        notes.add("this kernel shows no NUMA nodes");
        return None;
    }
    for share in &mut pools {
        share.memory = notes.keep(pool::node_memory(root, share.node)).flatten();
    }
    let process = postmaster.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let nodes = nodes_with_allowed(root, pools, &process, notes);
    let in_pool = mapping
        .filter(|mapping| facts.own() > Pages(0) && mapping.page_size == Some(pool.page_size));
    let found = in_pool.map_or(Ok(Some(BTreeMap::new())), |mapping| {
        let search = PageSearch::new(mapping, pool);
        search
            .pages_by_node(root, postmaster, pulse, notes)
            .map(|pages| Some(pages).filter(|pages| !pages.is_empty()))
    });
    match &found {
        Ok(Some(_)) => {}
        Ok(None) => {
            notes.add("the kernel does not say on which NUMA nodes the pages are (move_pages)")
        }
        Err(error) => notes.add(format!(
            "could not ask for the NUMA nodes of pages (move_pages): {error}"
        )),
    }
    Some(Placement {
        pool: pool.clone(),
        nodes,
        segment: found.ok().flatten(),
    })
}

/// The pages of one mapping, and those of them that were found.
struct PageSearch<'a> {
    mapping: &'a Mapping,
    size: PageSize,
    /// The pages of the pool that somebody has: more are not found.
    touched: Pages,
    is_found: Vec<bool>,
    by_node: BTreeMap<u32, Pages>,
    questions: u64,
}

impl<'a> PageSearch<'a> {
    fn new(mapping: &'a Mapping, pool: &Pool) -> Self {
        let size = pool.page_size;
        let touched = pool.nr.saturating_sub(pool.free);
        let is_found =
            vec![false; usize::try_from(size.pages_to_hold(mapping.size()).0).unwrap_or(0)];
        Self {
            mapping,
            size,
            touched,
            is_found,
            by_node: BTreeMap::new(),
            questions: 0,
        }
    }

    /// Asks move_pages(2) about this process, the postmaster, and then its children, until all pages of the pool are found.
    fn pages_by_node(
        mut self,
        root: &Root,
        postmaster: Option<i32>,
        pulse: &mut dyn FnMut(),
        notes: &mut Notes,
    ) -> io::Result<BTreeMap<u32, Pages>> {
        self.ask(0, pulse)?;
        let others = if self.left() > Pages(0) {
            processes(root, postmaster, notes)
        } else {
            Vec::new()
        };
        for (index, pid) in others.iter().enumerate() {
            if self.left() == Pages(0) {
                break;
            }
            if self.questions >= MAX_QUESTIONS {
                let left = others.len() - index;
                let all = others.len();
                notes.add(format!(
                    "{left} of {all} processes were not asked for the NUMA nodes of their pages"
                ));
                break;
            }
            // One that has ended, or may not be asked, adds nothing.
            let _ = self.ask(*pid, pulse);
        }
        let not_found = self.is_found.iter().filter(|is_found| !**is_found).count() as u64;
        let unknown = self.left().0.min(not_found);
        if unknown > 0 {
            notes.add(format!(
                "the NUMA nodes of up to {unknown} touched pages are unknown: no process of this server has them mapped now"
            ));
        }
        Ok(self.by_node)
    }

    /// The touched pages whose node is not known yet.
    fn left(&self) -> Pages {
        self.touched
            .saturating_sub(self.by_node.values().copied().sum())
    }

    /// Asks the process `pid`, 0 for this one, for the pages that were not found yet.
    fn ask(&mut self, pid: i32, pulse: &mut dyn FnMut()) -> io::Result<()> {
        for at in (0..self.is_found.len()).step_by(page_nodes::AT_ONCE) {
            pulse();
            let end = self.is_found.len().min(at + page_nodes::AT_ONCE);
            let pages: Vec<usize> = (at..end).filter(|&page| !self.is_found[page]).collect();
            let address = |&page: &usize| self.mapping.start + self.size.bytes().0 * page as u64;
            let addresses: Vec<u64> = pages.iter().map(address).collect();
            self.questions += addresses.len() as u64;
            for (page, node) in pages
                .into_iter()
                .zip(page_nodes::nodes_of_pages(pid, &addresses)?)
            {
                if let Some(node) = node {
                    self.is_found[page] = true;
                    self.by_node.entry(node).or_default().0 += 1;
                }
            }
        }
        Ok(())
    }
}

/// The postmaster and its children. A child that has ended meanwhile is not asked: its number may be another's.
fn processes(root: &Root, postmaster: Option<i32>, notes: &mut Notes) -> Vec<i32> {
    let Some(postmaster) = postmaster else {
        notes.add(
            "/proc shows another PID namespace: the NUMA nodes are known only of pages that this session has touched",
        );
        return Vec::new();
    };
    let children = notes
        .keep(process::children(root, postmaster))
        .unwrap_or_default();
    let is_child = |pid: &i32| {
        process::status(root, *pid)
            .ok()
            .flatten()
            .is_some_and(|status| status.parent == Some(postmaster))
    };
    [postmaster]
        .into_iter()
        .chain(children.into_iter().filter(is_child))
        .collect()
}
