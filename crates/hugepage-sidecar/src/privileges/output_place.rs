//! Where output is written: only below directories that no other user can replace, for example by a link to another
//! directory. Root may also write to a directory of the user who has become root by sudo(8), and of an account of the
//! system, such as that of Prometheus, but not of one that databases run as.

use std::io::ErrorKind;
use std::path::Path;

use hugepage_host::{is_usual_service_account, listed_service_accounts};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_server::safe_directory::other_writer;
use rustix::process::geteuid;

use crate::server_program::trust;

/// Why nothing is written below `directory`, or where it would be created; `None` if it is, or the command says why not.
pub fn refusal(directory: &Path) -> Option<String> {
    let path = std::path::absolute(directory).ok()?;
    let found = path.ancestors().find_map(|at| match other_writer(at, is_trusted) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => Some(found),
    });
    let (at, owner) = found?.ok()??;
    Some(refused(&at, owner))
}

/// That nothing is written below `at`, because of its owner or of those whom its mode lets write there.
pub fn refused(at: &Path, owner: Option<u32>) -> String {
    format!(
        "nothing is written below {}: {} could put something else in its place; use a directory of root's or of your own, and chmod go-w",
        at.display(),
        owner.map_or("a group or any user".to_owned(), trust::user)
    )
}

fn is_trusted(uid: u32) -> bool {
    let me = geteuid();
    let caller = || std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).filter(|_| me.is_root());
    uid == 0 || uid == me.as_raw() || caller() == Some(uid) || is_system(uid)
}

fn is_system(uid: u32) -> bool {
    let root = Root::live();
    let of_people = accounts::first_uid_of_people(&root).unwrap_or(1);
    let named = accounts::accounts(&root).unwrap_or_default();
    let listed = listed_service_accounts(&root).unwrap_or_default();
    let is_listed = |who: &str| listed.iter().any(|name| name == who);
    let is_of_servers = |name: &str| is_usual_service_account(name) || is_listed(name);
    let mut named = named.iter().filter(|account| account.uid == uid).peekable();
    let is_one = uid < of_people && named.peek().is_some() && !is_listed(&uid.to_string());
    is_one && !named.any(|account| is_of_servers(&account.name))
}
