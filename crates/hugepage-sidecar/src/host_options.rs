//! Options of every command that reads a host.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Options of every command that surveys a host, in front of the command or behind it.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// Read the host whose root directory is mounted at DIR, instead of /proc, /sys and /etc
    #[arg(long, value_name = "DIR", value_parser = host_root, global = true)]
    pub root: Option<PathBuf>,
    /// Give up reading the host after TIME; the answer is then unknown, and `watch` goes on without what does not respond
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, global = true)]
    pub timeout: Duration,
}

/// A time with its unit, from 100 ms to 1 day.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if (Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&time) => Ok(time),
        Ok(_) => Err("give a time from 100ms to 1d".to_owned()),
        Err(_) if text.parse::<f64>().is_ok() => Err(format!("give a unit: {text}s, {text}min or {text}h")),
        Err(_) => Err("give a time with its unit, such as 30s, 5min or 1h".to_owned()),
    }
}

/// A whole number of a range.
pub fn within<N: TryFrom<u64>, const MIN: u64, const MAX: u64>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| format!("give a whole number from {MIN} to {MAX}"))
}

/// A directory that looks like a host's root.
#[expect(clippy::disallowed_methods, reason = "the directory of --root")]
fn host_root(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    if directory.join("proc").is_dir() { Ok(directory) } else { Err("not a host's root: no proc directory".to_owned()) }
}
