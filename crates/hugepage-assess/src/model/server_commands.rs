//! How a server is stopped and started where a cluster manager does that.

/// The commands that stop and start a server, to be typed as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommands {
    /// The command that stops it.
    pub stop: String,
    /// The command that starts it.
    pub start: String,
}
