//! For whom `apply --recommended` adds pages. Who is to get some for the first time root is asked about: whoever runs a server, or
//! configures one, chooses the number.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, bail};
use hugepage_assess::assessment::Sizing;
use hugepage_kernel::{Pages, Root};

use crate::atomic_file;
use crate::commands::size::sizing::HostSizing;
use crate::output::escape;
use crate::output::stream::say;
use crate::supervisor;

/// The users for whose servers pages were added before, a uid a line, in the directory of this program's state.
const FILE: &str = "apply-owners";

/// A server that lacks pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackingServer {
    name: String,
    pages: Pages,
    /// The uid of its user, `26`, or `26 in a container`; `unknown` if nothing tells it.
    owner: String,
}

/// The servers for which the pool grows.
pub fn lacking(root: &Root, host: &HostSizing, sizing: &Sizing) -> Vec<LackingServer> {
    let running = |name: &str| {
        let instance = host.survey.instances.iter().find(|instance| instance.id.name == name)?;
        let uid = instance.id.place.uid?;
        Some(instance.id.place.container.as_ref().map_or_else(|| uid.to_string(), |_| format!("{uid} in a container")))
    };
    let stopped = |name: &str| {
        let home = host.survey.stopped.iter().find(|stopped| stopped.name == name);
        let path = home.map_or_else(|| name.to_owned(), |stopped| format!("{}/bin/oracle", stopped.home));
        root.owner(&path).map(|uid| uid.to_string())
    };
    let lacking = sizing.needs.iter().filter(|need| need.pages > need.held).map(|need| LackingServer {
        name: need.name.clone(),
        pages: need.pages.saturating_sub(need.held),
        owner: if need.is_running { running(&need.name) } else { stopped(&need.name) }
            .unwrap_or_else(|| "unknown".to_owned()),
    });
    lacking.collect()
}

/// Says who gets how many pages, and asks about users that never got some. The error is that nobody agreed. `yes`: no question.
pub fn confirm(servers: &[LackingServer], directory: &Path, yes: bool, dry_run: bool) -> anyhow::Result<()> {
    for server in servers {
        let name = escape::line(&server.name);
        say!("{} pages are missing for {name} (user {}).", server.pages, server.owner);
    }
    let known = known(directory);
    let new: BTreeSet<_> =
        servers.iter().map(|server| &*server.owner).filter(|owner| !known.contains(*owner)).collect();
    let new = new.into_iter().collect::<Vec<_>>().join(", ");
    if new.is_empty() || yes {
        return Ok(());
    }
    let whose = format!("no pages were added before for the servers of user {new}");
    if dry_run {
        say!("Root would be asked: {whose}.");
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("{whose}; check the list, and add --yes");
    }
    let mut terminal = io::stderr();
    write!(terminal, "{whose}. Add them? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    // People need their time.
    supervisor::end_reading();
    io::stdin().read_line(&mut answer)?;
    supervisor::begin_reading();
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was changed");
    }
    Ok(())
}

/// Keeps the users of these servers, who are not asked about again.
pub fn remember(servers: &[LackingServer], directory: &Path) -> anyhow::Result<()> {
    let before = known(directory);
    let owners: BTreeSet<_> = before.iter().cloned().chain(servers.iter().map(|server| server.owner.clone())).collect();
    if owners == before {
        return Ok(());
    }
    let path = directory.join(FILE);
    let text: String = owners.into_iter().map(|owner| owner + "\n").collect();
    atomic_file::write(&path, text.as_bytes(), 0o600).with_context(|| format!("could not write {}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "this program's own directory")]
fn known(directory: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ask_once_about_each_user() {
        let directory = tempfile::tempdir().unwrap();
        let server = |owner: &str| LackingServer { name: "a".to_owned(), pages: Pages(70), owner: owner.to_owned() };
        let (first, both) = ([server("26")], [server("26"), server("26 in a container")]);
        let confirm = |servers: &[LackingServer], yes| confirm(servers, directory.path(), yes, false);
        // Tests have no terminal.
        let refused = confirm(&first, false).unwrap_err().to_string();
        assert!(refused.contains("user 26;") && refused.contains("--yes"), "{refused}");
        confirm(&first, true).unwrap();
        assert!(confirm(&first, false).is_err(), "what was not done is not remembered");
        remember(&first, directory.path()).unwrap();
        confirm(&first, false).unwrap();
        assert!(confirm(&both, false).unwrap_err().to_string().contains("user 26 in a container;"));
        remember(&both, directory.path()).unwrap();
        confirm(&both, false).unwrap();
        confirm(&[], false).unwrap();
    }
}
