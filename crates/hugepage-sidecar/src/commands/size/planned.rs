//! `size --shared-buffers`: the pages of a PostgreSQL server that is only planned, as the server's own program counts them.

use anyhow::{Context, bail};
use clap::Args;
use hugepage_facts::StartAnswer;
use hugepage_host::readers::{self, owner};
use hugepage_kernel::host::accounts;
use hugepage_kernel::memory::pool;
use hugepage_kernel::postgresql::size_setting;
use hugepage_kernel::{Bytes, PageSize, Pages, Root};
use serde::Serialize;

use super::SizeFormat;
use crate::commands::survey::within;
use crate::exit::Exit;
use crate::output::table::print_wrapped;
use crate::output::{json, say};
use crate::server_program::check_installed;
use crate::server_program::empty_cluster::EmptyCluster;

/// What is known of the server.
#[derive(Debug, Args)]
pub struct PlannedOptions {
    /// Show the pages of a PostgreSQL server that is only planned, with this shared_buffers, such as 8GB
    #[arg(long, value_name = "SIZE", requires = "major", value_parser = shared_buffers)]
    #[arg(conflicts_with_all = ["postgresql_data", "running_only", "sessions", "root", "snapshot"])]
    #[arg(required_if_eq("format", "kubernetes"))]
    shared_buffers: Option<String>,
    /// Number of its max_connections
    #[arg(
        long,
        value_name = "N",
        requires = "shared_buffers",
        default_value_t = 100
    )]
    #[arg(value_parser = within::<u32, 1, 262_143>)]
    max_connections: u32,
    /// Its major version, 15 or later, whose program is installed here
    #[arg(long, value_name = "N", requires = "shared_buffers", value_parser = within::<u32, 15, 99>)]
    major: Option<u32>,
}

/// The output; sizes are in bytes.
#[derive(Debug, Serialize)]
struct PlannedServer<'a> {
    major: u32,
    shared_buffers: &'a str,
    max_connections: u32,
    shared_memory: Bytes,
    /// For each size of huge page that this host has.
    pages: Vec<PlannedPages>,
}

#[derive(Debug, Serialize)]
struct PlannedPages {
    page_size: PageSize,
    pages_needed: Pages,
}

impl PlannedOptions {
    /// Shows what the planned server needs; `None` if none is planned.
    pub fn run(&self, root: &Root, format: SizeFormat) -> Option<anyhow::Result<Exit>> {
        let server = self.server(root, self.shared_buffers.as_deref()?, self.major?);
        Some(server.and_then(|server| show(&server, format)))
    }

    fn server<'a>(
        &self,
        root: &Root,
        shared_buffers: &'a str,
        major: u32,
    ) -> anyhow::Result<PlannedServer<'a>> {
        let of_new_cluster = 16;
        let max_connections = self.max_connections;
        let connections = max_connections.to_string();
        let settings = [
            ("shared_buffers", shared_buffers),
            ("max_connections", &*connections),
        ];
        let ask = || {
            let cluster = EmptyCluster::new(&check_installed(major)?, major, of_new_cluster)?;
            Ok::<_, String>(cluster.shared_memory(settings.into_iter()))
        };
        // Its user has processes that are trusted with servers; those of nobody are anybody's.
        let postgres = accounts::accounts(root)?
            .into_iter()
            .find(|account| account.name == "postgres");
        let postgres = postgres.context("there is no user postgres, as whom its program runs")?;
        let answer = readers::run_as(&owner::of_account(root, postgres.uid), ask)
            .map_err(|unread| unread.to_string())
            .flatten();
        let shared_memory = match answer.unwrap_or_else(StartAnswer::Unknown) {
            StartAnswer::Starts(size) => size,
            StartAnswer::Refuses(error) => {
                bail!("a server of version {major} would not start: {error}")
            }
            StartAnswer::Unknown(why) => {
                bail!("the need of a server of version {major} is unknown: {why}")
            }
        };
        let of_size = |size: PageSize| PlannedPages {
            page_size: size,
            pages_needed: size.pages_to_hold(shared_memory),
        };
        Ok(PlannedServer {
            major,
            shared_buffers,
            max_connections,
            shared_memory,
            pages: pool::sizes(root)?.into_iter().map(of_size).collect(),
        })
    }
}

fn show(server: &PlannedServer<'_>, format: SizeFormat) -> anyhow::Result<Exit> {
    let PlannedServer {
        major,
        shared_buffers,
        max_connections,
        shared_memory,
        pages,
    } = server;
    match format {
        SizeFormat::Table => {}
        SizeFormat::Json => {
            json(server)?;
            return Ok(Exit::Ok);
        }
        SizeFormat::Kubernetes => {
            limits_of_pod(server)?;
            return Ok(Exit::Ok);
        }
    }
    let needs = format!(
        "A server of version {major} with shared_buffers = {shared_buffers}, max_connections = {max_connections} and \
         the defaults of other settings needs {shared_memory}:"
    );
    print_wrapped(&needs, 0, 2);
    for PlannedPages {
        page_size,
        pages_needed,
    } in pages
    {
        say!("  {pages_needed} pages of {page_size}");
    }
    Ok(Exit::Ok)
}

/// What each session may take besides shared memory: its caches and page tables, and a work_mem of 4 MB.
const SESSION: Bytes = Bytes(12 << 20);
/// What all else takes: three autovacuum workers with a maintenance_work_mem of 64 MB, the other processes, and files that are being read.
const PROCESSES: Bytes = Bytes(512 << 20);

/// The lines of a container in a manifest: `hugepages-2Mi: 8446Mi`. Nodes have pools of pages of a megabyte or more.
fn limits_of_pod(server: &PlannedServer<'_>) -> anyhow::Result<()> {
    let needed = server
        .pages
        .iter()
        .filter(|one| one.page_size.bytes() >= Bytes(1 << 20))
        .min_by_key(|one| one.page_size)
        .context(
            "the sizes of huge pages are unknown: this kernel has none of a megabyte or more",
        )?;
    let sessions = Bytes(SESSION.0.saturating_mul(server.max_connections.into()));
    say!("resources:\n  limits:");
    say!(
        "    {}: {}",
        needed.page_size.kubernetes_resource(),
        needed
            .page_size
            .times(needed.pages_needed)
            .kubernetes_quantity()
    );
    say!(
        "    memory: {}  # {SESSION} for each connection, and {PROCESSES}; more if queries take work_mem more than once",
        sessions.saturating_add(PROCESSES).kubernetes_quantity()
    );
    Ok(())
}

/// The text of a size as PostgreSQL writes it.
fn shared_buffers(text: &str) -> Result<String, String> {
    size_setting(text, 8 << 10)
        .map(|_| text.to_owned())
        .ok_or_else(|| "it is no size, such as 8GB".to_owned())
}
