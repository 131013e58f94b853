//! The host's own accounts: passwd(5), group(5) and the first number of people's accounts (login.defs(5)). Accounts that
//! only a directory service knows are not here: this program asks none.

use crate::source::root::if_there;
use crate::{ReadError, Root};

/// The first uid of people's accounts where login.defs says nothing (useradd(8)).
const UID_MIN: u32 = 1000;

/// One line of /etc/passwd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name of the account.
    pub name: String,
    /// The user ID; several accounts may have the same.
    pub uid: u32,
    /// The gid of its own group.
    pub gid: u32,
}

/// Every account of /etc/passwd; none where there is no such file.
pub fn accounts(root: &Root) -> Result<Vec<Account>, ReadError> {
    let text = if_there(root.read("/etc/passwd"))?.unwrap_or_default();
    Ok(text.lines().filter_map(account).collect())
}

fn account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Account { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()? })
}

/// The gids of the groups that the user `uid` is in, by /etc/passwd and /etc/group.
pub fn groups(root: &Root, uid: u32) -> Result<Vec<u32>, ReadError> {
    let accounts: Vec<_> = accounts(root)?.into_iter().filter(|account| account.uid == uid).collect();
    let text = if_there(root.read("/etc/group"))?.unwrap_or_default();
    let member_of = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let (gid, members) = (fields.next()?.parse().ok()?, fields.next()?);
        members.split(',').any(|member| accounts.iter().any(|account| account.name == member)).then_some(gid)
    };
    Ok(accounts.iter().map(|account| account.gid).chain(text.lines().filter_map(member_of)).collect())
}

/// `UID_MIN`: accounts below it are the system's.
pub fn first_uid_of_people(root: &Root) -> Result<u32, ReadError> {
    let text = if_there(root.read("/etc/login.defs"))?.unwrap_or_default();
    let value = |line: &str| line.trim_start().strip_prefix("UID_MIN")?.trim().parse().ok();
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
        assert_eq!((accounts(&root).unwrap(), first_uid_of_people(&root).unwrap()), (vec![], 1000));
        fs::create_dir(tree.path().join("etc")).unwrap();
        let write = |name: &str, text| fs::write(tree.path().join("etc").join(name), text).unwrap();
        write("passwd", "root:x:0:0::/root:/bin/sh\npostgres:x:26:27:PostgreSQL:/:/bin/sh\n+@netgroup\nbad:x:y:z::\n");
        write("group", "root:x:0:\ndba:x:500:oracle,postgres\nssl-cert:x:103:postgres\nother:x:5:x\n");
        write("login.defs", "# UID_MIN 5\nUID_MIN\t\t\t  500\nSYS_UID_MIN 100\n");
        let names: Vec<_> = accounts(&root).unwrap().into_iter().map(|account| account.name).collect();
        assert_eq!(names, ["root", "postgres"]);
        assert_eq!(groups(&root, 26).unwrap(), [27, 500, 103]);
        assert_eq!(groups(&root, 1000).unwrap(), [0; 0]);
        assert_eq!(first_uid_of_people(&root).unwrap(), 500);
    }
}
