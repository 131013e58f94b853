//! What tells one instance from all others of a host, whatever they call themselves.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The key of an instance, the same whether it runs or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceKey {
    /// `postgresql`, or the kind of an Oracle instance.
    pub kind: String,
    /// The user of its processes; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// In a container: device and inode of its data directory or home, `8.1-1234`, as the host has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The data directory, or the SID.
    pub name: String,
    /// ORACLE_HOME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.container {
            Some(container) => write!(f, " in {container}"),
            None => Ok(()),
        }
    }
}
