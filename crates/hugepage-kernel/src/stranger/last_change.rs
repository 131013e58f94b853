//! When a server's file has changed last, by a time that no program can set.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::InstanceFiles;
use crate::stranger::beneath;

/// More directories and links than lead to any file of a server.
const MAX_STEPS_UP: usize = 100;

impl InstanceFiles {
    /// When the file or directory `path` has changed last, or a link on the way to it; `None` if there is none that can be
    /// seen. Renaming something into its place is a change.
    pub fn changed(&self, path: &str) -> Option<SystemTime> {
        let found = self.root().find(path, true).ok()?;
        Some(beneath::changed(&found.metadata)).max(found.link_changed)
    }

    /// The last change of what `path` names, and what has changed: it, or if nothing is there the nearest directory that is, from
    /// which it may have been removed. `None` if no time of a change can be seen, and for a tree: its files have other times than
    /// those of its host.
    pub fn last_change(&self, path: &Path) -> Option<(SystemTime, PathBuf)> {
        if self.root().is_tree() {
            return None;
        }
        let mut place = path.to_owned();
        for _ in 0..MAX_STEPS_UP {
            let name = place.to_string_lossy().into_owned();
            if let Some(at) = self.changed(&name) {
                return Some((at, place));
            }
            self.root().find(&name, true).err().filter(|error| error.kind() == io::ErrorKind::NotFound)?;
            let parent = place.parent()?;
            place = match self.read_link(&name) {
                Ok(target) => parent.join(target),
                Err(_) => parent.to_owned(),
            };
        }
        None
    }
}
