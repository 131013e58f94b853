//! The most that is read of each kind of file, in bytes.

/// `PG_VERSION`: a number.
pub const VERSION: u64 = 16;
/// /etc/hostname: a name of at most 64 bytes.
pub const HOST_NAME: u64 = 256;
/// `postmaster.opts`: a command line.
pub const POSTMASTER_OPTS: u64 = 64 << 10;
/// `postmaster.pid`: numbers and directories, a line each.
pub const POSTMASTER_PID: u64 = 8 << 10;
/// One file of a configuration, of PostgreSQL's or Oracle's.
pub const CONFIGURATION: u64 = 1 << 20;
/// All files of one configuration.
pub const CONFIGURATION_IN_ALL: u64 = 4 << 20;
/// The end of a history.
pub const HISTORY: u64 = 8 << 20;
/// The end of an alert log.
pub const ALERT_LOG: u64 = 64 << 20;
