//! How a cluster manager stops and starts a server.

/// The commands that stop and start a server, to be typed as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommands {
    /// The command that stops it.
    pub stop: String,
    /// The command that starts it.
    pub start: String,
}
