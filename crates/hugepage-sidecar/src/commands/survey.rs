//! The survey of a host, which most commands begin with.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use hugepage_host::{AskStart, Snapshot, Survey};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_sizing::Sizing;

use crate::capture_file;
use crate::history::HostHistory;
use crate::host_options::within;

/// Options of every survey.
#[derive(Clone, Debug, Args)]
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
        let is_number = |name: &&String| name.parse::<u32>().is_ok();
        let Some(first) = self.service_account.iter().find(|name| !is_number(name)) else { return Ok(()) };
        let known = accounts::accounts(root).with_context(|| format!("could not look for the user {first}"))?;
        let is_known = |name: &&String| is_number(name) || known.iter().any(|account| account.name == **name);
        match self.service_account.iter().find(|name| !is_known(name)) {
            Some(name) => bail!("/etc/passwd has no user \"{name}\" of --service-account: give the uid"),
            None => Ok(()),
        }
    }
}

/// Options of a command that shows a host.
#[derive(Clone, Debug, Args)]
pub struct ShowOptions {
    #[command(flatten)]
    pub survey: SurveyOptions,
    /// Show the host of FILE, which `capture` wrote, as it was then
    #[arg(long, value_name = "FILE", conflicts_with_all = ["root", "state_dir", "service_account"])]
    pub snapshot: Option<PathBuf>,
}

impl ShowOptions {
    /// The host that the command shows: this one, or that of a file. `ask`: about changed files. `read`: what else it reads.
    pub fn survey(
        &self,
        root: &Root,
        ask: Option<&AskStart<'_>>,
        read: impl FnOnce(&mut Snapshot),
    ) -> anyhow::Result<Survey> {
        let snapshot = match &self.snapshot {
            Some(file) if root.is_tree() => bail!("\"{}\" is a host by itself: leave out --root", file.display()),
            Some(file) => capture_file::read(file)?,
            None => {
                let mut snapshot = snapshot(root, &self.survey, ask)?;
                read(&mut snapshot);
                snapshot
            }
        };
        Ok(snapshot.assess(self.survey.reserve_percent))
    }

    /// The host, with the recommended pools for running instances and for the Oracle instances that are stopped.
    pub fn survey_with_sizings(&self, root: &Root) -> anyhow::Result<(Survey, Vec<Sizing>)> {
        let survey = self.survey(root, None, |_| ())?;
        let sizings = survey.sizings();
        Ok((survey, sizings))
    }
}

/// Reads the host, with what the histories of its instances recorded at their start. `ask`: whom it asks what changed files come to.
pub fn snapshot(root: &Root, options: &SurveyOptions, ask: Option<&AskStart<'_>>) -> anyhow::Result<Snapshot> {
    options.accounts.check(root)?;
    let mut snapshot = Snapshot::read(root, &options.accounts.service_account, ask);
    let history = HostHistory::open(root, &options.state_dir);
    snapshot.recall(&|server, current, notes| history.recall(server, current, notes));
    Ok(snapshot)
}
