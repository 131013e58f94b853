//! `apply`: sets the size of a pool, and restores it if the kernel does not provide all pages.

mod boot_setting;
mod kernel_file;
mod kernel_pool;
mod larger_pool;
mod lock;
mod messages;
mod owners;
mod page_size;
mod resize;
mod resize_plan;
mod rollback;
mod target;
mod vmemmap;

use std::path::Path;

use anyhow::{Context, anyhow};
use clap::Args;
use hugepage_assess::advice::command::reserve_at_boot;
use hugepage_assess::assessment::Sizing;
use hugepage_assess::assessment::capacity::saved_per_page;
use hugepage_kernel::memory::meminfo::OPTIMIZE_VMEMMAP;
use hugepage_kernel::{Bytes, PageSize, Pages, Root};

use self::boot_setting::BootSetting;
use self::kernel_pool::KernelPool;
use self::larger_pool::LargerPool;
use self::lock::Lock;
use self::messages::{done, failure, preview, progress_bar};
use self::resize::{PoolOperations, Reclaim, Resize, ResizeOutcome, resize};
use self::resize_plan::{HostState, ResizePlan, ResizeRefusal};
use self::rollback::roll_back;
use self::vmemmap::VmemmapOptimization;
use crate::commands::survey::AccountOptions;
use crate::exit::{self, Exit};
use crate::output::stream::{complain, say};
use crate::privileges::{self, Needs};
use crate::signals::Interrupt;
use crate::state::DIRECTORY;

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
    #[arg(long, value_name = "SIZE", value_parser = page_size::parse)]
    page_size: Option<PageSize>,
    /// Keep this share of the host's memory for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    reserve_percent: u32,
    #[command(flatten)]
    accounts: AccountOptions,
    /// Drop the clean page cache if compaction alone does not provide the pages
    #[arg(long)]
    drop_caches: bool,
    /// Split unused larger huge pages where memory does not provide the pages; none that is in use, reserved or needed
    #[arg(long)]
    demote: bool,
    /// Turn vm.hugetlb_optimize_vmemmap on while the pool grows, so that each new page takes less memory
    #[arg(long)]
    optimize_vmemmap: bool,
    /// Also set it for the next boot: in sysctl.d, or in tmpfiles.d for sizes other than the default
    #[arg(long)]
    persist: bool,
    /// With --recommended: add pages for users whose servers never got some, without a question
    #[arg(long, requires = "recommended")]
    yes: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl ApplyOptions {
    /// The files of the kernel that it writes belong to root, and ask for no capability.
    pub fn needs(&self) -> Needs {
        let needs = Needs::default().servers();
        if self.dry_run {
            return needs;
        }
        let needs = kernel_pool::FILES.iter().fold(needs, |needs, file| needs.directory(Path::new(file)));
        let needs = needs.new_directory(Path::new(lock::DIRECTORY));
        let needs = if self.recommended { needs.new_directory(Path::new(DIRECTORY)) } else { needs };
        if self.persist {
            boot_setting::FILES.iter().fold(needs, |needs, file| needs.file(Path::new(file)))
        } else {
            needs
        }
    }
}

/// Runs the command.
pub fn run(root: &Root, options: &ApplyOptions) -> anyhow::Result<Exit> {
    if !root.is_live() {
        complain!("hugepage-sidecar: apply changes this host and cannot be combined with --root");
        return Ok(exit::USAGE);
    }
    options.accounts.check(root)?;
    let pool = KernelPool::new(root, options.page_size, options.reserve_percent)?;
    if let Some(pages) = options.pages {
        return set_pool(options, root, pool, Pages(pages));
    }
    let now = pool.state()?.pool.persistent();
    let host = target::host(root, options.reserve_percent, &options.accounts);
    let sizing = Sizing::of_size(&host.sizings, pool.size());
    let pages = target::recommended(sizing, pool.size())?.max(now);
    let lacking = sizing.filter(|_| pages > now).map(|sizing| owners::lacking(root, &host, sizing)).unwrap_or_default();
    owners::confirm(&lacking, Path::new(DIRECTORY), options.yes, options.dry_run)?;
    let exit = set_pool(options, root, pool, pages)?;
    if exit == exit::OK && !options.dry_run {
        owners::remember(&lacking, Path::new(DIRECTORY))?;
    }
    Ok(exit)
}

/// Sets the pool to `pages`.
fn set_pool<'a>(
    options: &ApplyOptions,
    root: &'a Root,
    mut pool: KernelPool<'a>,
    pages: Pages,
) -> anyhow::Result<Exit> {
    let mut why_not_split = None;
    if options.demote && pages > pool.state()?.pool.nr {
        match LargerPool::find(root, pool.size(), |size| needed(root, size, options)) {
            Ok(larger) => pool.larger = Some(larger),
            Err(error) => why_not_split = Some(format!("--demote: {error:#}.")),
        }
    }
    if options.optimize_vmemmap {
        vmemmap::check(root)?;
        pool.saved_per_page = saved_per_page(pool.size(), root.base_page_size()?);
    }
    let result = set_prepared(options, root, &mut pool, pages);
    if let Some(why) = why_not_split.filter(|_| !matches!(result, Ok(exit) if exit == exit::OK)) {
        complain!("{why}");
    }
    result
}

/// The pages of `size` that the servers of this host need, running or stopped; `None` if that is unknown.
fn needed(root: &Root, size: PageSize, options: &ApplyOptions) -> Option<Pages> {
    let host = target::host(root, options.reserve_percent, &options.accounts);
    Sizing::of_size(&host.sizings, size).map_or(Some(Pages(0)), |sizing| sizing.recommended.map(|_| sizing.total))
}

fn set_prepared(options: &ApplyOptions, root: &Root, pool: &mut KernelPool<'_>, pages: Pages) -> anyhow::Result<Exit> {
    if options.dry_run {
        let (plan, split) = plan(options, root, pool, pages)?;
        say!("{}", preview(root, pool.size(), plan));
        if let Some(larger) = &pool.larger {
            let (size, spare) = (larger.split().0, larger.spare());
            say!("{split} unused pages of {size} would be split first, up to {spare} if memory is fragmented.");
        }
        if let Some(saved) = saved(pool, plan) {
            say!("With {OPTIMIZE_VMEMMAP} the new pages would take {saved} less memory. {}", vmemmap::WHEN_FREED);
        }
        if options.persist {
            let setting = BootSetting::new(root, pool.size(), pages)?;
            say!("{} would contain: {}", setting.file, setting.line());
        }
        return Ok(exit::OK);
    }

    pool.check_writable()?;
    // A refusal comes before anything is changed.
    options.persist.then(|| BootSetting::new(root, pool.size(), pages)).transpose()?;
    let _lock = privileges::write(|| Lock::take(Path::new(lock::DIRECTORY)))?;
    // From here on a signal is handled between steps, so that the pool is always restored.
    let interrupt = Interrupt::catch().context("could not catch signals")?;
    let before = pool.state()?;
    let (plan, split) = plan(options, root, pool, pages)?;
    crate::supervisor::begin_change();
    let optimizing = match options.optimize_vmemmap && plan.new_pages > Pages(0) {
        true => Some(privileges::write(|| VmemmapOptimization::begin(root))?),
        false => None,
    };
    let outcome = privileges::write(|| change(pool, plan, split, options, &interrupt));
    drop(optimizing);
    if let Some(larger) = &pool.larger {
        privileges::write(|| larger.restore_size())?;
    }
    match outcome {
        Ok(ResizeOutcome::Reached) => {}
        Ok(outcome) => {
            complain!("hugepage-sidecar: {}", failure(outcome, pool.size(), plan, options.drop_caches, options.demote));
            return roll_back(pool, &before);
        }
        Err(error) => {
            complain!("hugepage-sidecar: {error:#}");
            return roll_back(pool, &before);
        }
    }
    say!("{}", done(pool.size(), plan));
    if let Some((size, split)) = pool.larger.as_ref().map(LargerPool::split).filter(|(_, split)| *split > Pages(0)) {
        say!("{split} unused pages of {size} were split; that pool keeps the others.");
    }
    if let Some(saved) = saved(pool, plan) {
        say!(
            "{OPTIMIZE_VMEMMAP} was on meanwhile: pages that the kernel allocated take up to {saved} less memory. {}",
            vmemmap::WHEN_FREED
        );
    }
    persist(options, root, pool.size(), pages)?;
    Ok(exit::OK)
}

/// The memory that the kernel gives back for the new pages; `None` if that was not asked for.
fn saved(pool: &KernelPool<'_>, plan: ResizePlan) -> Option<Bytes> {
    Some(Bytes(pool.saved_per_page.0.saturating_mul(plan.new_pages.0))).filter(|saved| *saved > Bytes(0))
}

/// The plan, and the larger pages that have to be split first for it: as few as possible. Or a refusal; if pages are in
/// use, it names the instances that use them.
fn plan(
    options: &ApplyOptions,
    root: &Root,
    pool: &KernelPool<'_>,
    pages: Pages,
) -> anyhow::Result<(ResizePlan, Pages)> {
    let state = pool.state()?;
    let with = |split| {
        let divided = pool.larger.as_ref().map(|larger| larger.memory(split)).unwrap_or_default();
        HostState { divided, ..state.clone() }.plan(pages)
    };
    let spare = pool.larger.as_ref().map(LargerPool::spare).unwrap_or_default();
    let mut refused = None;
    for split in (0..=spare.0).map(Pages) {
        match with(split) {
            Ok(plan) => return Ok((plan, split)),
            Err(refusal) => refused = Some(refusal),
        }
    }
    let refusal = refused.unwrap_or(ResizeRefusal::PromisesUnknown);
    let in_use = matches!(refusal, ResizeRefusal::InUse { .. });
    let size = state.pool.page_size;
    let holders = || {
        let host = target::host(root, options.reserve_percent, &options.accounts);
        target::holders(Sizing::of_size(&host.sizings, size))
    };
    Err(match in_use.then(holders).flatten() {
        Some(holders) => anyhow!("{refusal}. {holders}"),
        None => refusal.into(),
    })
}

fn change(
    pool: &mut KernelPool<'_>,
    plan: ResizePlan,
    split: Pages,
    options: &ApplyOptions,
    signal: &Interrupt,
) -> anyhow::Result<ResizeOutcome> {
    for _ in 0..split.0 {
        // Without that page there may be too little memory.
        if pool.demote()?.is_none() {
            return Ok(ResizeOutcome::LowMemory(pool.state()?.pool.persistent()));
        }
    }
    let from = if split > Pages(0) { pool.state()?.pool.persistent() } else { plan.from };
    let reclaim: &[Reclaim] =
        if options.drop_caches { &[Reclaim::Compact, Reclaim::DropCaches] } else { &[Reclaim::Compact] };
    let bar = progress_bar(pool.size(), plan);
    let request = Resize { from, to: plan.to, size: pool.size(), reclaim };
    let outcome = resize(pool, request, &|| signal.is_set(), &mut |at| {
        bar.set_position(at.0.abs_diff(plan.from.0));
    });
    bar.finish_and_clear();
    outcome
}

/// Sets the pool for the next boot if requested, and warns if that boot sets another number.
fn persist(options: &ApplyOptions, root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<()> {
    if options.persist {
        let setting = BootSetting::new(root, size, pages)?;
        setting.write(root).context("the pool is set, but not for the next boot")?;
        say!("{} sets it at every boot.", setting.file);
        if !boot_setting::is_default(root, size)? && !page_size::is_buddy_size(size) {
            say!(
                "To guarantee pages of {size}, reserve them on the kernel command line: {}",
                reserve_at_boot(size, pages)
            );
        }
    }
    if let Some(warning) = boot_setting::override_warning(root, size, pages) {
        say!("{warning}");
    }
    Ok(())
}
