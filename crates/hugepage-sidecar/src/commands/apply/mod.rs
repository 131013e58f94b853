//! `apply`: sets the size of a pool, and restores it if the kernel does not provide all pages.

mod boot_setting;
mod kernel_pool;
mod lock;
mod messages;
mod page_size;
mod resize;
mod resize_plan;
mod rollback;
mod target;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, bail};
use clap::Args;
use hugepage_kernel::{PageSize, Pages, Root};
use hugepage_sizing::Sizing;

use self::boot_setting::BootSetting;
use self::kernel_pool::KernelPool;
use self::lock::Lock;
use self::messages::{done, failure, preview};
use self::resize::{Resize, ResizeOutcome, resize};
use self::resize_plan::ResizePlan;
use self::rollback::roll_back;
use crate::commands::survey::AccountOptions;
use crate::exit::{self, Exit};
use crate::host_options::within;
use crate::output::stream::{complain, say};
use crate::privileges::{self, Needs};
use crate::signals;

/// Options of `apply`.
#[derive(Debug, Args)]
pub struct ApplyOptions {
    /// Set the pool to N pages
    #[arg(long, value_name = "N", required_unless_present = "recommended", conflicts_with = "recommended")]
    #[arg(value_parser = within::<u64, 0, 1_000_000_000_000>)]
    pages: Option<u64>,
    /// Set the pool to what the servers of this host need, and never reduce it
    #[arg(long)]
    recommended: bool,
    /// Page size of the pool, such as 2MB or 1GB [default: the kernel's default size]
    #[arg(long, value_name = "SIZE", value_parser = page_size::parse)]
    page_size: Option<PageSize>,
    /// Keep this share of the host's memory for 4 kB pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within::<u32, 0, 100>)]
    reserve_percent: u32,
    #[command(flatten)]
    accounts: AccountOptions,
    /// Also set it for the next boot: in sysctl.d, or in tmpfiles.d for sizes other than the default
    #[arg(long)]
    persist: bool,
    /// Change the pool without a question; required where there is no terminal to ask on
    #[arg(long)]
    yes: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl ApplyOptions {
    /// The files of the kernel that it writes belong to root, and ask for no capability.
    pub fn needs(&self) -> Needs {
        let needs = Needs::default();
        if self.dry_run {
            return needs;
        }
        let needs = kernel_pool::FILES.iter().fold(needs, |needs, file| needs.directory(Path::new(file)));
        let needs = needs.new_directory(Path::new(lock::DIRECTORY));
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
    if !(options.yes || options.dry_run || io::stdin().is_terminal()) {
        complain!("hugepage-sidecar: apply changes this host and has no terminal to ask on: add --yes");
        return Ok(exit::USAGE);
    }
    options.accounts.check(root)?;
    let pool = KernelPool::new(root, options.page_size, options.reserve_percent)?;
    if let Some(pages) = options.pages {
        return set_pool(options, root, pool, Pages(pages));
    }
    let now = pool.state()?.pool.persistent();
    let host = target::host(root, options.reserve_percent, &options.accounts)?;
    let sizing = Sizing::of_size(&host.sizings, pool.size());
    let pages = target::recommended(sizing, pool.size())?.max(now);
    let lacking = sizing.filter(|_| pages > now).map(target::lacking).unwrap_or_default();
    for line in lacking.iter().chain(&host.by_hand) {
        say!("{line}");
    }
    set_pool(options, root, pool, pages)
}

/// Sets the pool to `pages`, or says what that would change.
fn set_pool(options: &ApplyOptions, root: &Root, mut pool: KernelPool<'_>, pages: Pages) -> anyhow::Result<Exit> {
    if options.dry_run {
        announce(options, root, pool.state()?.plan(pages)?, pool.size())?;
        return Ok(exit::OK);
    }

    pool.check_writable()?;
    // A refusal comes before the question, and both before anything is changed.
    confirm(options, root, pool.state()?.plan(pages)?, pool.size())?;
    let _lock = privileges::write(|| Lock::take(Path::new(lock::DIRECTORY)))?;
    // From here on a signal is handled between steps, so that the pool is always restored.
    let has_signal = signals::catch().context("could not catch signals")?;
    let before = pool.state()?;
    let plan = before.plan(pages)?;
    let request = Resize { from: plan.from, to: plan.to, size: pool.size() };
    match privileges::write(|| resize(&mut pool, request, &|| has_signal.load(Ordering::Relaxed))) {
        Ok(ResizeOutcome::Reached) => {}
        Ok(outcome) => {
            complain!("hugepage-sidecar: {}", failure(outcome, pool.size(), plan));
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

/// Says what the plan would change.
fn announce(options: &ApplyOptions, root: &Root, plan: ResizePlan, size: PageSize) -> anyhow::Result<()> {
    say!("{}", preview(size, plan));
    if options.persist {
        let setting = BootSetting::new(root, size, plan.to)?;
        say!("{} would contain: {}", setting.file, setting.line());
    }
    Ok(())
}

/// Asks on the terminal if the plan changes something and `--yes` was not given. The error is that nobody agreed.
fn confirm(options: &ApplyOptions, root: &Root, plan: ResizePlan, size: PageSize) -> anyhow::Result<()> {
    if options.yes || (plan.from == plan.to && !options.persist) {
        return Ok(());
    }
    announce(options, root, plan, size)?;
    let mut terminal = io::stderr();
    write!(terminal, "Change it? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was changed");
    }
    Ok(())
}

/// Sets the pool for the next boot if requested, and warns if that boot sets another number.
fn persist(options: &ApplyOptions, root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<()> {
    if options.persist {
        let setting = BootSetting::new(root, size, pages)?;
        setting.write(root).context("the pool is set, but not for the next boot")?;
        say!("{} sets it at every boot.", setting.file);
    }
    if let Some(warning) = boot_setting::override_warning(root, size, pages) {
        say!("{warning}");
    }
    Ok(())
}
