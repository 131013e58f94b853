//! Whether a server would recover after a crash of one of its processes.

use serde::{Deserialize, Serialize};

/// A standby whose primary has raised its settings goes on until its next start or crash (`CheckRequiredParameterValues`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashRecovery {
    /// Nothing that is known prevents it.
    #[default]
    Possible,
    /// The server's error text.
    Refused(String),
    /// The reason why it is unknown.
    Unknown(String),
}

impl CrashRecovery {
    /// The error as a part of a sentence.
    pub fn error(&self) -> Option<String> {
        let Self::Refused(text) = self else { return None };
        let text = text.strip_prefix("FATAL:  ").unwrap_or(text);
        Some(text.replace("\nDETAIL:  ", ": ").trim_end_matches('.').to_owned())
    }
}
