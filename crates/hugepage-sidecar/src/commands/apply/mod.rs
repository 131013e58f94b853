//! `apply`: sets a pool of huge pages, and leaves it as it was if the kernel does not give all of them.

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
use crate::exit::{self, Exit};
use crate::signals::Interrupt;

/// What `apply` is asked for.
#[derive(Debug, Args)]
pub struct ApplyOptions {
    /// How many pages the pool is to keep
    #[arg(long, value_name = "N", required_unless_present = "recommended", conflicts_with = "recommended")]
    pages: Option<u64>,
    /// As many as the servers of this host need, and never fewer than there are
    #[arg(long)]
    recommended: bool,
    /// The size of its pages, such as 2MB or 1GB [default: the kernel's default size]
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    /// How much of the host's memory stays for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    reserve_percent: u32,
    /// Let the kernel forget unchanged files that it has read, where compaction alone does not give the pages
    #[arg(long)]
    drop_caches: bool,
    /// Also set it for the next boot, in sysctl.d, or in tmpfiles.d for other sizes than the default one
    #[arg(long)]
    persist: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs it.
pub fn run(root: &Root, options: &ApplyOptions) -> anyhow::Result<Exit> {
    if !root.is_live() {
        eprintln!("hugepage-sidecar: apply changes this pool, and nothing can be applied to the files of --root");
        return Ok(exit::USAGE);
    }
    let pool = KernelPool::new(root, options.page_size, options.reserve_percent)?;
    let pages = match options.pages {
        Some(pages) => Pages(pages),
        None => {
            let sizing = target::sizing(root, pool.size(), options.reserve_percent);
            target::recommended(sizing.as_ref(), pool.size(), pool.state()?.pool.persistent())?
        }
    };
    set_pool(options, root, pool, pages)
}

/// Makes the pool keep `pages`.
fn set_pool(options: &ApplyOptions, root: &Root, mut pool: KernelPool<'_>, pages: Pages) -> anyhow::Result<Exit> {
    if options.dry_run {
        let plan = plan(options, root, &pool.state()?, pages)?;
        println!("{}", preview(root, pool.size(), plan));
        if options.persist {
            let setting = setting(root, pool.size(), pages)?;
            println!("{} would say: {}", setting.file, setting.line());
        }
        return Ok(exit::OK);
    }

    pool.check_writable()?;
    let _lock = Lock::take(Path::new(lock::PATH))?;
    // From here on a signal is heard between steps, so that it cannot leave the pool somewhere in between.
    let interrupt = Interrupt::catch().context("could not listen to signals")?;
    let before = pool.state()?;
    let plan = plan(options, root, &before, pages)?;
    let outcome = change(&mut pool, plan, options, &interrupt);
    match outcome {
        Ok(Outcome::Reached) => {}
        Ok(outcome) => {
            eprintln!("hugepage-sidecar: {}", failure(outcome, pool.size(), plan, options));
            return roll_back(&mut pool, &before);
        }
        Err(error) => {
            eprintln!("hugepage-sidecar: {error:#}");
            return roll_back(&mut pool, &before);
        }
    }
    println!("{}", done(pool.size(), plan));
    persist(options, root, pool.size(), pages)?;
    Ok(exit::OK)
}

/// The plan, or a refusal; of pages that are in use with those who use them.
fn plan(options: &ApplyOptions, root: &Root, state: &HostState, pages: Pages) -> anyhow::Result<Plan> {
    state.plan(pages).map_err(|refusal| {
        let in_use = matches!(refusal, Refusal::InUse { .. });
        let size = state.pool.page_size;
        let holders = || target::holders(target::sizing(root, size, options.reserve_percent).as_ref());
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
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let reclaim: &[Reclaim] =
        if options.drop_caches { &[Reclaim::Compact, Reclaim::DropCaches] } else { &[Reclaim::Compact] };
    let bar = progress_bar(pool.size(), plan);
    let request = Resize { from: plan.from, to: plan.to, size: pool.size(), reclaim };
    let outcome = resize(pool, request, &|| interrupt.is_set(), &mut |at| {
        bar.set_position(at.0.abs_diff(plan.from.0));
    });
    bar.finish_and_clear();
    outcome
}

/// Back to what the pool was, or as near as others allow who have taken of its pages meanwhile.
fn roll_back(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<Exit> {
    let now = pool.state()?;
    let target = rollback_target(before, &now);
    let size = pool.size();
    // Whoever asks for the end again gets it when the pool is back.
    let request = Resize { from: now.pool.persistent(), to: target, size, reclaim: &[Reclaim::Compact] };
    let outcome = resize(pool, request, &|| false, &mut |_| {});
    let kept = pool.state()?.pool.persistent();
    if kept == before.pool.persistent() {
        eprintln!("The pool keeps {kept} pages of {size}, as before.");
        return Ok(exit::WARNING);
    }
    eprintln!("The pool keeps {kept} pages of {size} and not {}, as before.", before.pool.persistent());
    if target != before.pool.persistent() && kept == target {
        eprintln!("Pages of it have been taken meanwhile, and their users keep them.");
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

/// Writes it down for the next boot if asked to, and says what that boot will do.
fn persist(options: &ApplyOptions, root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<()> {
    let is_default = is_default(root, size)?;
    if options.persist {
        let setting = setting(root, size, pages)?;
        setting.write(root).context("the pool is set, but not for the next boot")?;
        println!("{} sets it at every boot.", setting.file);
        if !is_default && !is_buddy_size(size) {
            println!("Pages of {size} are certain only if the kernel reserves them: {}", reserve_at_boot(size, pages));
        }
    }
    // tmpfiles.d has its turn after all that NextBoot reads.
    match persist::override_warning(root, size, is_default, pages)? {
        Some(warning) if is_default || !options.persist => println!("{warning}"),
        _ => {}
    }
    Ok(())
}

fn setting(root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<Setting> {
    Ok(Setting::of(size, is_default(root, size)?, pages))
}

fn is_default(root: &Root, size: PageSize) -> anyhow::Result<bool> {
    Ok(Meminfo::read(root)?.huge_page_size == Some(size))
}

/// Whether the kernel's buddy allocator has blocks as large, so that it need not clear a range of memory for each.
fn is_buddy_size(size: PageSize) -> bool {
    size.bytes().0 < 1 << 30
}

fn preview(root: &Root, size: PageSize, plan: Plan) -> String {
    let Plan { from, to, new_pages } = plan;
    if from == to {
        return format!("The pool keeps {to} pages of {size} already; nothing would be done.");
    }
    let mut text = format!("The pool would keep {to} pages of {size} ({}), now {from}.", size.times(to));
    let ready = root.base_page_size().ok().and_then(|base| {
        let zones = buddyinfo::read(root).ok()?;
        buddyinfo::ready(&zones, None, size, base)
    });
    if let Some(ready) = ready.filter(|ready| *ready < new_pages) {
        text += &format!(
            " Of the {new_pages} to be made {ready} stand ready in free memory; for the others the kernel has to compact it."
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
            format!("{in_use} pages of {size} are in use now, more than the {asked} that were to be left")
        }
        Outcome::LowMemory(got) => format!(
            "at {got} of {asked} pages of {size} so little memory was available that the host would have begun to swap: \
             others have taken it meanwhile"
        ),
        Outcome::Incomplete(got) => {
            let tried = match options.drop_caches {
                true => "after compaction and without the page cache",
                false => "after compaction; --drop-caches may give more",
            };
            format!(
                "the kernel gave {got} of {asked} pages of {size}, {tried}. Memory is fragmented: {got} can be had now, and all \
                 of them if they are reserved at boot: {}",
                reserve_at_boot(size, asked)
            )
        }
    }
}

/// Hidden unless standard error is a terminal.
fn progress_bar(size: PageSize, plan: Plan) -> ProgressBar {
    let template = format!("{{bar:40}} {{pos}} of {{len}} pages of {size}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(plan.to.0.abs_diff(plan.from.0)).with_style(style)
}

/// `2MB`, `1GB`, `64kB` as huge_page_size of PostgreSQL, `2M`, `1G`, `2048K` as the kernel's command line, or bytes.
fn page_size(text: &str) -> Result<PageSize, String> {
    let plain = text.trim_end_matches(['b', 'B']).trim_end_matches('i');
    boot::memparse(plain).ok_or_else(|| "a page size is a number with kB, MB or GB behind it".to_owned())
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
