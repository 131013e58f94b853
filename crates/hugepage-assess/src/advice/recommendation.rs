//! A recommendation: the setting, its value, the reason, the command, when it takes effect, and what it saves.

use hugepage_kernel::Bytes;
use serde::Serialize;

use crate::assessment::Severity;

hugepage_facts::words! {
    /// Where the setting belongs.
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
    }
}

hugepage_facts::words! {
    /// When it takes effect.
    pub enum Effect {
        /// Immediately.
        Now,
        /// At the next start of the server.
        #[serde(rename = "server restart")]
        ServerRestart,
        /// At the next boot.
        Reboot,
    }
}

/// One recommendation, with the names that JSON has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// How grave the present value is.
    pub severity: Severity,
    /// Where the setting belongs.
    pub area: Area,
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
    pub saving: Option<Bytes>,
    /// The name of the finding whose hint has this as a step; `None` for what no finding leads to.
    pub finding: Option<&'static str>,
}

impl Recommendation {
    /// Without values and a command, and taking effect now.
    pub fn new(
        severity: Severity,
        area: Area,
        setting: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            area,
            setting: setting.into(),
            current: None,
            recommended: None,
            reason: reason.into(),
            command: None,
            takes_effect: Effect::Now,
            saving: None,
            finding: None,
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
