//! Words and commands for pages that are unevenly spread over NUMA nodes.

use std::path::Path;

use crate::advice::command;
use crate::assessment::placement::{Imbalance, NodeRow, Placement};

/// How the server is started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The systemd service of the server; `None` if it has none.
    pub service: Option<&'a str>,
    /// The directory of its programs.
    pub programs: &'a Path,
    /// The data directory.
    pub data: &'a Path,
}

/// What is uneven about a node, and the command that evens it; `None` for nothing, or where nothing is to be run.
pub fn notice(placement: &Placement, row: &NodeRow, start: Start<'_>) -> (Option<String>, Option<String>) {
    let (node, size) = (row.node, row.pool.page_size);
    match row.imbalance {
        None => (None, None),
        Some(Imbalance::Segment { here, known, even }) => {
            let text = format!(
                "Node {node} holds {here} of the {known} pages of {size} that shared memory has touched; an even share is \
                 {even}. Sessions on other nodes read them more slowly."
            );
            (Some(text), Some(interleave(&placement.usable(), start)))
        }
        Some(Imbalance::Pool { found, even, target }) => {
            let text = format!(
                "A start of the server would find {found} pages of {size} on node {node}; an even share of what it needs is \
                 {even}."
            );
            (Some(text), target.map(|pages| command::set_node_pool(node, size, pages)))
        }
    }
}

/// Restarts the server with its memory spread over `nodes` (numactl(8), systemd.exec(5)).
fn interleave(nodes: &[u32], start: Start<'_>) -> String {
    let nodes = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match start.service {
        Some(service) => {
            let settings = format!("NUMAPolicy=interleave\\nNUMAMask={nodes}");
            let restarted = command::quoted(service);
            format!("{} && systemctl restart {restarted}", command::drop_in(service, "numa", &settings))
        }
        None => {
            let quoted = |path: &Path| command::quoted(&path.to_string_lossy()).into_owned();
            let (program, data) = (quoted(&start.programs.join("pg_ctl")), quoted(start.data));
            format!("numactl --interleave={nodes} {program} restart -D {data}")
        }
    }
}
