//! The survey of a host, which most commands begin with: its options, and `capture`, the file of one.
//!
//! ```text
//! $ hugepage-sidecar capture
//! {
//!   "hugepage_sidecar": "1.0.0",
//!   "snapshot": {
//!     "host": {
//!       "host_name": "db01",
//! ...
//! ```

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;

use hugepage_facts::{Snapshot, UnreadList};
use hugepage_host::{AskStart, Survey, anonymous, decide, find_stopped, read, recall};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_sizing::Sizing;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::history::HostHistory;
use crate::history::remembered::remembered;
use crate::output::json;

/// The version that writes a file. Another one reads it as well: facts are only added.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// More bytes than a capture has, because another file in its place may have no end.
const MAX_BYTES: u64 = 16 << 20;

/// Options of every command that surveys a host, in front of the command or behind it.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc
    #[arg(long, value_name = "DIR", value_parser = host_root, global = true)]
    pub root: Option<PathBuf>,
    /// Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, global = true)]
    pub timeout: Duration,
}

/// Options of every survey.
#[derive(Debug, Args)]
pub struct SurveyOptions {
    /// Keep this much of the host's memory for 4 kB pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within::<u32, 0, 90>)]
    pub reserve_percent: u32,
    /// Directory where `watch` keeps the history of each instance
    #[arg(long, value_name = "DIR", default_value = crate::state::DIRECTORY)]
    pub state_dir: PathBuf,
    #[command(flatten)]
    pub accounts: AccountOptions,
}

/// The users whose instances count, in addition to system users and accounts with the usual names.
#[derive(Clone, Debug, Default, Args)]
pub struct AccountOptions {
    /// Count the instances of this user, too: a name or uid; see also /etc/hugepage-sidecar/service-accounts
    #[arg(long, value_name = "USER")]
    pub service_account: Vec<String>,
}

impl AccountOptions {
    /// An error for a name that no user of the host has; a uid need not have a name.
    pub fn check(&self, root: &Root) -> anyhow::Result<()> {
        let mut names = self
            .service_account
            .iter()
            .filter(|name| name.parse::<u32>().is_err())
            .peekable();
        let Some(first) = names.peek() else {
            return Ok(());
        };
        let known = accounts::accounts(root)
            .with_context(|| format!("could not look for the user {first}"))?;
        match names.find(|name| known.iter().all(|account| account.name != **name)) {
            Some(name) => {
                bail!("/etc/passwd has no user \"{name}\" of --service-account: give the uid")
            }
            None => Ok(()),
        }
    }
}

/// Options of a command that shows a host.
#[derive(Debug, Args)]
pub struct ShowOptions {
    #[command(flatten)]
    pub survey: SurveyOptions,
    /// Show the host of FILE, which `capture` wrote, as it was then
    #[arg(long, value_name = "FILE", conflicts_with_all = ["root", "state_dir", "service_account"])]
    pub snapshot: Option<PathBuf>,
}

impl ShowOptions {
    /// The host that the command shows: this one, or that of a file. `ask` and `stopped` as for [`snapshot`].
    pub fn survey(
        &self,
        root: &Root,
        ask: Option<&AskStart<'_>>,
        stopped: Option<&[PathBuf]>,
    ) -> anyhow::Result<Survey> {
        let snapshot = match &self.snapshot {
            Some(file) if root.is_tree() => bail!(
                "\"{}\" is a host by itself: leave out --root",
                file.display()
            ),
            Some(file) => captured(file)?,
            None => snapshot(root, &self.survey, ask, stopped)?,
        };
        Ok(decide(&snapshot, self.survey.reserve_percent))
    }

    /// The host, with the recommended pools for running instances and for the Oracle instances that are stopped.
    pub fn survey_with_sizings(&self, root: &Root) -> anyhow::Result<(Survey, Vec<Sizing>)> {
        let survey = self.survey(root, None, None)?;
        let sizings = survey.sizings();
        Ok((survey, sizings))
    }
}

/// Reads the host, with what the histories of its instances recorded at their start. `ask`: whom it asks what changed files come to.
/// `stopped`: whether it looks for servers that do not run: those in the directories of packages, in the given ones and where root says,
/// and those that the histories of `options` remember.
pub fn snapshot(
    root: &Root,
    options: &SurveyOptions,
    ask: Option<&AskStart<'_>>,
    stopped: Option<&[PathBuf]>,
) -> anyhow::Result<Snapshot> {
    options.accounts.check(root)?;
    let mut snapshot = read(root, &options.accounts.service_account, ask);
    let history = HostHistory::open(root, &options.state_dir);
    snapshot.host.next_boot.recall(history.boots());
    recall(&mut snapshot, &|server, notes| {
        history.recall(server, notes)
    });
    let Some(given) = stopped else {
        return Ok(snapshot);
    };
    let (seen, unread) = remembered(root, &options.state_dir);
    find_stopped(&mut snapshot, root, given, &seen, ask);
    let unread = unread.into_iter().map(|why| UnreadList {
        kind: "history".to_owned(),
        name: options.state_dir.display().to_string(),
        why,
    });
    snapshot.host.stopped_servers.unread_lists.extend(unread);
    Ok(snapshot)
}

/// Options of `capture`.
#[derive(Debug, Args)]
pub struct CaptureOptions {
    #[command(flatten)]
    survey: SurveyOptions,
    /// Give hosts, users, directories and SIDs other names, the same wherever they are the same
    #[arg(long)]
    anonymous: bool,
}

/// What `capture` prints.
#[derive(Serialize, Deserialize)]
struct Capture<S> {
    hugepage_sidecar: String,
    snapshot: S,
}

/// `capture`: what is read of this host, as JSON.
pub fn capture(root: &Root, options: &CaptureOptions) -> anyhow::Result<Exit> {
    let mut snapshot = snapshot(root, &options.survey, None, Some(&[]))?;
    if options.anonymous {
        snapshot = anonymous(&snapshot)?;
    }
    json(&Capture {
        hugepage_sidecar: VERSION.to_owned(),
        snapshot,
    })?;
    Ok(Exit::Ok)
}

/// The snapshot in a file that `capture` wrote.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that the command line names"
)]
fn captured(file: &Path) -> anyhow::Result<Snapshot> {
    let name = || format!("could not read \"{}\"", file.display());
    let mut text = Vec::new();
    // The other end of a pipe is not waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.with_context(name)?;
    let is_plain = opened.metadata().with_context(name)?.is_file();
    ensure!(is_plain, "{}: it is not a regular file", name());
    let length = opened
        .take(MAX_BYTES)
        .read_to_end(&mut text)
        .with_context(name)?;
    ensure!(
        (length as u64) < MAX_BYTES,
        "{}: it is longer than 16 MB",
        name()
    );
    let found: Capture<serde_json::Value> = serde_json::from_slice(&text)
        .context("it is no output of `hugepage-sidecar capture`")
        .with_context(name)?;
    let by = found.hugepage_sidecar;
    serde_json::from_value(found.snapshot)
        .with_context(|| format!("version {by} wrote it, and this is {VERSION}"))
        .with_context(name)
}

/// A time with its unit, from 100 ms to 1 day.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text)
        .ok()
        .filter(|time| (Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(time))
        .ok_or("give a time from 100ms to 1d with its unit, such as 30s, 5min or 1h")
}

/// A whole number of a range.
pub fn within<N: TryFrom<u64>, const MIN: u64, const MAX: u64>(text: &str) -> Result<N, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (MIN..=MAX).contains(number));
    number
        .and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| format!("give a whole number from {MIN} to {MAX}"))
}

/// A directory that looks like a host's root.
#[expect(clippy::disallowed_methods, reason = "the directory of --root")]
fn host_root(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    if directory.join("proc").is_dir() {
        Ok(directory)
    } else {
        Err("not a host's root: no proc directory".to_owned())
    }
}
