//! The files that keep the expected output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use snapbox::assert::{Action, DEFAULT_ACTION_ENV};
use snapbox::data::DataFormat;
use snapbox::{Assert, Data, IntoData};

/// The files of a group of hosts.
pub struct Snapshots {
    directory: PathBuf,
    compared: BTreeSet<PathBuf>,
    differences: Vec<String>,
}

impl Snapshots {
    pub fn new(group: &str) -> Self {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/snapshots");
        Self::in_directory(all.join(group))
    }

    pub fn in_directory(directory: PathBuf) -> Self {
        Self {
            directory,
            compared: BTreeSet::new(),
            differences: Vec::new(),
        }
    }

    /// Compares a text with the file `name`; there is none for no text. A difference is told at the end, with all others.
    pub fn compare(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let blank = text.lines().find(|line| *line != line.trim_end());
        assert_eq!(blank, None, "no line ends in a blank: {name}");
        let path = self.directory.join(name);
        // Snapbox takes all line ends for the same.
        let text = text.replace('\r', "\\r").into_data();
        let expected = Data::read_from(&path, Some(DataFormat::Text)).raw();
        let compared =
            Assert::new()
                .action_env(DEFAULT_ACTION_ENV)
                .try_eq(Some(&name), text, expected);
        self.differences
            .extend(compared.err().map(|difference| difference.to_string()));
        self.compared.insert(path);
    }

    /// Panics if there was a difference, or if a file is left that nothing was compared with.
    pub fn finish(mut self) {
        for file in files(&self.directory)
            .into_iter()
            .filter(|file| !self.compared.contains(file))
        {
            match Action::with_env_var(DEFAULT_ACTION_ENV) {
                Some(Action::Overwrite) => fs::remove_file(file).unwrap(),
                _ => self
                    .differences
                    .push(format!("nothing says this any more: {}\n", file.display())),
            }
        }
        assert!(self.differences.is_empty(), "{}", self.differences.concat());
    }
}

/// All files below a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(Result::unwrap)
    {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}
