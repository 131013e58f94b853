//! The privileges that this program gives up at its start, most powers of root, and where and how it writes with what it keeps.
//!
//! The thread that reads the host has two capabilities. What a command needs besides is permitted, but in effect only in a
//! thread that writes one file, and ends, or in a reader until it has become another user.
//! It writes only below directories that no other user can replace, for example by a link to another directory. Root may also write
//! to a directory of the user who has become root by sudo(8), and of an account of the system, such as that of Prometheus, but
//! not of one that databases run as.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use hugepage_host::readers::limit_capabilities;
use hugepage_host::{is_usual_service_account, listed_service_accounts};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::{other_writer, others_may_write};
use rustix::fs::OFlags;
use rustix::process::{Resource, getegid, geteuid, getgid, getrlimit, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set, set_capabilities,
    set_thread_groups,
};

use crate::server_program;

/// The capabilities to look at other users' processes, and to end readers. None opens a file of another user.
const LOOKING: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::KILL);
/// What a reader needs to become the user whose files it reads; this process has it permitted and not in effect.
const BECOMING: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The prefix of temporary files: programs that read a whole directory ignore hidden files and unknown suffixes.
const TEMPORARY: &str = ".hugepage-sidecar";

/// What a command does besides looking.
#[derive(Debug, Default)]
pub struct Needs {
    /// Directories whose files it writes, and single files.
    places: Vec<PathBuf>,
    /// What else it does with capabilities.
    other: Option<CapabilitySet>,
    /// Why it does not write where the command line says; `None` if it does.
    refused: Option<String>,
}

impl Needs {
    /// Writes files in `directory`.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.places.push(directory.to_owned());
        self
    }

    /// Writes files in `directory`, which is created if it does not exist, unless strangers could put something else in its place.
    #[expect(
        clippy::disallowed_methods,
        reason = "a directory that the command line names"
    )]
    pub fn new_directory(self, directory: &Path) -> Self {
        let mut needs = self.unless_shared(directory);
        if needs.refused.is_none() {
            // The command says why it cannot be created.
            let _ = DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(directory);
            // Somebody may have made it first, and in a sticky one anybody could make a file that is not there yet.
            let is_shared = fs::metadata(directory).is_ok_and(|found| others_may_write(&found));
            let of_shared = || is_shared.then(|| refused(directory, None));
            needs.refused = refusal(directory).or_else(of_shared);
        }
        needs.directory(directory)
    }

    /// Replaces the file `path`, by another one in its directory, unless strangers could put something else in its place.
    pub fn file(self, path: &Path) -> Self {
        self.unless_shared(above(path)).directory(above(path))
    }

    /// The needs; an error if nothing is written where the command line says.
    pub fn checked(self) -> Result<Self, String> {
        self.refused.clone().map_or(Ok(self), Err)
    }

    fn unless_shared(mut self, directory: &Path) -> Self {
        self.refused = self.refused.or_else(|| refusal(directory));
        self
    }

    /// Gives files to other users and groups.
    pub fn owners(mut self) -> Self {
        self.other = Some(CapabilitySet::CHOWN);
        self
    }

    /// Collapses memory of servers.
    pub fn nice(mut self) -> Self {
        self.other = Some(CapabilitySet::SYS_NICE);
        self
    }

    /// The capabilities that it has permitted, and in effect where it writes.
    #[expect(
        clippy::disallowed_methods,
        reason = "the directories that the command line names"
    )]
    fn writing(&self) -> CapabilitySet {
        // An Oracle file that is another user's is read again.
        let mut needed = self.other.unwrap_or(CapabilitySet::empty());
        if !self.places.is_empty() {
            needed |= CapabilitySet::DAC_READ_SEARCH;
        }
        // A directory that root could not write to as its owner, such as one in the home of the user who calls sudo.
        if self
            .places
            .iter()
            .any(|place| fs::metadata(place).is_ok_and(|found| !is_writable(&found)))
        {
            needed |= CapabilitySet::DAC_OVERRIDE;
        }
        needed
    }
}

/// The directory of a file.
fn above(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Why nothing is written below `directory`, or where it would be created; `None` if it is, or the command says why not.
fn refusal(directory: &Path) -> Option<String> {
    let path = std::path::absolute(directory).ok()?;
    let found = path
        .ancestors()
        .find_map(|at| match other_writer(at, is_trusted) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found),
        });
    let (at, owner) = found?.ok()??;
    Some(refused(&at, owner))
}

/// That nothing is written below `at`, because of its owner or of those whom its mode lets write there.
fn refused(at: &Path, owner: Option<u32>) -> String {
    format!(
        "nothing is written below {}: {} could put something else in its place; use a directory of root's or of your own, and chmod go-w",
        at.display(),
        owner.map_or("a group or any user".to_owned(), server_program::user)
    )
}

fn is_trusted(uid: u32) -> bool {
    let me = geteuid();
    let caller = || {
        std::env::var("SUDO_UID")
            .ok()
            .and_then(|uid| uid.parse().ok())
            .filter(|_| me.is_root())
    };
    uid == 0 || uid == me.as_raw() || caller() == Some(uid) || is_system(uid)
}

fn is_system(uid: u32) -> bool {
    let root = Root::live();
    let of_people = accounts::first_uid_of_people(&root).unwrap_or(1);
    let named = accounts::accounts(&root).unwrap_or_default();
    let Ok(listed) = listed_service_accounts(&root) else {
        return false;
    };
    let is_listed = |who: &str| listed.iter().any(|name| name == who);
    let is_of_servers = |name: &str| is_usual_service_account(name) || is_listed(name);
    let mut named = named.iter().filter(|account| account.uid == uid).peekable();
    let is_one = uid < of_people && named.peek().is_some() && !is_listed(&uid.to_string());
    is_one && !named.any(|account| is_of_servers(&account.name))
}

/// Whether this user can write to a file without a capability, by the file's mode.
fn is_writable(found: &Metadata) -> bool {
    let shift = if found.uid() == geteuid().as_raw() {
        6
    } else if found.gid() == getegid().as_raw() {
        3
    } else {
        0
    };
    found.mode() >> shift & 0o2 != 0
}

/// What holds from [`confine`] on.
#[derive(Debug)]
struct Confinement {
    writing: CapabilitySet,
    /// Why nothing could be given up.
    note: Option<String>,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// Gives up what the file of this program gives to any user who runs it (capabilities(7)), but for looking. Nothing of it writes a file,
/// and a set-user-ID program would do for anybody what its owner may.
pub fn keep_those_of_caller() -> Result<(), String> {
    if (getuid(), getgid()) != (geteuid(), getegid()) {
        return Err("it does not run set-user-ID or set-group-ID: use sudo".to_owned());
    }
    if getuid().is_root() {
        return Ok(());
    }
    let is_callers = |one: &_| capability_is_in_ambient_set(*one).unwrap_or(false);
    let kept = CapabilitySet::all()
        .iter()
        .filter(is_callers)
        .collect::<CapabilitySet>()
        | LOOKING
        | BECOMING;
    limit_capabilities(kept, kept)
        .map_err(|error| format!("could not give up capabilities: {error}"))
}

/// An error if this process may not open the files that it needs at the same time: what it could not open would look absent.
pub fn check_limits() -> Result<(), String> {
    const MIN_FILES: u64 = 64;
    match getrlimit(Resource::Nofile).current {
        Some(files) if files < MIN_FILES => Err(format!(
            "the limit of open files is {files} (ulimit -n), and it needs {MIN_FILES}"
        )),
        _ => Ok(()),
    }
}

/// Gives up what is not needed. To be called once, before anything of a server is read and before there are other threads.
pub fn confine(needs: &Needs) {
    let writing = needs.writing();
    let limited = limit_capabilities(LOOKING, LOOKING | BECOMING | writing);
    let note = limited
        .err()
        .map(|error| format!("could not give up capabilities: {error}"));
    let _ = CONFINEMENT.set(Confinement { writing, note });
}

/// Why nothing could be given up; `None` if it was.
pub fn note() -> Option<&'static String> {
    CONFINEMENT.get()?.note.as_ref()
}

/// Whether [`as_owner`] can do its work for this user and group.
pub fn may_collapse_as(uid: u32, gid: u32) -> bool {
    let is_own = (geteuid().as_raw(), getegid().as_raw()) == (uid, gid);
    capabilities(None).is_ok_and(|sets| {
        sets.permitted.contains(CapabilitySet::SYS_NICE)
            && (is_own || sets.permitted.contains(BECOMING))
    })
}

/// Does `work` in a thread that passes for the owner of a server where the kernel asks who may look into a process, with CAP_SYS_NICE
/// alone. All its other ids stay this program's, so that the owner can't signal or limit it.
pub fn as_owner<T: Send>(uid: u32, gid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let become_owner = || {
        let sets = capabilities(None)?;
        let effective = sets.effective | (BECOMING & sets.permitted);
        set_capabilities(None, CapabilitySets { effective, ..sets })?;
        if sets.permitted.contains(CapabilitySet::SETGID) {
            set_thread_groups(&[])?;
        }
        set_file_system_ids(uid, gid)?;
        limit_capabilities(CapabilitySet::SYS_NICE, CapabilitySet::SYS_NICE)
    };
    in_thread(|| become_owner().map(|()| work()))
}

/// Does `work` in a thread of its own: capabilities belong to a thread, and end with it.
fn in_thread<T: Send, E: From<io::Error> + Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The ids with which files are opened and processes looked at (setfsuid(2)), of this thread alone.
fn set_file_system_ids(uid: u32, gid: u32) -> io::Result<()> {
    const UNCHANGED: u32 = u32::MAX;
    // SAFETY: no pointer. They return the id before, so a second call tells whether the first one did it.
    #[allow(unsafe_code)]
    let now = unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsuid, uid);
        [
            libc::syscall(libc::SYS_setfsuid, UNCHANGED),
            libc::syscall(libc::SYS_setfsgid, UNCHANGED),
        ]
    };
    if now == [i64::from(uid), i64::from(gid)] {
        Ok(())
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// Does `work`, which writes files, with the capabilities for them.
pub fn write<T: Send, E: From<io::Error> + Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    // Unit tests are not confined.
    let Some(confinement) = CONFINEMENT.get() else {
        return work();
    };
    in_thread(|| {
        limit_capabilities(confinement.writing, confinement.writing)?;
        work()
    })
}

/// Replaces the file at `path`, for all users to read. A reader sees the old file or the new one, also after a crash.
/// On an error, as on a full disk, the old file is unchanged and no temporary file remains. Replaces regular files alone.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    write(|| {
        // Since the start the directory may have become another user's.
        refusal(above(path)).map_or(Ok(()), |why| Err(io::Error::other(why)))?;
        let (directory, name) = SafeDirectory::open_above(path, OFlags::empty())?;
        match directory
            .open_file(name, OFlags::PATH, 0)
            .and_then(|found| found.metadata())
        {
            Ok(found) if !found.is_file() => {
                return Err(io::Error::other(
                    "it is not a regular file, and is not replaced",
                ));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let new = directory.temporary_file(TEMPORARY)?;
        (&new.file).write_all(content)?;
        new.file.set_permissions(Permissions::from_mode(0o644))?;
        new.put(name)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode};

    use super::*;

    #[test]
    fn need_no_capability_for_ones_own_directory() {
        let own = tempfile::tempdir().unwrap();
        let needed = Needs::default().file(&own.path().join("file")).writing();
        assert_eq!(needed, CapabilitySet::DAC_READ_SEARCH);
        assert_eq!(Needs::default().writing(), CapabilitySet::empty());
        assert_eq!(Needs::default().owners().writing(), CapabilitySet::CHOWN);
        fs::set_permissions(
            own.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o500),
        )
        .unwrap();
        assert!(
            Needs::default()
                .directory(own.path())
                .writing()
                .contains(CapabilitySet::DAC_OVERRIDE)
        );
    }

    #[test]
    fn replace_a_file_or_leave_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for content in ["first\n", "second\n"] {
            replace_file(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        // A directory cannot be replaced by a file.
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace_file(&taken, b"x").is_err());
        assert!(replace_file(&directory.path().join("none/file"), b"x").is_err());
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            2,
            "no temporary file remains"
        );
    }

    #[test]
    fn replace_nothing_but_a_regular_file() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR).unwrap();
        for path in [&link, &pipe, Path::new("/dev/null")] {
            let error = replace_file(path, b"x").unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
