//! The host's own accounts: passwd(5), group(5) and the first number of people's accounts (login.defs(5)). Accounts that
//! only a directory service knows are not here: this program asks none.

use serde::{Deserialize, Serialize};

use crate::{ReadError, Root, if_there};

/// The first uid of people's accounts where login.defs says nothing (useradd(8)).
const UID_MIN: u32 = 1000;

/// One line of /etc/passwd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The name of the account.
    pub name: String,
    /// The user ID; several accounts may have the same.
    pub uid: u32,
    /// The gid of its own group.
    pub gid: u32,
}

/// Every account of /etc/passwd; none if there is no such file.
pub fn accounts(root: &Root) -> Result<Vec<Account>, ReadError> {
    let text = if_there(root.read("/etc/passwd"))?.unwrap_or_default();
    Ok(text.lines().filter_map(account).collect())
}

fn account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    Some(Account {
        name: fields.next()?.to_owned(),
        uid: fields.nth(1)?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
    })
}

/// The gids of the groups that the user `uid` is in, by /etc/passwd and /etc/group.
pub fn groups(root: &Root, uid: u32) -> Result<Vec<u32>, ReadError> {
    let accounts: Vec<_> = accounts(root)?
        .into_iter()
        .filter(|account| account.uid == uid)
        .collect();
    let is_name = |name: &str| accounts.iter().any(|account| account.name == name);
    let with_one = |line: &str| {
        let mut fields = line.split(':');
        let gid = fields.nth(2)?.parse().ok()?;
        fields.next()?.split(',').any(is_name).then_some(gid)
    };
    let text = if_there(root.read("/etc/group"))?.unwrap_or_default();
    let others = text.lines().filter_map(with_one);
    let own = accounts.iter().map(|account| account.gid);
    Ok(own.chain(others).collect())
}

/// Whether the user `uid` is in the group `gid`; `None` if /etc/group is missing, or a directory service may put it there.
pub fn is_member(root: &Root, uid: u32, gid: u32) -> Option<bool> {
    if groups(root, uid).ok()?.contains(&gid) {
        return Some(true);
    }
    let text = if_there(root.read("/etc/nsswitch.conf"))
        .ok()?
        .unwrap_or_default();
    let sources = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("group:"));
    let is_service = |source: &str| match source {
        "sss" => root.exists("/etc/sssd/sssd.conf"),
        source => {
            !matches!(source, "files" | "compat" | "systemd" | "altfiles")
                && !source.starts_with('[')
        }
    };
    let is_all_here = !sources
        .flat_map(str::split_ascii_whitespace)
        .any(is_service);
    (is_all_here && root.exists("/etc/group")).then_some(false)
}

/// `UID_MIN`: accounts below it are the system's.
pub fn first_uid_of_people(root: &Root) -> Result<u32, ReadError> {
    let text = if_there(root.read("/etc/login.defs"))?.unwrap_or_default();
    let value = |line: &str| {
        line.trim_start()
            .strip_prefix("UID_MIN")?
            .trim()
            .parse()
            .ok()
    };
    Ok(text.lines().rev().find_map(value).unwrap_or(UID_MIN))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_etc_says() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        assert_eq!(
            (
                accounts(&root).unwrap(),
                first_uid_of_people(&root).unwrap()
            ),
            (vec![], 1000)
        );
        fs::create_dir(tree.path().join("etc")).unwrap();
        let write =
            |name: &str, text: &str| fs::write(tree.path().join("etc").join(name), text).unwrap();
        write(
            "passwd",
            "root:x:0:0::/root:/bin/sh\npostgres:x:26:27:PostgreSQL:/:/bin/sh\n+@netgroup\nbad:x:y:z::\n",
        );
        write(
            "group",
            "root:x:0:\ndba:x:500:oracle,postgres\nssl-cert:x:103:postgres\nother:x:5:x\n",
        );
        write(
            "login.defs",
            "# UID_MIN 5\nUID_MIN\t\t\t  500\nSYS_UID_MIN 100\n",
        );
        let names: Vec<_> = accounts(&root)
            .unwrap()
            .into_iter()
            .map(|account| account.name)
            .collect();
        assert_eq!(names, ["root", "postgres"]);
        assert_eq!(groups(&root, 26).unwrap(), [27, 500, 103]);
        assert_eq!(groups(&root, 1000).unwrap(), [0; 0]);
        for (sources, known) in [
            ("files sss systemd", Some(false)),
            ("files [SUCCESS=merge] sss", Some(false)),
            ("files ldap", None),
            ("winbind files", None),
        ] {
            write(
                "nsswitch.conf",
                &format!("passwd: ldap\ngroup: {sources}\n"),
            );
            assert_eq!(
                (is_member(&root, 26, 500), is_member(&root, 26, 5)),
                (Some(true), known),
                "{sources}"
            );
        }
        fs::create_dir(tree.path().join("etc/sssd")).unwrap();
        write("sssd/sssd.conf", "");
        write("nsswitch.conf", "group: files sss\n");
        assert_eq!(is_member(&root, 26, 5), None);
        fs::remove_file(tree.path().join("etc/nsswitch.conf")).unwrap();
        assert_eq!(is_member(&root, 26, 5), Some(false));
        fs::remove_file(tree.path().join("etc/group")).unwrap();
        assert_eq!(
            (is_member(&root, 26, 27), is_member(&root, 26, 5)),
            (Some(true), None)
        );
        assert_eq!(first_uid_of_people(&root).unwrap(), 500);
    }
}
