//! postgresql.conf and its includes, by the rules of the server's own scanner (guc-file.l): which files a configuration
//! has, and what it sets. The server decides whether a value is valid.

use std::path::{Path, PathBuf};

use crate::postgresql::conf_line::parse;
use crate::{InstanceFiles, Notes, ReadError, if_there, limit};

/// The depth to which the server follows includes (`CONF_FILE_MAX_DEPTH`).
const MAX_INCLUDE_DEPTH: usize = 10;
/// The most files of a configuration; those that follow are not read.
const MAX_FILES: usize = 250;
/// Nor one whose paths have more bytes.
const MAX_PATH_BYTES: usize = 128 << 10;
/// The most settings of a configuration; the server has about 400.
const MAX_SETTINGS: usize = 10_000;

/// A configuration with all that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Every file and directory that was read, in that order, missing ones too.
    pub sources: Vec<PathBuf>,
    /// Names in lower case with their values; of several with one name the last counts.
    pub settings: Vec<(String, String)>,
    /// The server's error for an included file or directory that does not exist: it does not start with it.
    pub missing: Option<String>,
    /// What of it could not be read, or may be no valid syntax: the server may see other settings, or refuse it.
    pub unclear: Option<String>,
    /// Whether nothing more is read.
    is_over: bool,
    /// How many bytes were read so far.
    length: u64,
    /// How many bytes the paths have.
    path_bytes: usize,
}

impl Configuration {
    /// The effective value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings
            .iter()
            .rev()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// Adds `file`, an absolute path, with its includes. What cannot be read is a note.
    pub fn add(&mut self, files: &InstanceFiles, file: &Path, notes: &mut Notes) {
        self.add_file(files, file, false, 0, notes);
    }

    fn add_file(
        &mut self,
        files: &InstanceFiles,
        file: &Path,
        is_needed: bool,
        depth: usize,
        notes: &mut Notes,
    ) {
        // The server stops at the first file that is too deep, and so does this: files may include each other 2^10 times.
        if self.is_over {
            return;
        }
        self.add_source(file);
        if depth > MAX_INCLUDE_DEPTH {
            self.is_over = true;
            self.is_unclear(format!("\"{}\" is included too deep", file.display()));
            return;
        }
        if self.sources.len() > MAX_FILES || self.path_bytes > MAX_PATH_BYTES {
            let what = format!("more than {MAX_FILES} files, or {MAX_PATH_BYTES} bytes of paths");
            self.end(what, file, notes);
            return;
        }
        let text = files.read_text(&file.to_string_lossy(), limit::CONFIGURATION);
        let what = format!("configuration file \"{}\"", file.display());
        let Some(text) = self.kept(text, &what, is_needed, notes) else {
            return;
        };
        self.length = self
            .length
            .saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        if self.length > limit::CONFIGURATION_IN_ALL {
            self.end(
                format!("more than {} bytes", limit::CONFIGURATION_IN_ALL),
                file,
                notes,
            );
            return;
        }
        let below = file.parent().unwrap_or(Path::new("/"));
        for (number, line) in text.lines().enumerate() {
            let Some(set) = parse(line) else {
                self.is_unclear(format!(
                    "line {} of \"{}\" is not understood",
                    number + 1,
                    file.display()
                ));
                continue;
            };
            let Some((name, value)) = set else { continue };
            match name.as_str() {
                // The server refuses an empty name, and reads the file whose name has escapes.
                "include" | "include_if_exists" | "include_dir"
                    if value.is_empty() || value.contains('\\') =>
                {
                    let what = format!(
                        "{name} in \"{}\" names nothing that is read here",
                        file.display()
                    );
                    notes.add(what.clone());
                    self.is_unclear(what);
                }
                "include" => self.add_file(files, &below.join(value), true, depth + 1, notes),
                "include_if_exists" => {
                    self.add_file(files, &below.join(value), false, depth + 1, notes)
                }
                "include_dir" => self.add_directory(files, &below.join(value), depth + 1, notes),
                _ if self.settings.len() >= MAX_SETTINGS => {
                    self.end(format!("more than {MAX_SETTINGS} settings"), file, notes);
                    return;
                }
                _ => self.settings.push((name, value)),
            }
        }
    }

    fn add_source(&mut self, path: &Path) {
        self.path_bytes += path.as_os_str().len();
        self.sources.push(path.to_owned());
    }

    /// Reads no further, for this is more than any configuration has.
    fn end(&mut self, what: String, file: &Path, notes: &mut Notes) {
        let what = format!(
            "the configuration with \"{}\" has {what}; the rest of it was not read",
            file.display()
        );
        notes.add(what.clone());
        self.is_unclear(what);
        self.is_over = true;
    }

    fn is_unclear(&mut self, what: String) {
        self.unclear.get_or_insert(what);
    }

    /// What was read of a file or directory; an error becomes a note, and one that `is_needed` may not be missing.
    fn kept<T>(
        &mut self,
        read: Result<T, ReadError>,
        what: &str,
        is_needed: bool,
        notes: &mut Notes,
    ) -> Option<T> {
        match if_there(read) {
            Ok(found) => {
                if found.is_none() && is_needed {
                    // conffiles.c, with the text of ENOENT.
                    self.missing.get_or_insert_with(|| {
                        format!("could not open {what}: No such file or directory")
                    });
                }
                found
            }
            Err(error) => {
                self.is_unclear(error.to_string());
                notes.add(error.to_string());
                None
            }
        }
    }

    fn add_directory(
        &mut self,
        files: &InstanceFiles,
        directory: &Path,
        depth: usize,
        notes: &mut Notes,
    ) {
        if self.is_over {
            return;
        }
        self.add_source(directory);
        let names = files.list(&directory.to_string_lossy());
        let what = format!("configuration directory \"{}\"", directory.display());
        let names = self.kept(names, &what, true, notes).unwrap_or_default();
        for name in names
            .iter()
            .filter(|name| name.ends_with(".conf") && !name.starts_with('.'))
        {
            self.add_file(files, &directory.join(name), true, depth, notes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Root;

    #[test]
    fn includes_in_their_order() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "etc/main.conf",
            "a = 1\ninclude_dir 'conf.d'\ninclude_if_exists = 'none.conf'\ninclude '/else/where.conf'\nb = last\n",
        );
        write("etc/conf.d/20.conf", "a = 3\n");
        write("etc/conf.d/10.conf", "a = 2\nb = 2\n");
        write("etc/conf.d/.hidden.conf", "a = 9\n");
        write("etc/conf.d/30.conf.off", "a = 9\n");
        write("else/where.conf", "c = 'deep'\ninclude 'where.conf'\n");
        let mut found = Configuration::default();
        let mut notes = Notes::default();
        found.add(
            &InstanceFiles::own(&Root::at(tree.path())),
            Path::new("/etc/main.conf"),
            &mut notes,
        );
        assert_eq!(
            (found.get("a"), found.get("b"), found.get("c")),
            (Some("3"), Some("last"), Some("deep"))
        );
        let sources: Vec<_> = found
            .sources
            .iter()
            .take(6)
            .map(|path| path.to_str().unwrap())
            .collect();
        let expected = [
            "/etc/main.conf",
            "/etc/conf.d",
            "/etc/conf.d/10.conf",
            "/etc/conf.d/20.conf",
            "/etc/none.conf",
        ];
        assert_eq!(sources[..5], expected);
        assert_eq!(sources[5], "/else/where.conf");
        // A file that includes itself ends where the server's patience does.
        assert!(found.sources.len() < 20 && found.unclear.unwrap().contains("too deep"));
        assert!(notes.into_vec().is_empty());
    }

    #[test]
    fn what_the_server_refuses_or_may_refuse() {
        let tree = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(tree.path().join("main.conf"), text).unwrap();
            let mut found = Configuration::default();
            found.add(
                &InstanceFiles::own(&Root::at(tree.path())),
                Path::new("/main.conf"),
                &mut Notes::default(),
            );
            (found.missing, found.unclear)
        };
        assert_eq!(read("a = 1\ninclude_if_exists 'none.conf'\n"), (None, None));
        for (text, what) in [
            ("include 'none.conf'", "file \"/none.conf\""),
            ("include_dir no", "directory \"/no\""),
        ] {
            let missing = format!("could not open configuration {what}: No such file or directory");
            assert_eq!(read(text), (Some(missing), None));
        }
        assert!(
            read("a = 1\nb = 'open\n")
                .1
                .unwrap()
                .starts_with("line 2 of \"/main.conf\"")
        );
        assert!(read("include ''").1.is_some());
    }

    /// A configuration of four files of a megabyte, each included a hundred times, and settings without end.
    #[test]
    fn what_is_read_has_an_end() {
        let tree = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(tree.path().join(name), text).unwrap();
        write(
            "many.conf",
            (0..100)
                .map(|part| format!("include 'part{}.conf'\n", part % 4))
                .collect(),
        );
        for part in 0..4 {
            write(
                &format!("part{part}.conf"),
                format!("# {}\n", "x".repeat(1000)).repeat(1000),
            );
        }
        write("long.conf", "#\n".repeat(600_000));
        write(
            "settings.conf",
            (0..100_000)
                .map(|number| format!("a{number}=1\n"))
                .collect(),
        );
        write(
            "files.conf",
            (0..900)
                .map(|number| format!("include_if_exists '{number}.conf'\n"))
                .collect(),
        );
        write(
            "paths.conf",
            (0..90)
                .map(|_| format!("include '{}'\n", "long/".repeat(400)))
                .collect(),
        );
        let directory = tree.path().join("conf.d");
        fs::create_dir(&directory).unwrap();
        (0..400)
            .for_each(|number| fs::write(directory.join(format!("{number}.conf")), "").unwrap());
        write("directory.conf", "include_dir 'conf.d'\n".repeat(400));
        for (file, note) in [
            ("/many.conf", "has more than 4194304 bytes"),
            ("/long.conf", "it is longer than 1048576 bytes"),
            ("/settings.conf", "has more than 10000 settings"),
            ("/files.conf", "has more than 250 files"),
            ("/paths.conf", "131072 bytes of paths"),
            ("/directory.conf", "has more than 250 files"),
        ] {
            let (mut found, mut notes) = (Configuration::default(), Notes::default());
            found.add(
                &InstanceFiles::own(&Root::at(tree.path())),
                Path::new(file),
                &mut notes,
            );
            let notes = notes.into_vec();
            assert!(notes.len() == 1 && notes[0].contains(note), "{notes:?}");
            assert!(found.sources.len() < 255 && found.settings.len() <= 10_000);
        }
    }
}
