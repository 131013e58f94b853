//! What of a cluster may decide on a program that root starts: its data directory, its configuration, and the program.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::{namespace, process};
use rustix::fs::{Gid, Uid};

/// Write permission of the group and of others (inode(7)).
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The names of a server's program.
const NAMES: [&str; 4] = ["postgres", "postmaster", "edb-postgres", "edb-postmaster"];

/// The user that owns nothing (systemd's users-groups-and-ids).
const NOBODY: u32 = 65534;

/// The account that a program is run as. Never root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramAccount {
    pub uid: Uid,
    /// The primary group of /etc/passwd. The data directory's group proves nothing: it may be root's.
    pub gid: Gid,
}

impl ProgramAccount {
    /// The account with this user ID. The error is the reason why it may run nothing.
    pub fn of_user(uid: u32) -> Result<Self, String> {
        let accounts = accounts::accounts(&Root::live()).map_err(|error| error.to_string())?;
        Self::find(uid, &accounts)
    }

    /// The account for a program that serves no cluster: this user's own, and nobody's if this is root.
    pub fn without_privileges() -> Result<Self, String> {
        let me = Self { uid: rustix::process::geteuid(), gid: rustix::process::getegid() };
        if me.uid.is_root() { Self::of_user(NOBODY) } else { Ok(me) }
    }

    fn find(uid: u32, accounts: &[accounts::Account]) -> Result<Self, String> {
        let Some(found) = accounts.iter().find(|account| account.uid == uid) else {
            return Err(format!("its owner, user {uid}, is not in /etc/passwd"));
        };
        let gid = found.gid;
        match (uid, gid) {
            (0, _) => Err("its owner is root".to_owned()),
            (_, 0) => Err(format!("the group of its owner, user {uid}, is root's")),
            // (uid_t) -1 means "unchanged" to the kernel (setresuid(2)).
            (u32::MAX, _) | (_, u32::MAX) => Err(format!("user {uid} is not valid")),
            _ => Ok(Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) }),
        }
    }

    /// Whether a file belongs to this account or to root.
    fn trusts(self, metadata: &Metadata) -> bool {
        metadata.uid() == 0 || metadata.uid() == self.uid.as_raw()
    }
}

/// The account of the data directory `data`. PostgreSQL starts on no directory that its group or others can write to
/// (checkDataDir in miscinit.c), and neither does this.
pub fn owner_of(data: &Path) -> Result<ProgramAccount, String> {
    let metadata = fs::metadata(data).map_err(|error| error.to_string())?;
    if !metadata.is_dir() {
        return Err("it is not a directory".to_owned());
    }
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err("its group or others can write to its data directory".to_owned());
    }
    ProgramAccount::of_user(metadata.uid())
}

/// Refuses a configuration file that is not the account's own or root's: otherwise, a user could name the data directory of
/// another one in it, and run a library as that user.
pub fn check_configuration(config: &Path, account: ProgramAccount) -> Result<(), String> {
    let real = fs::canonicalize(config).map_err(|error| format!("{}: {error}", config.display()))?;
    // The link, if it is one, was placed by whoever owns its directory.
    for path in [Some(real.as_path()), real.parent(), config.parent()].into_iter().flatten() {
        let metadata = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !account.trusts(&metadata) {
            let (owner, account) = (metadata.uid(), account.uid.as_raw());
            return Err(format!(
                "{} belongs to user {owner}, and the data directory to user {account}",
                path.display()
            ));
        }
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(format!("its group or others can write to {}", path.display()));
        }
        if metadata.is_file() && metadata.nlink() > 1 {
            return Err(format!("{} has several names", path.display()));
        }
    }
    Ok(())
}

/// The path without links of `program`, if root may run it as `account`: it is root's in directories of root, or the
/// account's own; and only its owner can replace it or a directory above it.
pub fn check_program(program: &Path, account: ProgramAccount) -> Result<PathBuf, String> {
    if !program.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known)) {
        return Err(format!("{} is not run: its name is not postgres", program.display()));
    }
    check_file(program, account)
}

/// The program of the running server `pid`, if root may run it as `account`, and if a start of it by anybody would come to
/// the same as that of the server: with the same files, and without what its environment puts in their place.
pub fn check_running(pid: i32, account: ProgramAccount) -> Result<PathBuf, String> {
    const OTHER_FILES: [&str; 4] = ["LOCPATH", "TZDIR", "NLSPATH", "GCONV_PATH"];
    let root = Root::live();
    if namespace::container(&root, pid).is_some() {
        return Err("it runs in a mount namespace of its own".to_owned());
    }
    let link = |name: &str| match process::link(&root, pid, name) {
        Ok(Some(path)) => Ok(path),
        Ok(None) => Err("it is ending".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    if link("root")? != "/" {
        return Err("it has a root directory of its own".to_owned());
    }
    let environment = root.read(&format!("/proc/{pid}/environ")).map_err(|error| error.to_string())?;
    let names = environment.split('\0').filter_map(|variable| Some(variable.split_once('=')?.0));
    if let Some(name) = names.into_iter().find(|name| name.starts_with("LD_") || OTHER_FILES.contains(name)) {
        return Err(format!("its environment has {name}"));
    }
    let program = check_program(Path::new(&link("exe")?), account)?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    match identity(&program) {
        Some(found) if identity(&PathBuf::from(format!("/proc/{pid}/exe"))) == Some(found) => Ok(program),
        _ => Err(format!("{} is not the program that it runs", program.display())),
    }
}

/// The same for any name: that of a program beside a server's.
pub fn check_file(program: &Path, account: ProgramAccount) -> Result<PathBuf, String> {
    let refused = |why: String| format!("{} is not run: {why}", program.display());
    let real = fs::canonicalize(program).map_err(|error| refused(error.to_string()))?;
    let metadata = fs::metadata(&real).map_err(|error| refused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let is_roots = metadata.uid() == 0;
    for path in real.ancestors() {
        let metadata = fs::metadata(path).map_err(|error| refused(error.to_string()))?;
        let owner = metadata.uid();
        if owner != 0 && (is_roots || owner != account.uid.as_raw()) {
            return Err(refused(format!("{} belongs to user {owner}", path.display())));
        }
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(refused(format!("the group of {} or others can write to it", path.display())));
        }
    }
    Ok(real)
}

/// What changes with the content of a file that only root can change.
pub fn stamp(path: &Path) -> String {
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())).ok();
    format!("{} {found:?}", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn nobody() -> ProgramAccount {
        ProgramAccount { uid: Uid::from_raw(NOBODY), gid: Gid::from_raw(NOBODY) }
    }

    #[test]
    fn take_the_group_from_passwd() {
        let passwd = [("root", 0, 0), ("postgres", 26, 27), ("ops", 500, 0)]
            .map(|(name, uid, gid)| accounts::Account { name: name.to_owned(), uid, gid });
        let found = ProgramAccount::find(26, &passwd).unwrap();
        assert_eq!((found.uid.as_raw(), found.gid.as_raw()), (26, 27));
        for (uid, why) in [(0, "root"), (500, "root's"), (77, "/etc/passwd")] {
            assert!(ProgramAccount::find(uid, &passwd).unwrap_err().contains(why), "{uid}");
        }
    }

    #[test]
    fn run_programs_that_only_root_can_replace() {
        let me = ProgramAccount { uid: rustix::process::geteuid(), gid: rustix::process::getegid() };
        let sh = fs::canonicalize("/bin/sh").unwrap();
        assert!(check_program(&sh, me).unwrap_err().contains("name"));
        // Below /tmp, which every user can write to.
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("postgres");
        fs::copy(&sh, &program).unwrap();
        assert!(check_program(&program, me).unwrap_err().contains("can write"));
        // A link does not help, and neither does a name of another kind of file.
        symlink("/usr/bin", directory.path().join("postmaster")).unwrap();
        assert!(check_program(&directory.path().join("postmaster"), me).unwrap_err().contains("regular"));
        assert!(check_program(&directory.path().join("none/postgres"), me).is_err());
    }

    #[test]
    fn refuse_a_configuration_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("postgresql.conf");
        fs::write(&config, "").unwrap();
        fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).unwrap();
        check_configuration(&config, nobody()).unwrap();
        chown(&config, Some(NOBODY), None).unwrap();
        check_configuration(&config, nobody()).unwrap();
        fs::hard_link(&config, directory.path().join("other")).unwrap();
        assert!(check_configuration(&config, nobody()).unwrap_err().contains("several names"));
        fs::remove_file(directory.path().join("other")).unwrap();
        fs::set_permissions(&config, fs::Permissions::from_mode(0o664)).unwrap();
        assert!(check_configuration(&config, nobody()).unwrap_err().contains("can write"));
        fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).unwrap();
        chown(directory.path(), Some(77), None).unwrap();
        assert!(check_configuration(&config, nobody()).unwrap_err().contains("belongs to user 77"));
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        chown(&data, Some(NOBODY), Some(0)).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(owner_of(&data).unwrap_err().contains("can write"));
        fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).unwrap();
        assert_ne!(owner_of(&data).unwrap().gid.as_raw(), 0);
    }
}
