//! Which program is started: one that nobody but root, or this user, can change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::{namespace, process};
use rustix::fs::StatVfsMountFlags;
use rustix::process::geteuid;

use super::packaged;

/// Write permission of the group and of others (inode(7)).
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The names of a server's program.
const NAMES: [&str; 4] = ["postgres", "postmaster", "edb-postgres", "edb-postmaster"];

/// The path without links of `program`, if it may be run: it is root's in directories of root, or this user's own; and only its
/// owner can replace it or a directory above it.
pub fn check_program(program: &Path) -> Result<PathBuf, String> {
    if !program.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known)) {
        return Err(format!("{} is not run: its name is not postgres", program.display()));
    }
    check_file(program)
}

/// The program of the running server `pid`, if it may be run, and if a start of it by anybody would come to
/// the same as that of the server: with the same files, and without what its environment puts in their place.
pub fn check_running(pid: i32) -> Result<PathBuf, String> {
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
    let program = check_program(Path::new(&link("exe")?))?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    match identity(&program) {
        Some(found) if identity(&PathBuf::from(format!("/proc/{pid}/exe"))) == Some(found) => Ok(program),
        _ => Err(format!("{} is not the program that it runs", program.display())),
    }
}

/// A package's program of version `major`, if it may be run.
pub fn check_installed(major: u32) -> Result<PathBuf, String> {
    let program = packaged(major).find(|path| path.is_file());
    check_program(&program.ok_or_else(|| format!("no postgres program of version {major} was found"))?)
}

/// The same for any name: that of a program beside a server's.
pub fn check_file(program: &Path) -> Result<PathBuf, String> {
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
        if owner != 0 && (is_roots || owner != geteuid().as_raw()) {
            return Err(refused(format!("{} belongs to {}", path.display(), user(owner))));
        }
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(refused(format!("the group of {} or others can write to it", path.display())));
        }
    }
    // Users mount so whatever they may mount, where a file is root's by number alone; and layers of containers are in these.
    let flags = rustix::fs::statvfs(&real).map_err(|error| refused(error.to_string()))?.f_flag;
    if flags.contains(StatVfsMountFlags::NOSUID) || ["/var", "/run"].iter().any(|data| real.starts_with(data)) {
        return Err(refused("its file system is mounted without setuid, or it is below /var or /run".to_owned()));
    }
    Ok(real)
}

/// The name of the user `uid`, or `uid 1000` where /etc/passwd has none.
pub fn user(uid: u32) -> String {
    let accounts = accounts::accounts(&Root::live()).unwrap_or_default().into_iter();
    let mut names = accounts.filter(|account| account.uid == uid).map(|account| account.name);
    names.next().unwrap_or_else(|| format!("uid {uid}"))
}

/// What changes with the content of a file that only root can change.
pub fn stamp(path: &Path) -> String {
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())).ok();
    format!("{} {found:?}", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn run_programs_that_only_root_can_replace() {
        let sh = fs::canonicalize("/bin/sh").unwrap();
        assert!(check_program(&sh).unwrap_err().contains("name"));
        // Below /tmp, which every user can write to.
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("postgres");
        fs::copy(&sh, &program).unwrap();
        assert!(check_program(&program).unwrap_err().contains("can write"));
        // A link does not help, and neither does a name of another kind of file.
        symlink("/usr/bin", directory.path().join("postmaster")).unwrap();
        assert!(check_program(&directory.path().join("postmaster")).unwrap_err().contains("regular"));
        assert!(check_program(&directory.path().join("none/postgres")).is_err());
    }
}
