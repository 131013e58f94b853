//! `capture`: a tree of the files that answers come from, to be examined elsewhere with `--root`.
//!
//! There is no list of files: the survey itself runs once and every look it takes is noted, so that nothing it needs
//! is missing and nothing else is taken. What leaves the host of each file is in [`redact`].

mod oracle;
mod postgresql;
mod process;
mod redact;
mod tree;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use clap::Args;
use hugepage_core::Notes;
use hugepage_core::collect::kernel_facts;
use hugepage_core::read::boot::NextBoot;
use hugepage_core::read::{Root, identity, sysctl};

use self::tree::Left;
use crate::commands::size;
use crate::commands::status::{Accounts, Look};
use crate::exit::{self, Exit};
use crate::signals::Interrupt;
use crate::state::DIRECTORY;

/// What `capture` is asked for.
#[derive(Debug, Args)]
pub struct Capture {
    /// The directory to make; it must not exist, or be empty
    dir: PathBuf,
}

/// Runs it.
pub fn run(args: &Capture, root: &Root) -> anyhow::Result<Exit> {
    let dir = std::path::absolute(&args.dir)?;
    if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty", dir.display());
    }
    let interrupt = Interrupt::catch().context("could not listen to signals")?;
    let beside = dir.parent().unwrap_or(Path::new("/"));
    // Removed when it goes out of scope, so that nothing half-written stays, whatever happens.
    let private = Permissions::from_mode(0o700);
    let new = tempfile::Builder::new().prefix(".hugepage-sidecar-").permissions(private).tempdir_in(beside);
    let new = new.with_context(|| format!("could not make a directory in {}", beside.display()))?;

    let (recording, record) = root.recording();
    look_at_everything(&recording);
    let left = tree::write(root, &record, new.path(), &interrupt).context("nothing was captured")?;
    fs::write(new.path().join("README"), readme(&left)).context("nothing was captured")?;
    // All of it is on the disk before it has its name.
    rustix::fs::syncfs(File::open(new.path())?).context("nothing was captured")?;
    fs::rename(new.path(), &dir).with_context(|| format!("could not make {}", dir.display()))?;
    report(&dir, &left);
    Ok(exit::OK)
}

/// Every question that this program can ask of a host; the answers are of no interest here.
fn look_at_everything(root: &Root) {
    let mut notes = Notes::default();
    // What percentage is kept changes no look.
    size::of(
        root,
        &Look { reserve_percent: 20, state_dir: DIRECTORY.into(), accounts: Accounts::default() },
        &[],
        false,
    );
    kernel_facts::facts(root, &mut notes);
    notes.keep(NextBoot::read(root));
    notes.keep(identity::host_name(root));
    notes.keep(identity::boot_id(root));
    for parameter in ["kernel.osrelease", "kernel.shmmax", "kernel.shmall", "kernel.shmmni"] {
        notes.keep(sysctl::running(root, parameter));
    }
    let _ = root.read("/etc/os-release");
}

fn readme(left: &Left) -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now());
    let who = if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user, who does not see all" };
    let mut text = format!(
        "Captured by hugepage-sidecar {} at {time} as {who}.\n\
         Examine it with: hugepage-sidecar --root DIR status\n\n\
         What the host refused to show is in the file \"refused\", with its error numbers.\n",
        env!("CARGO_PKG_VERSION")
    );
    if !left.unknown.is_empty() {
        text += "Looked at, and left out because it may hold secrets:\n";
        text.extend(left.unknown.iter().map(|path| format!("    {path}\n")));
    }
    text
}

fn report(dir: &Path, left: &Left) {
    println!("{} is the capture of this host. Examine it with --root.", dir.display());
    if !left.unknown.is_empty() {
        println!("{} files were left out because they may hold secrets; its README names them.", left.unknown.len());
    }
    if !left.refused.is_empty() {
        println!("{} files could not be read. Run it as root to have them as well.", left.refused.len());
    }
}
