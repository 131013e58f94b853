//! `apply`: sets the size of a pool, and restores it if the kernel does not provide all pages.

mod kernel_pool;
mod lock;
mod persist;
mod plan;
mod steps;
mod target;

use std::path::Path;

use anyhow::{Context, anyhow};
use clap::Args;
use hugepage_core::advise::command::reserve_at_boot;
use hugepage_core::read::meminfo::Meminfo;
use hugepage_core::read::{Root, boot, buddyinfo};
use hugepage_core::{PageSize, Pages};
use indicatif::{ProgressBar, ProgressStyle};

use self::kernel_pool::KernelPool;
use self::lock::Lock;
use self::persist::Setting;
use self::plan::{HostState, Plan, Refusal};
use self::steps::{Outcome, Reclaim, Resize, resize};
use crate::commands::survey::AccountOptions;
use crate::exit::{self, Exit};
use crate::output::stream::{complain, say};
use crate::privileges::{self, Needs};
use crate::signals::Interrupt;

/// Options of `apply`.
#[derive(Debug, Args)]
pub struct ApplyOptions {
    /// Set the pool to N pages
    #[arg(long, value_name = "N", required_unless_present = "recommended", conflicts_with = "recommended")]
    pages: Option<u64>,
    /// Set the pool to what the servers of this host need, and never reduce it
    #[arg(long)]
    recommended: bool,
    /// Page size of the pool, such as 2MB or 1GB [default: the kernel's default size]
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    /// Keep this share of the host's memory for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    reserve_percent: u32,
    #[command(flatten)]
    accounts: AccountOptions,
    /// Drop the clean page cache if compaction alone does not provide the pages
    #[arg(long)]
    drop_caches: bool,
    /// Also set it for the next boot: in sysctl.d, or in tmpfiles.d for sizes other than the default
    #[arg(long)]
    persist: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl ApplyOptions {
    /// The files of the kernel that it writes belong to root, and ask for no capability.
    pub fn needs(&self) -> Needs {
        let needs = Needs::default().programs();
        if self.dry_run {
            return needs;
        }
        let needs = kernel_pool::FILES.iter().fold(needs, |needs, file| needs.directory(Path::new(file)));
        let needs = needs.new_directory(Path::new(lock::DIRECTORY));
        if self.persist { persist::FILES.iter().fold(needs, |needs, file| needs.file(Path::new(file))) } else { needs }
    }
}

/// Runs the command.
pub fn run(root: &Root, options: &ApplyOptions) -> anyhow::Result<Exit> {
    if !root.is_live() {
        complain!("hugepage-sidecar: apply changes this host and cannot be combined with --root");
        return Ok(exit::USAGE);
    }
    let pool = KernelPool::new(root, options.page_size, options.reserve_percent)?;
    let pages = match options.pages {
        Some(pages) => Pages(pages),
        None => {
            let sizing = target::sizing(root, pool.size(), options.reserve_percent, &options.accounts);
            target::recommended(sizing.as_ref(), pool.size(), pool.state()?.pool.persistent())?
        }
    };
    set_pool(options, root, pool, pages)
}

/// Sets the pool to `pages`.
fn set_pool(options: &ApplyOptions, root: &Root, mut pool: KernelPool<'_>, pages: Pages) -> anyhow::Result<Exit> {
    if options.dry_run {
        let plan = plan(options, root, &pool.state()?, pages)?;
        say!("{}", preview(root, pool.size(), plan));
        if options.persist {
            let setting = setting(root, pool.size(), pages)?;
            say!("{} would contain: {}", setting.file, setting.line());
        }
        return Ok(exit::OK);
    }

    pool.check_writable()?;
    let _lock = privileges::write(|| Lock::take(Path::new(lock::DIRECTORY)))?;
    // From here on a signal is handled between steps, so that the pool is always restored.
    let interrupt = Interrupt::catch().context("could not catch signals")?;
    let before = pool.state()?;
    let plan = plan(options, root, &before, pages)?;
    let outcome = privileges::write(|| change(&mut pool, plan, options, &interrupt));
    match outcome {
        Ok(Outcome::Reached) => {}
        Ok(outcome) => {
            complain!("hugepage-sidecar: {}", failure(outcome, pool.size(), plan, options));
            return roll_back(&mut pool, &before);
        }
        Err(error) => {
            complain!("hugepage-sidecar: {error:#}");
            return roll_back(&mut pool, &before);
        }
    }
    say!("{}", done(pool.size(), plan));
    persist(options, root, pool.size(), pages)?;
    Ok(exit::OK)
}

/// The plan, or a refusal. If pages are in use, the refusal names the instances that use them.
fn plan(options: &ApplyOptions, root: &Root, state: &HostState, pages: Pages) -> anyhow::Result<Plan> {
    state.plan(pages).map_err(|refusal| {
        let in_use = matches!(refusal, Refusal::InUse { .. });
        let size = state.pool.page_size;
        let holders =
            || target::holders(target::sizing(root, size, options.reserve_percent, &options.accounts).as_ref());
        match in_use.then(holders).flatten() {
            Some(holders) => anyhow!("{refusal}. {holders}"),
            None => refusal.into(),
        }
    })
}

fn change(
    pool: &mut KernelPool<'_>,
    plan: Plan,
    options: &ApplyOptions,
    signal: &Interrupt,
) -> anyhow::Result<Outcome> {
    let reclaim: &[Reclaim] =
        if options.drop_caches { &[Reclaim::Compact, Reclaim::DropCaches] } else { &[Reclaim::Compact] };
    let bar = progress_bar(pool.size(), plan);
    let request = Resize { from: plan.from, to: plan.to, size: pool.size(), reclaim };
    let outcome = resize(pool, request, &|| signal.is_set(), &mut |at| {
        bar.set_position(at.0.abs_diff(plan.from.0));
    });
    bar.finish_and_clear();
    outcome
}

/// Restores the pool, except for pages that other processes have taken meanwhile.
fn roll_back(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<Exit> {
    let now = pool.state()?;
    let target = rollback_target(before, &now);
    let size = pool.size();
    // Ignore further signals until the pool is restored.
    let request = Resize { from: now.pool.persistent(), to: target, size, reclaim: &[Reclaim::Compact] };
    let outcome = privileges::write(|| resize(pool, request, &|| false, &mut |_| {}));
    let kept = pool.state()?.pool.persistent();
    if kept == before.pool.persistent() {
        complain!("The pool keeps {kept} pages of {size}, as before.");
        return Ok(exit::WARNING);
    }
    complain!("The pool keeps {kept} pages of {size}; before it kept {}.", before.pool.persistent());
    if target != before.pool.persistent() && kept == target {
        complain!("Other processes have taken pages meanwhile and keep them.");
        return Ok(exit::WARNING);
    }
    outcome?;
    Ok(exit::CRITICAL)
}

fn rollback_target(before: &HostState, now: &HostState) -> Pages {
    match (before.pool.in_use(), now.pool.in_use()) {
        (Some(then), Some(in_use)) if in_use > then => in_use.min(now.pool.persistent()).max(before.pool.persistent()),
        _ => before.pool.persistent(),
    }
}

/// Sets the pool for the next boot if requested, and warns if that boot sets another number.
fn persist(options: &ApplyOptions, root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<()> {
    let is_default = is_default(root, size)?;
    if options.persist {
        let setting = setting(root, size, pages)?;
        setting.write(root).context("the pool is set, but not for the next boot")?;
        say!("{} sets it at every boot.", setting.file);
        if !is_default && !is_buddy_size(size) {
            say!(
                "To guarantee pages of {size}, reserve them on the kernel command line: {}",
                reserve_at_boot(size, pages)
            );
        }
    }
    if let Some(warning) = persist::override_warning(root, size, is_default, pages)? {
        say!("{warning}");
    }
    Ok(())
}

fn setting(root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<Setting> {
    Ok(Setting::of(size, is_default(root, size)?, pages))
}

fn is_default(root: &Root, size: PageSize) -> anyhow::Result<bool> {
    Ok(Meminfo::read(root)?.huge_page_size == Some(size))
}

/// Whether the buddy allocator has blocks of this size. For larger pages the kernel has to clear a range of memory.
fn is_buddy_size(size: PageSize) -> bool {
    size.bytes().0 < 1 << 30
}

fn preview(root: &Root, size: PageSize, plan: Plan) -> String {
    let Plan { from, to, new_pages } = plan;
    if from == to {
        return format!("The pool keeps {to} pages of {size} already; nothing to do.");
    }
    let mut text = format!("The pool would keep {to} pages of {size} ({}), now {from}.", size.times(to));
    let ready = root.base_page_size().ok().and_then(|base| {
        let zones = buddyinfo::read(root).ok()?;
        buddyinfo::ready(&zones, None, size, base)
    });
    if let Some(ready) = ready.filter(|ready| *ready < new_pages) {
        text += &format!(
            " {ready} of {new_pages} new pages are free as whole blocks; the kernel has to compact memory for the others."
        );
    }
    text
}

fn done(size: PageSize, plan: Plan) -> String {
    let Plan { from, to, .. } = plan;
    if from == to {
        format!("The pool keeps {to} pages of {size} already.")
    } else {
        format!("The pool keeps {to} pages of {size} ({}), {from} before.", size.times(to))
    }
}

fn failure(outcome: Outcome, size: PageSize, plan: Plan, options: &ApplyOptions) -> String {
    let asked = plan.to;
    match outcome {
        Outcome::Reached => String::new(),
        Outcome::Interrupted => "interrupted".to_owned(),
        Outcome::InUse(in_use) => {
            format!("{in_use} pages of {size} are in use now, more than the requested {asked}")
        }
        Outcome::LowMemory(got) => format!(
            "stopped at {got} of {asked} pages of {size}: other processes use more memory now, and the host would begin to swap"
        ),
        Outcome::Incomplete(got) => {
            let tried = match options.drop_caches {
                true => "after compaction and dropping the page cache",
                false => "after compaction; --drop-caches may provide more",
            };
            format!(
                "the kernel gave {got} of {asked} pages of {size}, {tried}. Memory is fragmented. To get all pages, reserve \
                 them at boot: {}",
                reserve_at_boot(size, asked)
            )
        }
    }
}

/// A progress bar, hidden unless standard error is a terminal.
fn progress_bar(size: PageSize, plan: Plan) -> ProgressBar {
    let template = format!("{{bar:40}} {{pos}} of {{len}} pages of {size}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(plan.to.0.abs_diff(plan.from.0)).with_style(style)
}

/// Parses a size as PostgreSQL writes it (`2MB`, `64kB`), as the kernel's command line does (`2M`, `2048K`), or in bytes.
fn page_size(text: &str) -> Result<PageSize, String> {
    let plain = text.trim_end_matches(['b', 'B']).trim_end_matches('i');
    boot::memparse(plain).ok_or_else(|| "not a page size: give a number and kB, MB or GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes() {
        for (text, kib) in
            [("2MB", 2048), ("2M", 2048), ("2048kB", 2048), ("1GiB", 1 << 20), ("64kB", 64), ("1048576", 1024)]
        {
            assert_eq!(page_size(text).ok(), PageSize::from_kib(kib), "{text}");
        }
        for text in ["", "MB", "2 TB", "-2MB", "0"] {
            assert!(page_size(text).is_err(), "{text}");
        }
    }
}
