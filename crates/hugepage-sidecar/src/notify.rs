//! What this service tells systemd (sd_notify(3)).

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The connection to systemd; without one, it tells nothing.
#[derive(Debug)]
pub struct Notify(Option<OsString>);

impl Notify {
    /// The connection that the environment names.
    pub fn from_environment() -> Self {
        Self(std::env::var_os("NOTIFY_SOCKET"))
    }

    /// Tells `state`, such as `READY=1`. Whether it arrives makes no difference to this program.
    pub fn tell(&self, state: &str) {
        let Some(name) = &self.0 else { return };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(name),
        };
        let send = |address| {
            let socket = UnixDatagram::unbound()?;
            // This process waits for nobody.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), &address)
        };
        let _ = address.and_then(send);
    }

    /// How often `WATCHDOG=1` has to be told, twice in the time after which systemd ends the service.
    pub fn watchdog(&self) -> Option<Duration> {
        let time = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
        self.0.is_some().then_some(Duration::from_micros(time) / 2)
    }
}
