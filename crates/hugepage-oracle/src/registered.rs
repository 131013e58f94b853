//! Whether Grid Infrastructure manages an Oracle instance, as far as files and its control group show it.

use hugepage_kernel::InstanceFiles;
use hugepage_kernel::notes::Notes;

use crate::clusterware::{Clusterware, GridResource};
use crate::readers::grid::GridInfrastructure;
use crate::readers::locate::{database_of, is_numbered};
use crate::readers::{OracleInstance, OracleKind, Parameters};

/// What is known of an instance.
pub struct Registered<'a> {
    pub instance: &'a OracleInstance,
    /// The parameters of its start, then those on disk.
    pub parameters: &'a [&'a Parameters],
    /// The path of its alert log.
    pub log: Option<&'a str>,
    pub version: Option<&'a str>,
    /// Whether Grid Infrastructure started it, or wrote its line of oratab.
    pub by_agent: &'a dyn Fn() -> bool,
}

impl Registered<'_> {
    /// `None` without Grid Infrastructure. A cluster manages every instance with CLUSTER_DATABASE, or with the number of an
    /// instance behind the name of its database. Other databases are managed only if an agent's work is seen.
    pub fn clusterware(&self, files: &InstanceFiles, notes: &mut Notes) -> Option<Clusterware> {
        let grid = GridInfrastructure::read(files, notes)?;
        let is_cluster = grid.is_cluster.unwrap_or_else(|| self.has_cluster_database());
        let resource = match self.instance.kind {
            OracleKind::Database => self.database(is_cluster),
            OracleKind::Asm => is_cluster.then_some(GridResource::Stack),
            OracleKind::ManagementDatabase => Some(GridResource::ManagementDatabase),
            OracleKind::AsmProxy | OracleKind::IoServer => None,
        };
        let has_short_options = self.version.is_some_and(|version| version.starts_with("11."));
        Some(Clusterware { is_cluster, resource, has_short_options })
    }

    fn database(&self, is_cluster: bool) -> Option<GridResource> {
        let name = names(self.parameters, self.log).into_iter().next().filter(|name| is_name(name))?;
        let sid = &self.instance.sid;
        let (of_sid, of_name) = (sid.to_ascii_lowercase(), name.to_ascii_lowercase());
        // Of RAC One Node one instance runs, on any of the nodes.
        if is_cluster && is_numbered(&of_sid, &of_name) && of_sid[of_name.len()..].starts_with('_') {
            return Some(GridResource::Database { name });
        }
        if is_cluster && (self.has_cluster_database() || is_numbered(&of_sid, &of_name)) {
            return Some(GridResource::Instance { database: name, sid: sid.clone() });
        }
        (self.by_agent)().then_some(GridResource::Database { name })
    }

    fn has_cluster_database(&self) -> bool {
        self.parameters.iter().find_map(|parameters| parameters.flag("cluster_database")) == Some(true)
    }
}

/// Whether it is a name that a command can have: letters, digits, `_`, `$` and `#`.
fn is_name(text: &str) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#');
    !text.is_empty() && text.len() <= 30 && text.bytes().all(in_name)
}

/// The names of a database: DB_UNIQUE_NAME and DB_NAME, which is its default, by each of `known`; then by the path of its
/// alert log, in lower case.
pub fn names(known: &[&Parameters], log: Option<&str>) -> Vec<String> {
    let of =
        |parameters: &&Parameters| ["db_unique_name", "db_name"].map(|name| parameters.get(name).map(str::to_owned));
    known.iter().flat_map(of).chain([log.and_then(database_of).map(str::to_owned)]).flatten().collect()
}
