//! Options of every command that reads a host.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// The time that a survey has, many times what the largest host needs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of every command that surveys a host, in front of the command or behind it.
#[derive(Debug, Default, Args)]
pub struct HostOptions {
    /// Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc
    #[arg(long, value_name = "DIR", value_parser = host_root)]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// Options of every command that reads this host.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ReadingOptions {
    /// End with the answer unknown if reading the host takes longer; `watch` goes on without what does not answer [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Duration>,
}

impl ReadingOptions {
    /// These options, and those of `other` where these say nothing.
    pub fn or(self, other: Self) -> Self {
        Self { timeout: self.timeout.or(other.timeout) }
    }

    /// The time that a survey has.
    pub fn timeout(self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(timeout) if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&timeout) => Ok(timeout),
        Ok(_) => Err("the time must be between 1 s and 1 day".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A directory that looks like a host's root.
#[expect(clippy::disallowed_methods, reason = "the directory of --root")]
fn host_root(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    match directory.join("proc").is_dir() {
        true => Ok(directory),
        false => Err("not a host's root: no proc directory".to_owned()),
    }
}
