//! One thing to set: what, to what, why, by which command, when it counts, and what it saves.

use std::fmt;

use crate::Bytes;
use crate::assess::Severity;

/// Whose setting it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The server's configuration.
    Postgresql,
    /// A parameter of the running kernel.
    Kernel,
    /// What is done at boot.
    Boot,
    /// A control group.
    Cgroup,
    /// Oracle's parameters.
    Oracle,
    /// Limits of the server's owner (limits.conf(5)).
    Limits,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgresql => "postgresql",
            Self::Kernel => "kernel",
            Self::Boot => "boot",
            Self::Cgroup => "cgroup",
            Self::Oracle => "oracle",
            Self::Limits => "limits",
        })
    }
}

/// When it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    Now,
    /// When the server starts again.
    ServerRestart,
    /// When the machine boots again.
    Reboot,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "now",
            Self::ServerRestart => "server restart",
            Self::Reboot => "reboot",
        })
    }
}

/// One recommendation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// How grave it is that it is not so yet.
    pub severity: Severity,
    /// Whose setting it is.
    pub area: Area,
    /// Its name, as in the file or command that sets it.
    pub setting: String,
    /// Its value now; `None` if unknown.
    pub current: Option<String>,
    /// What to set; `None` where no value that the host can hold would do.
    pub recommended: Option<String>,
    /// Why, one sentence with this host's numbers.
    pub reason: String,
    /// The command, as it stands.
    pub command: Option<String>,
    /// When it counts.
    pub takes_effect: Effect,
    /// Memory that it gives back.
    pub saves: Option<Bytes>,
}

/// `ALTER SYSTEM SET name = 'value'`.
pub fn alter_system(name: &str, value: &str) -> String {
    format!("ALTER SYSTEM SET {name} = '{value}';")
}

/// A size as PostgreSQL takes it: in MB if that divides it, else in kB.
pub fn setting(size: Bytes) -> String {
    match size.0 {
        n if n.is_multiple_of(1 << 20) => format!("{}MB", n >> 20),
        n => format!("{}kB", n >> 10),
    }
}
