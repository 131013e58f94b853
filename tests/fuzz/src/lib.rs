//! A tree of files for readers that open theirs themselves, in memory where the system has a place for that.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use hugepage_kernel::Root;
use tempfile::TempDir;

thread_local! {
    static TREE: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Calls `read` with a tree in which these are the files; the same places every time.
pub fn with_files<R>(files: &[(&str, &[u8])], read: impl FnOnce(&Root) -> R) -> R {
    TREE.with_borrow_mut(|tree| {
        let tree = tree.get_or_insert_with(|| {
            let memory = Path::new("/dev/shm");
            let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
            made.expect("a directory for temporary files")
        });
        for (path, content) in files {
            let path = tree.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("a directory above")).expect("directories");
            fs::write(path, content).expect("a file");
        }
        read(&Root::at(tree.path()))
    })
}
