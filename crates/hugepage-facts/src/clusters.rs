//! PostgreSQL clusters that do not run, and servers that were seen before.

use std::time::SystemTime;

use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::{Configured, InstanceKey, StartAnswer};

/// What was read of a cluster that does not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterFacts {
    /// Its data directory.
    pub name: String,
    /// The word in its start.conf: `auto`, `manual`, `disabled` (pg_ctlcluster(1)).
    pub start: Option<String>,
    /// What is there.
    pub found: ClusterFound,
}

/// What is in a data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClusterFound {
    /// Something that no service account owns, so it was not read.
    OfNobody,
    /// Something that could not be read; the reason.
    Unread(String),
    /// A cluster.
    Cluster(Box<ClusterFiles>),
}

/// What the files of a cluster say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterFiles {
    /// The settings of its files, and those of the command line of its last start.
    pub configured: Configured,
    /// An option of Debian's pg_ctl.conf that hands others to the server.
    pub pg_ctl_option: Option<String>,
    /// Why a file beside the configuration could not be read.
    pub unread: Option<String>,
    /// What a program said of the next start; `None` if nobody asks one.
    pub answer: Option<StartAnswer<Bytes>>,
    /// What its worker recorded last, if nothing has changed since and no program answers.
    pub by_worker: Option<Remembered>,
}

/// A server that was seen here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remembered {
    /// Which it is, and whose.
    pub key: InstanceKey,
    /// The size of the pages that it asked for; `None` for the host's default.
    pub page_size: Option<PageSize>,
    /// How many it needed; `None` if that was unknown.
    pub pages_needed: Option<Pages>,
    /// When it was last seen.
    pub last_seen: SystemTime,
    /// The boot in which it was recorded last.
    pub boot_id: Option<String>,
    /// Whether its directory was found removed, or root has said that it is gone.
    pub is_gone: bool,
}
