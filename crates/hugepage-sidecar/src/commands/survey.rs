//! The survey of a host, which most commands begin with.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use hugepage_assess::assessment::Sizing;
use hugepage_host::{AskStart, InspectedHost, Survey};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;

use crate::history::HostHistory;
use crate::host_options::within;

/// Options of every survey.
#[derive(Clone, Debug, Args)]
pub struct SurveyOptions {
    /// Keep this much of the host's memory for base pages, in percent
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

/// Surveys the host, with what the histories of its instances recorded at their start. `ask`: whom it asks what changed files
/// come to.
pub fn survey_with_history(root: &Root, options: &SurveyOptions, ask: Option<&AskStart<'_>>) -> Survey {
    let host = InspectedHost::inspect(root, options.reserve_percent, &options.accounts.service_account, ask);
    let history = HostHistory::open(root, &options.state_dir);
    host.assess(&|server, current, notes| history.recall(server, current, notes))
}

/// Surveys the host, with the recommended pools for running instances and for the Oracle instances that are stopped.
pub fn survey_with_sizings(root: &Root, options: &SurveyOptions) -> (Survey, Vec<Sizing>) {
    let survey = survey_with_history(root, options, None);
    let sizings = survey.sizings(&survey.stopped_needs(), options.reserve_percent);
    (survey, sizings)
}
