//! /etc/security/limits.conf and limits.d: the limits of sessions that PAM opens (limits.conf(5)).

use super::accounts::Account;
use crate::proc::rlimit::Rlimit;
use crate::source::root::if_there;
use crate::{Bytes, ReadError, Root};

const FILE: &str = "/etc/security/limits.conf";
const DIRECTORY: &str = "/etc/security/limits.d";

/// The soft limit on locked memory of new sessions of `account`; `Ok(None)` if no line names the account. Lines for groups and
/// for everybody do not count here: PAM gives the account's own line precedence.
pub fn memlock(root: &Root, account: &Account) -> Result<Option<Rlimit>, ReadError> {
    let mut files = if_there(root.list(DIRECTORY))?.unwrap_or_default();
    files.retain(|file| file.ends_with(".conf"));
    files.sort_unstable();
    let paths = std::iter::once(FILE.to_owned()).chain(files.iter().map(|file| format!("{DIRECTORY}/{file}")));
    let mut found = None;
    for path in paths {
        let text = if_there(root.read(&path))?.unwrap_or_default();
        found = text.lines().rev().find_map(|line| limit(line, &account.name)).or(found);
    }
    Ok(found)
}

/// The limit of a line such as `oracle soft memlock 134217728`, which is in kB.
fn limit(line: &str, name: &str) -> Option<Rlimit> {
    let mut words = line.split('#').next()?.split_ascii_whitespace();
    let (domain, kind, item, value) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if domain != name || item != "memlock" || !matches!(kind, "soft" | "-") {
        return None;
    }
    match value {
        "unlimited" | "infinity" | "-1" => Some(Rlimit::Unlimited),
        value => Some(Rlimit::At(Bytes(value.parse::<u64>().ok()?.saturating_mul(1024)))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_last_line_of_the_account_counts() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let oracle = Account { name: "oracle".to_owned(), uid: 54321, gid: 54321 };
        assert_eq!(memlock(&root, &oracle).unwrap(), None);
        fs::create_dir_all(tree.path().join("etc/security/limits.d")).unwrap();
        let write = |name: &str, text: &str| fs::write(tree.path().join("etc/security").join(name), text).unwrap();
        write("limits.conf", "* - memlock 1\noracle soft memlock 64 # kB\noracle hard memlock unlimited\n");
        assert_eq!(memlock(&root, &oracle).unwrap(), Some(Rlimit::At(Bytes(64 << 10))));
        write("limits.d/90-oracle.conf", "@dba - memlock 5\noracle  -  memlock  unlimited\noracle soft nofile 3\n");
        write("limits.d/readme", "oracle - memlock 7\n");
        assert_eq!(memlock(&root, &oracle).unwrap(), Some(Rlimit::Unlimited));
    }
}
