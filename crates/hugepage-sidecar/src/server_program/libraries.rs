//! Libraries of `shared_preload_libraries`, which have shared memory of their own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::trust;

/// More than any server preloads.
const MAX_LIBRARIES: usize = 100;
/// A library that every server has beside the others.
const OF_EVERY_SERVER: &str = "libpqwalreceiver.so";

/// The names in the text of the setting, without `$libdir/`. The error is why they are not looked for: one is a path, or is
/// written in a way that only the server takes apart.
pub fn names(text: &str) -> Result<Vec<&str>, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for listed in text.split(',').map(str::trim) {
        let name = listed.strip_prefix("$libdir/").unwrap_or(listed);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) || names.len() == MAX_LIBRARIES {
            return Err(format!("shared_preload_libraries names \"{listed}\", which is not run"));
        }
        names.push(name);
    }
    Ok(names)
}

/// Where the server `program` finds the library `name`; `None` if it does not exist. The error is why it is not run: only root
/// may be able to change it, and everybody has to be able to read it.
pub fn find(program: &Path, name: &str) -> Result<Option<PathBuf>, String> {
    let bin = program.parent().and_then(Path::parent).ok_or("its libraries were not found")?;
    let directory = bin.join("lib");
    if !directory.join(OF_EVERY_SERVER).is_file() {
        return Err(format!("the libraries of {} are not in {}", program.display(), directory.display()));
    }
    let paths = [directory.join(name), directory.join(format!("{name}.so"))];
    let Some(path) = paths.into_iter().find(|path| fs::symlink_metadata(path).is_ok()) else { return Ok(None) };
    let real = trust::check_file(&path)?;
    let is_open = |path: &Path, mode: u32| fs::metadata(path).is_ok_and(|found| found.mode() & mode == mode);
    let can_read =
        is_open(&real, 0o4) && real.ancestors().skip(1).chain(directory.ancestors()).all(|above| is_open(above, 0o1));
    if can_read { Ok(Some(real)) } else { Err(format!("{} is not for all to read", path.display())) }
}

#[cfg(test)]
mod tests {
    use hugepage_start::libraries::is_known;

    use super::*;

    #[test]
    fn names_of_the_servers_own_libraries() {
        assert_eq!(names("").unwrap(), [""; 0]);
        assert_eq!(
            names("pg_stat_statements, $libdir/auto_explain ,x.so").unwrap(),
            ["pg_stat_statements", "auto_explain", "x.so"]
        );
        for text in ["/tmp/evil", "plugins/x", "../x", "$libdir/../x", "a,,b", "\"a\"", "a b", "..", "$libdir/"] {
            assert!(names(text).unwrap_err().contains("not run"), "{text}");
        }
        assert!(is_known("pg_prewarm") && is_known("auto_explain.so") && !is_known("evil"));
    }

    #[test]
    fn only_roots_libraries() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("bin/postgres");
        assert!(find(&program, "x").unwrap_err().contains("are not in"));
        fs::create_dir(directory.path().join("lib")).unwrap();
        for name in [OF_EVERY_SERVER, "x.so"] {
            fs::write(directory.path().join("lib").join(name), "").unwrap();
        }
        // Others can write to the directory for temporary files.
        assert!(find(&program, "x").unwrap_err().contains("can write"));
        assert_eq!(find(&program, "y"), Ok(None));
    }
}
