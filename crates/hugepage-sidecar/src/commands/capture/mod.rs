//! `capture`: copies the files that the survey reads, for analysis elsewhere with `--root`.
//!
//! There is no list of files: the survey runs once with an access log, so that the copy has every file that it needs and no
//! other. [`redact`] removes secrets from each file.

mod captured_tree;
mod copy;
mod lines;
mod redact;
mod redact_oracle;
mod redact_postgresql;
mod redact_process;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use clap::Args;
use hugepage_kernel::host::identity;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::{Notes, Root};
use hugepage_server::kernel_facts;
use tempfile::TempDir;

use crate::commands::size::sizing::host_sizing;
use crate::commands::survey::{AccountOptions, SurveyOptions};
use crate::exit::{self, Exit};
use crate::output::stream::say;
use crate::privileges::{self, Needs};
use crate::signals::Interrupt;
use crate::state::DIRECTORY;
use crate::supervisor;
use captured_tree::Omitted;

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct CaptureOptions {
    /// Directory to create; it must not exist, or be empty
    dir: PathBuf,
}

impl CaptureOptions {
    /// What the command needs: it creates the directory under another name, in the same parent directory.
    pub fn needs(&self) -> Needs {
        std::path::absolute(&self.dir).map_or_else(|_| Needs::default(), |dir| Needs::default().file(&dir))
    }
}

/// Runs the command.
#[expect(clippy::disallowed_methods, reason = "the captured tree")]
pub fn run(root: &Root, options: &CaptureOptions) -> anyhow::Result<Exit> {
    let dir = std::path::absolute(&options.dir)?;
    if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty", dir.display());
    }
    let interrupt = Interrupt::catch().context("could not catch signals")?;
    let (recording, log) = root.recording();
    read_everything(&recording);
    supervisor::begin_reading();
    let parent = dir.parent().unwrap_or(Path::new("/"));
    // Removed when it goes out of scope, so that no incomplete capture remains after an error.
    let private = Permissions::from_mode(0o700);
    let create = || tempfile::Builder::new().prefix(".hugepage-sidecar-").permissions(private).tempdir_in(parent);
    let new = privileges::write(create).map(|new| Incomplete(Some(new)));
    let new = new.with_context(|| format!("could not create a directory in {}", parent.display()))?;

    let omitted = captured_tree::write(root, &log, new.path(), readme, &interrupt).context("nothing was captured")?;
    supervisor::end_reading();
    // Write all files to the disk before the directory gets its name.
    rustix::fs::syncfs(File::open(new.path())?).context("nothing was captured")?;
    privileges::write(|| fs::rename(new.path(), &dir))
        .with_context(|| format!("could not create {}", dir.display()))?;
    report(&dir, &omitted);
    Ok(exit::OK)
}

/// A directory that is removed, by a thread that may do so, unless it was renamed.
struct Incomplete(Option<TempDir>);

impl Incomplete {
    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        let directory = self.0.take();
        let _ = privileges::write(|| directory.map_or(Ok(()), TempDir::close));
    }
}

/// Reads everything that this program can read of a host, to fill the access log.
fn read_everything(root: &Root) {
    let mut notes = Notes::default();
    // The percentage does not change what is read.
    host_sizing(
        root,
        &SurveyOptions { reserve_percent: 20, state_dir: DIRECTORY.into(), accounts: AccountOptions::default() },
        Some(&[]),
        None,
    );
    kernel_facts::facts(root, &mut notes);
    notes.keep(identity::host_name(root));
    notes.keep(identity::boot_id(root));
    for parameter in ["kernel.osrelease", "kernel.shmmax", "kernel.shmall", "kernel.shmmni"] {
        notes.keep(sysctl::running(root, parameter));
    }
    let _ = root.read("/etc/os-release");
}

fn readme(omitted: &Omitted) -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now());
    let who = if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user, who cannot read all files" };
    let mut text = format!(
        "Captured by hugepage-sidecar {} at {time} as {who}.\n\
         Analyse it with: hugepage-sidecar --root DIR status\n\n\
         The file \"refused\" lists what could not be read, with error numbers, and \"changed\" when files of servers had \
         changed, in seconds since 1970.\n",
        env!("CARGO_PKG_VERSION")
    );
    if !omitted.unknown.is_empty() {
        text += "Read by the survey, and omitted because they may contain secrets:\n";
        text.extend(omitted.unknown.iter().map(|path| format!("    {}\n", path.escape_debug())));
    }
    text
}

fn report(dir: &Path, omitted: &Omitted) {
    say!("{} is a capture of this host. Analyse it with --root.", dir.display());
    if !omitted.unknown.is_empty() {
        say!("{} files were omitted because they may contain secrets; README lists them.", omitted.unknown.len());
    }
    if !omitted.refused.is_empty() {
        say!("{} files could not be read. Run this as root to include them.", omitted.refused.len());
    }
}
