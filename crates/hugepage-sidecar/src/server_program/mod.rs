//! The program `postgres`, asked for the size of its shared memory: which one is trusted, and what it may do.
//!
//! Only a program is started that only root, or this user, can change. Who starts it gains nothing by one of its own.

pub mod asked_starts;
pub mod child;
pub mod empty_cluster;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::{namespace, process};
use hugepage_server::safe_directory::other_writer;
use rustix::process::geteuid;

/// Timeout of `postgres -C`, which usually takes hundredths of a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Where Debian's and Red Hat's packages have the server of a major version.
fn packaged(major: u32) -> impl Iterator<Item = PathBuf> {
    let paths = ["/usr/lib/postgresql/{}/bin/postgres", "/usr/pgsql-{}/bin/postgres"];
    paths.into_iter().map(move |path| PathBuf::from(path.replace("{}", &major.to_string())))
}

/// The program of the running server `pid`, if it may be run, and if a start of it by anybody would come to
/// the same as that of the server: with the same files, and without what its environment puts in their place.
fn check_running(pid: i32) -> Result<PathBuf, String> {
    const OTHER_FILES: [&str; 4] = ["LOCPATH", "TZDIR", "NLSPATH", "GCONV_PATH"];
    let root = Root::live();
    if namespace::container(&root, pid).is_some() {
        return Err("it runs in a mount namespace, or a root directory, of its own".to_owned());
    }
    let environment = root.read(&format!("/proc/{pid}/environ")).map_err(|error| error.to_string())?;
    let names = environment.split('\0').filter_map(|variable| Some(variable.split_once('=')?.0));
    if let Some(name) = names.into_iter().find(|name| name.starts_with("LD_") || OTHER_FILES.contains(name)) {
        return Err(format!("its environment has {name}"));
    }
    let link = process::link(&root, pid, "exe").map_err(|error| error.to_string())?;
    let program = check(Path::new(&link.ok_or("it is ending")?))?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    match identity(&program) {
        Some(found) if identity(&PathBuf::from(format!("/proc/{pid}/exe"))) == Some(found) => Ok(program),
        _ => Err(format!("{} is not the program that it runs", program.display())),
    }
}

/// A package's program of version `major`, if it may be run.
pub fn check_installed(major: u32) -> Result<PathBuf, String> {
    let program = packaged(major).find(|path| path.is_file());
    check(&program.ok_or_else(|| format!("no postgres program of version {major} was found"))?)
}

/// The path without links of `program`, if only root or this user can put something else in its place.
fn check(program: &Path) -> Result<PathBuf, String> {
    let refused = |why: String| format!("{} is not run: {why}", program.display());
    let writer = other_writer(program, |uid| uid == 0 || uid == geteuid().as_raw());
    match writer.map_err(|error| refused(error.to_string()))? {
        Some((at, Some(owner))) => Err(refused(format!("{} belongs to {}", at.display(), user(owner)))),
        Some((at, None)) => Err(refused(format!("the group of {} or others can write to it", at.display()))),
        None => fs::canonicalize(program).map_err(|error| refused(error.to_string())),
    }
}

/// The name of the user `uid`, or `uid 1000` where /etc/passwd has none.
pub fn user(uid: u32) -> String {
    let accounts = accounts::accounts(&Root::live()).unwrap_or_default().into_iter();
    let mut names = accounts.filter(|account| account.uid == uid).map(|account| account.name);
    names.next().unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn run_programs_that_no_other_user_can_replace() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("postgres");
        fs::copy("/bin/sh", &program).unwrap();
        assert_eq!(check(&program), Ok(program.canonicalize().unwrap()));
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check(&program).unwrap_err().contains("can write"));
        assert!(check(&directory.path().join("none/postgres")).is_err());
    }
}
