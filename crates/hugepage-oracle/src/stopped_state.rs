//! How severe it is that an Oracle instance does not run.

use std::fmt;

use hugepage_assess::assessment::{Outlook, Severity};
use serde::{Deserialize, Serialize};

/// Why an instance does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedState {
    /// Stopped, or never started.
    Stopped,
    /// The last start in the alert log ended with an error about memory.
    Failed,
}

impl StoppedState {
    /// All states.
    pub const ALL: [Self; 2] = [Self::Stopped, Self::Failed];
}

impl fmt::Display for StoppedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `outlook`: what its next start would get; `None` if it asks for no huge pages or its need is unknown. An instance
/// that nobody starts at boot is often a line that was left in oratab, so it is no warning.
pub fn severity(state: StoppedState, starts_at_boot: bool, outlook: Option<Outlook>) -> Severity {
    match (state, outlook) {
        (StoppedState::Failed, _) => Severity::Critical,
        (_, Some(Outlook::Mixed | Outlook::Base | Outlook::Fails)) if starts_at_boot => Severity::Warning,
        _ => Severity::Notice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities() {
        use StoppedState::{Failed, Stopped};
        for (state, starts_at_boot, outlook, expected) in [
            (Failed, false, Some(Outlook::Hugetlb), "failed critical"),
            (Stopped, true, Some(Outlook::Base), "stopped warning"),
            (Stopped, false, Some(Outlook::Base), "stopped notice"),
            (Stopped, true, Some(Outlook::Hugetlb), "stopped notice"),
            (Stopped, true, None, "stopped notice"),
        ] {
            assert_eq!(format!("{state} {}", severity(state, starts_at_boot, outlook)), expected);
        }
    }
}
