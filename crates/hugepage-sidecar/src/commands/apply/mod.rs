//! `apply`: sets a pool of huge pages, and leaves it as it was if the kernel does not give all of them.

mod host;
mod lock;
mod persist;
mod plan;
mod steps;
mod wanted;

use std::path::Path;

use anyhow::{Context, anyhow};
use clap::Args;
use hugepage_core::advise::command::reserve_at_boot;
use hugepage_core::read::meminfo::Meminfo;
use hugepage_core::read::{Root, boot, buddyinfo};
use hugepage_core::{PageSize, Pages};
use indicatif::{ProgressBar, ProgressStyle};

use self::host::Host;
use self::lock::Lock;
use self::persist::Setting;
use self::plan::{Ground, Plan, Refusal};
use self::steps::{Ended, Help, Way, walk};
use crate::exit::{self, Exit};
use crate::signals::Interrupt;

/// What `apply` is asked for.
#[derive(Debug, Args)]
pub struct Apply {
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
pub fn run(args: &Apply, root: &Root) -> anyhow::Result<Exit> {
    if !root.is_live() {
        eprintln!("hugepage-sidecar: apply changes this host, and nothing can be applied to the files of --root");
        return Ok(exit::USAGE);
    }
    let host = Host::new(root, args.page_size, args.reserve_percent)?;
    let pages = match args.pages {
        Some(pages) => Pages(pages),
        None => {
            let sizing = wanted::sizing(root, host.size(), args.reserve_percent);
            wanted::recommended(sizing.as_ref(), host.size(), host.ground()?.pool.persistent())?
        }
    };
    set_pool(args, root, host, pages)
}

/// Makes the pool keep `pages`.
fn set_pool(args: &Apply, root: &Root, mut host: Host<'_>, pages: Pages) -> anyhow::Result<Exit> {
    if args.dry_run {
        let plan = plan(args, root, &host.ground()?, pages)?;
        println!("{}", preview(root, host.size(), plan));
        if args.persist {
            let setting = setting(root, host.size(), pages)?;
            println!("{} would say: {}", setting.file, setting.line());
        }
        return Ok(exit::OK);
    }

    host.check_writable()?;
    let _lock = Lock::take(Path::new(lock::PATH))?;
    // From here on a signal is heard between steps, so that it cannot leave the pool somewhere in between.
    let interrupt = Interrupt::catch().context("could not listen to signals")?;
    let before = host.ground()?;
    let plan = plan(args, root, &before, pages)?;
    let ended = change(&mut host, plan, args, &interrupt);
    match ended {
        Ok(Ended::There) => {}
        Ok(ended) => {
            eprintln!("hugepage-sidecar: {}", why(ended, host.size(), plan, args));
            return roll_back(&mut host, &before);
        }
        Err(error) => {
            eprintln!("hugepage-sidecar: {error:#}");
            return roll_back(&mut host, &before);
        }
    }
    println!("{}", done(host.size(), plan));
    keep(args, root, host.size(), pages)?;
    Ok(exit::OK)
}

/// The plan, or a refusal; of pages that are in use with those who use them.
fn plan(args: &Apply, root: &Root, ground: &Ground, pages: Pages) -> anyhow::Result<Plan> {
    ground.plan(pages).map_err(|refusal| {
        let in_use = matches!(refusal, Refusal::InUse { .. });
        let size = ground.pool.page_size;
        let holders = || wanted::holders(wanted::sizing(root, size, args.reserve_percent).as_ref());
        match in_use.then(holders).flatten() {
            Some(holders) => anyhow!("{refusal}. {holders}"),
            None => refusal.into(),
        }
    })
}

fn change(host: &mut Host<'_>, plan: Plan, args: &Apply, interrupt: &Interrupt) -> anyhow::Result<Ended> {
    let helps: &[Help] = if args.drop_caches { &[Help::Compact, Help::DropCaches] } else { &[Help::Compact] };
    let bar = progress_bar(host.size(), plan);
    let way = Way { from: plan.from, to: plan.to, size: host.size(), helps };
    let ended = walk(host, way, &|| interrupt.came(), &mut |at| {
        bar.set_position(at.0.abs_diff(plan.from.0));
    });
    bar.finish_and_clear();
    ended
}

/// Back to what the pool was, or as near as others allow who have taken of its pages meanwhile.
fn roll_back(host: &mut Host<'_>, before: &Ground) -> anyhow::Result<Exit> {
    let now = host.ground()?;
    let target = back_to(before, &now);
    let size = host.size();
    // Whoever asks for the end again gets it when the pool is back.
    let way = Way { from: now.pool.persistent(), to: target, size, helps: &[Help::Compact] };
    let ended = walk(host, way, &|| false, &mut |_| {});
    let kept = host.ground()?.pool.persistent();
    if kept == before.pool.persistent() {
        eprintln!("The pool keeps {kept} pages of {size}, as before.");
        return Ok(exit::WARNING);
    }
    eprintln!("The pool keeps {kept} pages of {size} and not {}, as before.", before.pool.persistent());
    if target != before.pool.persistent() && kept == target {
        eprintln!("Pages of it have been taken meanwhile, and their users keep them.");
        return Ok(exit::WARNING);
    }
    ended?;
    Ok(exit::CRITICAL)
}

fn back_to(before: &Ground, now: &Ground) -> Pages {
    match (before.pool.in_use(), now.pool.in_use()) {
        (Some(then), Some(in_use)) if in_use > then => in_use.min(now.pool.persistent()).max(before.pool.persistent()),
        _ => before.pool.persistent(),
    }
}

/// Writes it down for the next boot if asked to, and says what that boot will do.
fn keep(args: &Apply, root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<()> {
    let is_default = is_default(root, size)?;
    if args.persist {
        let setting = setting(root, size, pages)?;
        setting.write(root).context("the pool is set, but not for the next boot")?;
        println!("{} sets it at every boot.", setting.file);
        if !is_default && !size_is_easy(size) {
            println!("Pages of {size} are certain only if the kernel reserves them: {}", reserve_at_boot(size, pages));
        }
    }
    if let Some(warning) = persist::overridden(root, size, is_default, pages)? {
        println!("{warning}");
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
fn size_is_easy(size: PageSize) -> bool {
    size.bytes().0 < 1 << 30
}

fn preview(root: &Root, size: PageSize, plan: Plan) -> String {
    let Plan { from, to, fresh } = plan;
    if from == to {
        return format!("The pool keeps {to} pages of {size} already; nothing would be done.");
    }
    let mut text = format!("The pool would keep {to} pages of {size} ({}), now {from}.", size.times(to));
    let ready = root.base_page_size().ok().and_then(|base| {
        let zones = buddyinfo::read(root).ok()?;
        buddyinfo::ready(&zones, None, size, base)
    });
    if let Some(ready) = ready.filter(|ready| *ready < fresh) {
        text += &format!(
            " Of the {fresh} to be made {ready} stand ready in free memory; for the others the kernel has to compact it."
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

fn why(ended: Ended, size: PageSize, plan: Plan, args: &Apply) -> String {
    let asked = plan.to;
    match ended {
        Ended::There => String::new(),
        Ended::Interrupted => "interrupted".to_owned(),
        Ended::Taken(in_use) => {
            format!("{in_use} pages of {size} are in use now, more than the {asked} that were to be left")
        }
        Ended::NoRoom(got) => format!(
            "at {got} of {asked} pages of {size} so little memory was available that the host would have begun to swap: \
             others have taken it meanwhile"
        ),
        Ended::Short(got) => {
            let tried = match args.drop_caches {
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
