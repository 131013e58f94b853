//! `apply`: sets the size of a pool, and restores it if the kernel does not provide all pages.
//!
//! ```text
//! $ hugepage-sidecar apply --recommended --persist --dry-run
//! Counted: 0 running, 1 stopped. For others: --postgresql-data DIR
//! The pool would have 80 pages of 2 MB (160 MB), now 0.
//! /etc/sysctl.d/90-postgresql-hugepages.conf would contain: vm.nr_hugepages = 80
//! ```

mod boot_setting;
pub mod pool;
pub mod resize;
pub mod target;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use clap::Args;
use hugepage_assess::advice::command::reserve_at_boot;
use hugepage_host::IN_CONTAINER;
use hugepage_kernel::host::reserve_unit;
use hugepage_kernel::next_boot::APPLIED;
use hugepage_kernel::{PageSize, Pages, Root};
use hugepage_sizing::Sizing;

use self::boot_setting::BootSetting;
use self::pool::KernelPool;
use self::resize::{PoolOperations, Resize, ResizeOutcome, resize};
use self::target::HostState;
use crate::commands::survey::{AccountOptions, within};
use crate::exit::Exit;
use crate::output::{self, complain, say};
use crate::privileges::{self, Needs};
use crate::signals;

/// Options of `apply`.
#[derive(Debug, Args)]
pub struct ApplyOptions {
    /// Set the pool to N pages
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "recommended",
        conflicts_with = "recommended"
    )]
    #[arg(value_parser = within::<u64, 0, 1_000_000_000_000>)]
    pages: Option<u64>,
    /// Set the pool to what the servers of this host need, and never reduce it
    #[arg(long)]
    recommended: bool,
    /// Page size of the pool, such as 2MB or 1GB [default: the kernel's default size]
    #[arg(long, value_name = "SIZE", value_parser = pool::page_size)]
    page_size: Option<PageSize>,
    /// Keep this share of the host's memory for 4 kB pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within::<u32, 0, 100>)]
    reserve_percent: u32,
    /// Data directory of a stopped PostgreSQL server; see also /etc/hugepage-sidecar/postgresql-data
    #[arg(long, value_name = "DIR")]
    postgresql_data: Vec<PathBuf>,
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
        if self.dry_run {
            return Needs::default();
        }
        let needs = pool::needs().file(Path::new(APPLIED));
        if self.persist {
            boot_setting::FILES
                .iter()
                .fold(needs, |needs, file| needs.file(Path::new(file)))
        } else {
            needs
        }
    }
}

/// Runs the command.
pub fn run(root: &Root, options: &ApplyOptions) -> anyhow::Result<Exit> {
    if !root.is_live() {
        complain!("hugepage-sidecar: apply changes this host and cannot be combined with --root");
        return Ok(Exit::Usage);
    }
    if !(options.yes || options.dry_run || io::stdin().is_terminal()) {
        complain!(
            "hugepage-sidecar: apply changes this host and has no terminal to ask on: add --yes"
        );
        return Ok(Exit::Usage);
    }
    options.accounts.check(root)?;
    let pool = KernelPool::new(root, options.page_size, options.reserve_percent)?;
    if let Some(pages) = options.pages {
        return set_pool(options, root, pool, Pages(pages));
    }
    let now = pool.state()?.pool.persistent();
    let host = target::host(
        root,
        options.reserve_percent,
        &options.accounts,
        &options.postgresql_data,
    )?;
    ensure!(!host.survey.host.is_in_container, IN_CONTAINER);
    let sizing = Sizing::of_size(&host.sizings, pool.size);
    let pages = target::recommended(sizing, pool.size)?.max(now);
    let lacking = sizing
        .filter(|_| pages > now)
        .map(target::lacking)
        .unwrap_or_default();
    say!("{}", host.counted());
    for line in &lacking {
        say!("{line}");
    }
    set_pool(options, root, pool, pages)
}

/// Sets the pool to `pages`, or says what that would change.
fn set_pool(
    options: &ApplyOptions,
    root: &Root,
    mut pool: KernelPool<'_>,
    pages: Pages,
) -> anyhow::Result<Exit> {
    if options.dry_run {
        announce(options, root, pool.state()?.plan(pages)?)?;
        return Ok(Exit::Ok);
    }

    pool.check_writable()?;
    // A refusal comes before the question, and both before anything is changed.
    confirm(options, root, pool.state()?.plan(pages)?)?;
    let _lock = privileges::write(|| pool::lock(Path::new(pool::LOCK_DIRECTORY)))?;
    privileges::replace_file(Path::new(APPLIED), b"")
        .with_context(|| format!("could not write {APPLIED}"))?;
    // From here on a signal is handled between steps, so that the pool is always restored.
    let has_signal = signals::catch().context("could not catch signals")?;
    let before = pool.state()?;
    let plan = before.plan(pages)?;
    let Resize { size, to, .. } = plan;
    let failure = match privileges::write(|| {
        resize(&mut pool, plan, &|| has_signal.load(Ordering::Relaxed))
    }) {
        Ok(ResizeOutcome::Reached) => {
            persist(options, root, plan)?;
            return Ok(Exit::Ok);
        }
        Ok(ResizeOutcome::Interrupted) => "interrupted".to_owned(),
        Ok(ResizeOutcome::InUse(in_use)) => {
            format!("{in_use} pages of {size} are in use now, more than the requested {to}")
        }
        Ok(ResizeOutcome::LowMemory(got)) => format!(
            "stopped at {got} of {to} pages of {size}: other processes use more memory now, and the host would begin to swap"
        ),
        Ok(ResizeOutcome::Incomplete(got)) => format!(
            "the kernel gave {got} of {to} pages of {size}, after compaction. Memory is fragmented. To get all pages, \
             reserve them at boot: {}",
            reserve_at_boot(size, to)
        ),
        Err(error) => format!("{error:#}"),
    };
    complain!("hugepage-sidecar: {failure}");
    roll_back(&mut pool, &before)
}

/// Says what the plan would change.
fn announce(
    options: &ApplyOptions,
    root: &Root,
    Resize { size, from, to }: Resize,
) -> anyhow::Result<()> {
    if from == to {
        say!("The pool has {to} pages of {size} already.")
    } else {
        say!(
            "The pool would have {to} pages of {size} ({}), now {from}.",
            size.times(to)
        )
    }
    if options.persist {
        let setting = BootSetting::new(root, size, to)?;
        say!("{} would contain: {}", setting.file, setting.line);
    }
    Ok(())
}

/// Asks on the terminal if the plan changes something and `--yes` was not given. The error is that nobody agreed.
fn confirm(options: &ApplyOptions, root: &Root, plan: Resize) -> anyhow::Result<()> {
    if options.yes || (plan.from == plan.to && !options.persist) {
        return Ok(());
    }
    announce(options, root, plan)?;
    output::confirm("Change it?")
}

/// Says that the pool is set, sets it for the next boot if requested, and warns if that boot sets another number.
fn persist(
    options: &ApplyOptions,
    root: &Root,
    Resize { size, from, to }: Resize,
) -> anyhow::Result<()> {
    if from == to {
        say!("The pool has {to} pages of {size} already.")
    } else {
        say!(
            "The pool has {to} pages of {size} now ({}), {from} before.",
            size.times(to)
        )
    }
    if options.persist {
        let setting = BootSetting::new(root, size, to)?;
        setting
            .write(root)
            .context("the pool is set, but not for the next boot")?;
        say!("{} sets it at every boot.", setting.file);
        if root.exists("/run/systemd/system") && !reserve_unit::is_enabled(root) {
            say!(
                "To count the servers anew at every boot: systemctl enable hugepage-reserve hugepage-sidecar"
            );
        }
    }
    if let Some(warning) = boot_setting::override_warning(root, size, to) {
        say!("{warning}");
    }
    Ok(())
}

/// Restores the pool, except for pages that other processes have taken meanwhile.
fn roll_back(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<Exit> {
    let size = pool.size;
    let outcome = privileges::write(|| restore(pool, before));
    let now = pool.state()?;
    let kept = now.pool.persistent();
    let had = before.pool.persistent();
    if kept == had {
        complain!("The pool keeps {kept} pages of {size}, as before.");
        return Ok(Exit::Warning);
    }
    complain!("The pool keeps {kept} pages of {size}; before it kept {had}.");
    if kept == rollback_target(before, &now) {
        complain!("Other processes have taken pages meanwhile and keep them.");
        return Ok(Exit::Warning);
    }
    match outcome? {
        ResizeOutcome::InUse(in_use) => complain!("{in_use} pages were in use."),
        ResizeOutcome::Incomplete(got) => complain!("The kernel stopped at {got} pages."),
        _ => {}
    }
    Ok(Exit::Critical)
}

/// Sets the pool to what it was. Processes may take pages of it, or return some, between two steps.
fn restore(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<ResizeOutcome> {
    const ATTEMPTS: usize = 10;
    let mut outcome = ResizeOutcome::Reached;
    for attempt in 0..ATTEMPTS {
        let now = pool.state()?;
        let from = now.pool.persistent();
        let to = rollback_target(before, &now);
        // Pages that the kernel did not give once, after compaction, it would not give again.
        if from == to || (from < to && attempt > 0) {
            break;
        }
        // Further signals are ignored until the pool is restored.
        outcome = resize(
            pool,
            Resize {
                size: pool.size,
                from,
                to,
            },
            &|| false,
        )?;
        // Surplus pages that were in use before become surplus pages again, and not those that others have taken meanwhile.
        if let ResizeOutcome::InUse(_) = outcome
            && rollback_target(before, &pool.state()?) == before.pool.persistent()
        {
            pool.set(before.pool.persistent())?;
        }
    }
    Ok(outcome)
}

fn rollback_target(before: &HostState, now: &HostState) -> Pages {
    match (before.pool.in_use(), now.pool.in_use()) {
        (Some(then), Some(in_use)) if in_use > then => in_use
            .min(now.pool.persistent())
            .max(before.pool.persistent()),
        _ => before.pool.persistent(),
    }
}
