//! `reserve`: gives the pools the pages of the servers that a boot will start, before any of them runs.
//!
//! ```text
//! $ hugepage-sidecar reserve
//! reserved 4100 of 4100 pages of 2 MB for 3 servers; the pool has 4100
//! ```
//!
//! hugepage-reserve.service runs it early at a boot, where a file system may still be missing and nobody answers for names.

mod servers;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hugepage_assess::assessment::Capacity;
use hugepage_kernel::host::reserve_unit;
use hugepage_kernel::{Pages, Root};
use hugepage_sizing::Sizing;

use self::servers::servers_to_reserve;
use super::apply::pool::{self, KernelPool};
use super::apply::resize::{Resize, resize};
use super::apply::target::{self, HostState};
use super::survey::{AccountOptions, within};
use crate::exit::Exit;
use crate::output::{complain, escape, say};
use crate::{privileges, signals};

/// The time from the start to the last step. The unit ends what takes longer than 30 s.
const MAX_TIME: Duration = Duration::from_secs(25);
/// Lines about servers: a boot's journal is no place for hundreds of them.
const MAX_LINES: usize = 20;

/// Options of `reserve`.
#[derive(Debug, Args)]
pub struct ReserveOptions {
    /// Keep this share of the host's memory for 4 kB pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within::<u32, 0, 90>)]
    reserve_percent: u32,
}

/// Runs the command. The pages that it got stay, whatever happens.
pub fn run(root: &Root, options: &ReserveOptions) -> anyhow::Result<Exit> {
    let began = Instant::now();
    if !root.is_live() {
        complain!("hugepage-sidecar: reserve changes this host and cannot be combined with --root");
        return Ok(Exit::Usage);
    }
    let awaited = servers_to_reserve(root);
    let host = target::host(
        root,
        options.reserve_percent,
        &AccountOptions::default(),
        &awaited.directories(),
    )?;
    let needs = awaited.needs(host.down);
    for line in needs.uncounted.iter().take(MAX_LINES) {
        say!("not counted: {}", escape::line(line));
    }
    let _lock = privileges::write(|| pool::lock(Path::new(pool::LOCK_DIRECTORY)))?;
    let has_signal = signals::catch().context("could not catch signals")?;
    let is_over = || has_signal.load(Ordering::Relaxed) || began.elapsed() > MAX_TIME;
    let mut left = String::new();
    let mut lacks = false;
    // Larger pages first: they need memory in one piece.
    for sizing in host.survey.sizings_beside(&needs.counted).iter().rev() {
        if sizing.needs.is_empty() {
            continue;
        }
        let pages = reserve(root, options, sizing, &is_over)?;
        left += &reserve_unit::line(sizing.page_size, pages);
        lacks |= pages < sizing.total;
    }
    if left.is_empty() {
        say!("reserved no pages: no server is counted that asks for them");
    }
    let state = Path::new(reserve_unit::STATE);
    privileges::replace_file(state, left.as_bytes())
        .with_context(|| format!("could not write {}", state.display()))?;
    Ok(if needs.is_unknown {
        Exit::Unknown
    } else if lacks {
        Exit::Warning
    } else {
        Exit::Ok
    })
}

/// Gives one pool what its servers need and what leaves enough to base pages, and never less than it has. Returns what it has then.
fn reserve(
    root: &Root,
    options: &ReserveOptions,
    sizing: &Sizing,
    is_over: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Pages> {
    let size = sizing.page_size;
    let mut kernel = KernelPool::new(root, Some(size), options.reserve_percent)?;
    let HostState { pool, memory, .. } = kernel.state()?;
    let capacity = Capacity::of_pool(&memory, &pool);
    let most = capacity.within_reserve.min(capacity.now).max(pool.nr);
    let needs = sizing.needs.clone();
    let strangers = sizing.strangers.clone();
    let fitting = Sizing::new(&pool, needs, strangers, Some(Capacity { most, ..capacity }));
    let from = pool.persistent();
    let to = fitting.recommended.unwrap_or_default().max(from);
    privileges::write(|| resize(&mut kernel, Resize { size, from, to }, is_over))?;
    let pages = kernel.state()?.pool.nr;
    let needed = fitting.total;
    let count = fitting.needs.len();
    say!(
        "reserved {} of {needed} pages of {size} for {count} server{}; the pool has {pages}",
        pages.min(needed),
        if count == 1 { "" } else { "s" }
    );
    for need in fitting.needs.iter().take(MAX_LINES) {
        let misfit = fitting
            .misfits
            .iter()
            .any(|misfit| misfit.name == need.name);
        let fits = if misfit { "does not fit" } else { "counted" };
        say!("{fits}: {}, {} pages", escape::line(&need.name), need.pages);
    }
    Ok(pages)
}
