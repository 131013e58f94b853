//! Reads the lines of a history. A reader holds at most 64 kB, one line, however long the file or a line is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::iter;
use std::path::{Path, PathBuf};

use hugepage_assess::history::record::{MAX_LINE_BYTES, Record};
use serde::{Deserialize, Serialize};

/// What was read.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// How many lines are damaged.
    pub damaged: usize,
}

/// The records of a history file, the oldest first. Holds one line at a time.
#[derive(Debug)]
pub struct StoredRecords {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// How many lines were damaged so far.
    pub damaged: usize,
}

impl StoredRecords {
    /// The records of `file`, which was opened by `path`.
    pub fn of(path: impl Into<PathBuf>, file: File) -> Self {
        Self {
            path: path.into(),
            reader: BufReader::new(file),
            line: Vec::new(),
            damaged: 0,
        }
    }

    /// Goes to the first line that is among the last `most` bytes.
    pub fn rewind(&mut self, most: u64) -> io::Result<()> {
        self.damaged = 0;
        let found = self.reader.get_ref().metadata().and_then(|file| {
            let first = file.len().saturating_sub(most);
            self.reader.seek(SeekFrom::Start(first))?;
            if first > 0 {
                self.reader.skip_until(b'\n').map(drop)
            } else {
                Ok(())
            }
        });
        found.map_err(|source| self.error(source))
    }

    /// The record of the next line, `None` if it has none that is known here; nothing at the end of the file.
    pub fn line(&mut self) -> Option<io::Result<Option<Record>>> {
        match read_line(&mut self.reader, &mut self.line) {
            Ok(false) => return None,
            Ok(true) => {}
            Err(source) => return Some(Err(self.error(source))),
        }
        Some(Ok(match Record::from_line(&self.line) {
            Some(record) => record,
            None => {
                self.damaged += 1;
                None
            }
        }))
    }

    /// All that is among the last `most` bytes.
    pub fn read(mut self, most: u64) -> io::Result<History> {
        self.rewind(most)?;
        Ok(History {
            records: self.by_ref().collect::<Result<_, _>>()?,
            damaged: self.damaged,
        })
    }

    /// The last record for which `wanted` holds, among the last `most` bytes. Looks first at the end, for `watch` asks every minute.
    pub fn last(
        mut self,
        most: u64,
        wanted: impl Fn(&Record) -> bool,
    ) -> io::Result<Option<Record>> {
        for most in [most.min(2 * MAX_LINE_BYTES as u64), most] {
            self.rewind(most)?;
            let better = |last, record| if wanted(&record) { Some(record) } else { last };
            if let Some(last) = self.try_fold(None, |last, record| {
                record.map(|record| better(last, record))
            })? {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    fn error(&self, source: io::Error) -> io::Error {
        failed("read", &self.path, &source)
    }
}

impl Iterator for StoredRecords {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        iter::from_fn(|| self.line()).find_map(Result::transpose)
    }
}

/// Reads the next line into `line`, without its line feed; false at the end. Of a long one it keeps what shows that.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    // A whole line with its line feed, or the beginning of a longer one.
    if reader
        .by_ref()
        .take(MAX_LINE_BYTES as u64 + 1)
        .read_until(b'\n', line)?
        == 0
    {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_LINE_BYTES {
        reader.skip_until(b'\n')?;
    }
    Ok(true)
}

/// The error of an operation on the history file at `path`.
pub(super) fn failed(operation: &str, path: &Path, source: &io::Error) -> io::Error {
    io::Error::new(
        source.kind(),
        format!(
            "could not {operation} history file \"{}\": {source}",
            path.display()
        ),
    )
}
