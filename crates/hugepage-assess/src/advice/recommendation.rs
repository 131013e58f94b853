//! A recommendation: the setting, its value, the reason, the command, when it takes effect, and what it saves.

use std::fmt;

use hugepage_kernel::Bytes;

use crate::assessment::Severity;

/// Where the setting belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The server's configuration.
    Postgresql,
    /// A parameter of the running kernel.
    Kernel,
    /// A setting for the boot.
    Boot,
    /// A control group.
    Cgroup,
    /// Oracle's parameters.
    Oracle,
    /// Limits of the server's owner (limits.conf(5)).
    Limits,
    /// The pool of a NUMA node.
    Node,
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
            Self::Node => "node",
        })
    }
}

/// When it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Immediately.
    Now,
    /// At the next start of the server.
    ServerRestart,
    /// At the next boot.
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
    /// How grave the present value is.
    pub severity: Severity,
    /// Where the setting belongs.
    pub area: Area,
    /// The name of the finding whose hint has this as a step; `None` for what no finding leads to.
    pub finding: Option<&'static str>,
    /// The name of the setting, as in the file or command that sets it.
    pub setting: String,
    /// The value now; `None` if unknown.
    pub current: Option<String>,
    /// The value to set; `None` if the host cannot hold any sufficient value.
    pub recommended: Option<String>,
    /// The reason, one sentence with this host's numbers.
    pub reason: String,
    /// The complete command.
    pub command: Option<String>,
    /// When it takes effect.
    pub takes_effect: Effect,
    /// Memory that it frees.
    pub saves: Option<Bytes>,
}

impl Recommendation {
    /// For a setting of PostgreSQL, which takes effect when the server starts again.
    pub fn of_server(
        severity: Severity,
        setting: &str,
        current: String,
        recommended: Option<String>,
        reason: String,
        saves: Option<Bytes>,
    ) -> Self {
        Self {
            severity,
            area: Area::Postgresql,
            finding: None,
            setting: setting.to_owned(),
            current: Some(current),
            command: recommended.as_ref().map(|value| format!("ALTER SYSTEM SET {setting} = '{value}';")),
            recommended,
            reason,
            takes_effect: Effect::ServerRestart,
            saves,
        }
    }
}

/// A size as PostgreSQL accepts it: in MB if it is a multiple of 1 MB, else in kB.
pub fn setting(size: Bytes) -> String {
    match size.0 {
        n if n.is_multiple_of(1 << 20) => format!("{}MB", n >> 20),
        n => format!("{}kB", n >> 10),
    }
}
