//! The privileges that this program gives up at its start: most powers of root.
//!
//! The thread that reads the host has two capabilities. What a command needs besides is permitted, but in effect only in a
//! thread that writes one file, and ends, or in a reader until it has become another user.

mod output_place;

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use hugepage_host::readers::limit_capabilities;
use hugepage_server::safe_directory::others_may_write;
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{CapabilitySet, capability_is_in_ambient_set};

/// The capabilities to look at other users' processes, and to end readers. None opens a file of another user.
const LOOKING: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::KILL);
/// What a reader needs to become the user whose files it reads; this process has it permitted and not in effect.
const BECOMING: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// What a command does besides looking.
#[derive(Debug, Default)]
pub struct Needs {
    /// Directories whose files it writes, and single files.
    places: Vec<PathBuf>,
    changes_owners: bool,
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
    #[expect(clippy::disallowed_methods, reason = "a directory that the command line names")]
    pub fn new_directory(self, directory: &Path) -> Self {
        let mut needs = self.unless_shared(directory);
        if needs.refused.is_none() {
            // The command says why it cannot be created.
            let _ = DirBuilder::new().recursive(true).mode(0o755).create(directory);
            // Somebody may have made it first, and in a sticky one anybody could make a file that is not there yet.
            let is_shared = fs::metadata(directory).is_ok_and(|found| others_may_write(&found));
            let of_shared = || is_shared.then(|| output_place::refused(directory, None));
            needs.refused = output_place::refusal(directory).or_else(of_shared);
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
        self.refused = self.refused.or_else(|| output_place::refusal(directory));
        self
    }

    /// Gives files to other users and groups.
    pub fn owners(self) -> Self {
        Self { changes_owners: true, ..self }
    }

    /// The capabilities for its files.
    #[expect(clippy::disallowed_methods, reason = "the directories that the command line names")]
    fn writing(&self) -> CapabilitySet {
        // An Oracle file that is another user's is read again.
        let mut needed = CapabilitySet::empty();
        if !self.places.is_empty() {
            needed |= CapabilitySet::DAC_READ_SEARCH;
        }
        if self.changes_owners {
            needed |= CapabilitySet::CHOWN;
        }
        // A directory that root could not write to as its owner, such as one in the home of the user who calls sudo.
        if self.places.iter().any(|place| fs::metadata(place).is_ok_and(|found| !is_writable(&found))) {
            needed |= CapabilitySet::DAC_OVERRIDE;
        }
        needed
    }
}

/// The directory of a file.
fn above(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why the file `path` is not replaced; `None` if it may be.
pub fn refusal_of_file(path: &Path) -> Option<String> {
    output_place::refusal(above(path))
}

/// Whether this user can write to a file without a capability, by the file's mode.
fn is_writable(found: &Metadata) -> bool {
    let shift = match () {
        () if found.uid() == geteuid().as_raw() => 6,
        () if found.gid() == getegid().as_raw() => 3,
        () => 0,
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
    let kept = CapabilitySet::all().iter().filter(is_callers).collect::<CapabilitySet>() | LOOKING | BECOMING;
    limit_capabilities(kept, kept).map_err(|error| format!("could not give up capabilities: {error}"))
}

/// Gives up what is not needed. To be called once, before anything of a server is read and before there are other threads.
pub fn confine(needs: &Needs) {
    let writing = needs.writing();
    let limited = limit_capabilities(LOOKING, LOOKING | BECOMING | writing);
    let note = limited.err().map(|error| format!("could not give up capabilities: {error}"));
    let _ = CONFINEMENT.set(Confinement { writing, note });
}

/// Why nothing could be given up; `None` if it was.
pub fn note() -> Option<&'static String> {
    CONFINEMENT.get()?.note.as_ref()
}

/// Does `work`, which writes files, with the capabilities for them, in a thread of its own: capabilities belong to a thread, and end
/// with it.
pub fn write<T: Send, E: From<io::Error> + Send>(work: impl FnOnce() -> Result<T, E> + Send) -> Result<T, E> {
    // Unit tests are not confined.
    let Some(confinement) = CONFINEMENT.get() else { return work() };
    let confined = || {
        limit_capabilities(confinement.writing, confinement.writing)?;
        work()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, confined)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_no_capability_for_ones_own_directory() {
        let own = tempfile::tempdir().unwrap();
        let needed = Needs::default().file(&own.path().join("file")).writing();
        assert_eq!(needed, CapabilitySet::DAC_READ_SEARCH);
        assert_eq!(Needs::default().writing(), CapabilitySet::empty());
        assert_eq!(Needs::default().owners().writing(), CapabilitySet::CHOWN);
        fs::set_permissions(own.path(), std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
        assert!(Needs::default().directory(own.path()).writing().contains(CapabilitySet::DAC_OVERRIDE));
    }
}
