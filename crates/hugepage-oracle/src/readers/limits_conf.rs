//! /etc/security/limits.conf and limits.d: the limits of sessions that PAM opens (limits.conf(5)).

use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::{Bytes, Root};

const FILE: &str = "/etc/security/limits.conf";
const DIRECTORY: &str = "/etc/security/limits.d";

/// The soft memlock of new sessions of `account`, as pam_limits finds it; `Ok(None)` if no line sets it. The error is a clause.
pub fn memlock(root: &Root, account: &Account) -> Result<Option<Rlimit>, String> {
    let mut files = if_there(root.list(DIRECTORY)).map_err(|error| error.to_string())?.unwrap_or_default();
    files.retain(|file| file.ends_with(".conf"));
    files.sort_unstable();
    let paths = std::iter::once(FILE.to_owned()).chain(files.iter().map(|file| format!("{DIRECTORY}/{file}")));
    // Soft and hard, each with the rank of its line: the account's own, one of its groups, that for everybody.
    let mut found = [(u8::MAX, Ok(None)), (u8::MAX, Ok(None))];
    for path in paths {
        let text = if_there(root.read(&path)).map_err(|error| error.to_string())?.unwrap_or_default();
        for (domain, kind, limit) in text.lines().filter_map(limit) {
            let is_for = match domain {
                "*" => Some(true),
                name if name == account.name => Some(true),
                numbers if numbers.contains(':') => None,
                group if group.starts_with('@') => accounts::is_in(root, account, &group[1..]),
                _ => Some(false),
            };
            let rank = u8::from(domain != account.name) + u8::from(domain == "*");
            let limit = match (is_for, limit) {
                (Some(false), _) => continue,
                (_, None) if domain == "*" => continue,
                (_, None) => {
                    return Err(format!("\"{domain} -\" in {path} may exempt {} from all limits", account.name));
                }
                (Some(true), limit) => Ok(limit),
                (None, _) => {
                    Err(format!("whether the memlock limit of {domain} in {path} is for {} is unknown", account.name))
                }
            };
            for (kinds, slot) in ["soft -", "hard -"].into_iter().zip(&mut found) {
                if kinds.split(' ').any(|one| one == kind) && slot.0 >= rank {
                    *slot = (rank, limit.clone());
                }
            }
        }
    }
    let [(_, soft), (_, hard)] = found;
    match (soft?, hard?) {
        (Some(_), None) => {
            Err(format!("{FILE} sets no hard memlock limit for {}, above which no soft one is", account.name))
        }
        (Some(Rlimit::At(soft)), Some(Rlimit::At(hard))) => Ok(Some(Rlimit::At(soft.min(hard)))),
        (Some(Rlimit::Unlimited), hard) => Ok(hard),
        (soft, _) => Ok(soft),
    }
}

/// Domain, type and limit of a line such as `oracle soft memlock 134217728`, which is in kB; `oracle -` has no limit.
fn limit(line: &str) -> Option<(&str, String, Option<Rlimit>)> {
    let mut words = line.split('#').next()?.split_ascii_whitespace();
    let (domain, kind) = (words.next()?, words.next()?.to_ascii_lowercase());
    let (item, value) = (words.next().map(str::to_ascii_lowercase), words.next().map(str::to_ascii_lowercase));
    let limit = match value.as_deref() {
        None => return (item.is_none() && kind == "-").then_some((domain, kind, None)),
        Some("unlimited" | "infinity" | "-1" | "-") => Rlimit::Unlimited,
        // As strtoull(3) reads it.
        Some(value) => {
            let digits = value.split(|c: char| !c.is_ascii_digit()).next()?;
            Rlimit::At(Bytes(digits.parse::<u64>().ok()?.saturating_mul(1024)))
        }
    };
    (item? == "memlock").then_some((domain, kind, Some(limit)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a directory of the test")]

    use std::fs;

    use super::*;

    /// What `lines` give to oracle, whose own group is oinstall and which dba has.
    fn of(lines: &str) -> Result<Option<Rlimit>, String> {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("etc/security")).unwrap();
        let write = |path: &str, text: &str| fs::write(tree.path().join("etc").join(path), text).unwrap();
        write("passwd", "oracle:x:54321:54321::/:/bin/sh\n");
        write("group", "oinstall:x:54321:\ndba:x:54322:oracle\nother:x:1:\n");
        write("nsswitch.conf", if lines.contains("@ldap") { "group: files ldap\n" } else { "" });
        write("security/limits.conf", lines);
        memlock(&Root::at(tree.path()), &Account { name: "oracle".to_owned(), uid: 54321, gid: 54321 })
    }

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
        write("limits.d/95-oracle.conf", "oracle - memlock -\n");
        write("limits.d/readme", "oracle - memlock 7\n");
        assert_eq!(memlock(&root, &oracle).unwrap(), Some(Rlimit::Unlimited));
    }

    #[test]
    fn lines_for_groups_and_everybody() {
        for (lines, kb) in [
            ("* soft memlock 5\n* hard memlock 7\n", Some(5)),
            ("* - memlock 9\n* soft memlock 5\n", Some(5)),
            ("* soft memlock unlimited\n* hard memlock 7\n", Some(7)),
            ("@oinstall - memlock 5\n* - memlock 6\n", Some(5)),
            ("@dba - memlock 5\n@other - memlock 6\n", Some(5)),
            ("oracle - memlock 4\n@dba - memlock 5\n* - memlock 6\n", Some(4)),
            // For maxlogins alone.
            ("%dba - memlock 5\n% - memlock 5\n", None),
            ("@other - memlock 6\ngrid - memlock 7\noracle hard memlock 8\n", None),
            ("* SOFT memlock Unlimited\n* Hard MEMLOCK 7\n", Some(7)),
            ("oracle - memlock 128g\n", Some(128)),
            ("grid -\n@other -\n* -\n* - memlock 5\n", Some(5)),
            // Nobody knows better than the account's own line.
            ("oracle - memlock 4\n@ldap - memlock 5\n500: - memlock 6\n", Some(4)),
        ] {
            assert_eq!(of(lines), Ok(kb.map(|kb| Rlimit::At(Bytes(kb << 10)))), "{lines}");
        }
        for lines in [
            "* - memlock 9\n@ldap - memlock 5\n",
            "500: - memlock 6\n",
            "@500:600 - memlock 6\n",
            "oracle soft memlock 4\n",
            "oracle -\n* - memlock unlimited\n",
            "@dba - # as it is\n* - memlock unlimited\n",
            "oracle - memlock unlimited\n@ldap -\n",
        ] {
            assert!(of(lines).is_err(), "{lines}");
        }
    }
}
