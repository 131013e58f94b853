//! The history file: appended to line by line, read from its end, cut to its size by rename(2).
//!
//! No failure of it stops the server. A torn or damaged line costs that line; a full disk costs the new record; a file
//! that is not a regular file of this user is refused. There is one writer at a time: the postmaster while it allocates
//! shared memory and has no children, later its one worker.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::history::record::{HistoryLine, Record};

/// A longer file is neither read nor written: this program did not write it.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// How much is read at once to find the last records.
const BLOCK_BYTES: u64 = 64 << 10;

/// Why the history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The operating system refused.
    #[error("could not {operation} history file \"{}\": {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a history file of this user.
    #[error("\"{}\" is {found}, not a history file of this server", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
}

/// The place of one instance's history.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: PathBuf,
}

/// What was read.
#[derive(Debug, Default)]
pub struct History {
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// How many lines are damaged.
    pub damaged: usize,
}

/// The records of a history file, the oldest first. Holds one line at a time.
#[derive(Debug)]
pub struct StoredRecords {
    file: HistoryFile,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// How many lines were damaged so far.
    pub damaged: usize,
}

impl StoredRecords {
    /// Begins again.
    pub fn rewind(&mut self) -> Result<(), HistoryError> {
        self.damaged = 0;
        self.reader.rewind().map_err(|source| self.file.error("read", source))
    }
}

impl Iterator for StoredRecords {
    type Item = Result<Record, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line.clear();
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(source) => return Some(Err(self.file.error("read", source))),
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            match Record::from_line(line) {
                Some(HistoryLine::Record(record)) => return Some(Ok(*record)),
                None if !line.is_empty() => self.damaged += 1,
                Some(HistoryLine::OtherVersion) | None => {}
            }
        }
    }
}

impl History {
    /// Takes the content of a history file.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut history = Self::default();
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match Record::from_line(line) {
                Some(HistoryLine::Record(record)) => history.records.push(*record),
                Some(HistoryLine::OtherVersion) => {}
                None => history.damaged += 1,
            }
        }
        history
    }
}

impl HistoryFile {
    /// The file at `path`, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it; empty if there is no file.
    pub fn read(&self) -> Result<History, HistoryError> {
        self.read_all(self.open(OpenOptions::new().read(true))?)
    }

    /// Its records, one at a time; `None` if there is no file.
    pub fn records(&self) -> Result<Option<StoredRecords>, HistoryError> {
        let file = self.open(OpenOptions::new().read(true))?;
        Ok(file.map(|file| StoredRecords {
            file: self.clone(),
            reader: BufReader::new(file),
            line: Vec::new(),
            damaged: 0,
        }))
    }

    /// The same as [`HistoryFile::read`] for a reader of other users' histories, such as root on a host with several servers.
    /// Every other condition holds.
    pub fn read_of_any_owner(&self) -> Result<History, HistoryError> {
        self.read_all(self.open_of_any_owner(OpenOptions::new().read(true))?)
    }

    fn read_all(&self, file: Option<File>) -> Result<History, HistoryError> {
        let Some(mut file) = file else { return Ok(History::default()) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| self.error("read", source))?;
        Ok(History::parse(&bytes))
    }

    /// The last record for which `wanted` holds. Reads from the end, so that the cost does not grow with the file.
    pub fn last(&self, wanted: impl Fn(&Record) -> bool) -> Result<Option<Record>, HistoryError> {
        let Some(file) = self.open(OpenOptions::new().read(true))? else { return Ok(None) };
        last_record(&file, MAX_FILE_BYTES, wanted).map_err(|source| self.error("read", source))
    }

    /// Appends one record in one write. If it does not fit completely, the file is cut back.
    pub fn append(&self, record: &Record) -> Result<(), HistoryError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(self.mode());
        let Some(mut file) = self.open(&options)? else {
            return Err(self.error("create", io::ErrorKind::NotFound.into()));
        };
        let length = file.metadata().map_err(|source| self.error("write", source))?.len();
        let mut line = record.to_line();
        if length > 0 && !ends_with_line_feed(&mut file).map_err(|source| self.error("read", source))? {
            // A crash tore the last line; the new one begins on its own line.
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes()).map_err(|source| {
            // If this fails too, nothing more can be done; readers skip the torn line.
            let _ = file.set_len(length);
            self.error("write", source)
        })
    }

    /// Makes the file's content durable across a crash of the machine (fsync).
    pub fn sync(&self) -> Result<(), HistoryError> {
        match self.open(OpenOptions::new().read(true))? {
            Some(file) => file.sync_data().map_err(|source| self.error("fsync", source)),
            None => Ok(()),
        }
    }

    /// Drops damaged lines and all others except the last `keep`. Returns the number of damaged lines. Never holds more than
    /// one line: the caller may run for years.
    pub fn trim(&self, keep: usize) -> Result<usize, HistoryError> {
        let Some(mut file) = self.open(OpenOptions::new().read(true))? else { return Ok(0) };
        let (mut whole, mut damaged) = (0_usize, 0);
        let counted = each_line(&file, |line| {
            match Record::json_of(line) {
                Some(_) => whole += 1,
                None => damaged += 1,
            }
            Ok(())
        });
        counted.and_then(|()| file.rewind()).map_err(|source| self.error("read", source))?;
        if whole <= keep && damaged == 0 {
            return Ok(0);
        }
        let mut excess = whole.saturating_sub(keep);
        let new = self.path.with_extension("history.new");
        let written = (|| {
            // A crash may have left the file of an earlier attempt.
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file_of_kept = OpenOptions::new().write(true).create_new(true).mode(self.mode()).open(&new)?;
            let mut kept = BufWriter::new(file_of_kept);
            each_line(&file, |line| match Record::json_of(line) {
                None => Ok(()),
                Some(_) if excess > 0 => {
                    excess -= 1;
                    Ok(())
                }
                Some(_) => kept.write_all(line).and_then(|()| kept.write_all(b"\n")),
            })?;
            kept.into_inner()?.sync_data()?;
            std::fs::rename(&new, &self.path)
        })();
        written.map(|()| damaged).map_err(|source| {
            let _ = std::fs::remove_file(&new);
            self.error("rewrite", source)
        })
    }

    /// The mode of a new file: that of the directory's own files, as PostgreSQL does it, so that a group that may read
    /// a backup of the directory may read this file too.
    fn mode(&self) -> u32 {
        let directory = self.path.parent().and_then(|directory| std::fs::metadata(directory).ok());
        directory.map_or(0o600, |directory| directory.permissions().mode() & 0o640)
    }

    /// Opens it if it is a regular file of this user and not a link; `None` if it does not exist and is not to be
    /// created.
    fn open(&self, options: &OpenOptions) -> Result<Option<File>, HistoryError> {
        let Some(file) = self.open_of_any_owner(options)? else { return Ok(None) };
        let owner = file.metadata().map_err(|source| self.error("open", source))?.uid();
        // SAFETY: returns a number of this process and has no precondition.
        #[allow(unsafe_code)]
        let me = unsafe { libc::geteuid() };
        if owner == me { Ok(Some(file)) } else { Err(self.refused("another user's file")) }
    }

    fn open_of_any_owner(&self, options: &OpenOptions) -> Result<Option<File>, HistoryError> {
        // O_NONBLOCK: a named pipe in its place must not stop the server.
        let file = match options.clone().custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(self.refused("a symbolic link")),
            Err(source) => return Err(self.error("open", source)),
        };
        let metadata = file.metadata().map_err(|source| self.error("open", source))?;
        match () {
            () if !metadata.is_file() => Err(self.refused("not a plain file")),
            () if metadata.nlink() > 1 => Err(self.refused("a file with several hard links")),
            () if metadata.len() > MAX_FILE_BYTES => Err(self.refused("longer than 256 MB")),
            () => Ok(Some(file)),
        }
    }

    fn error(&self, operation: &'static str, source: io::Error) -> HistoryError {
        HistoryError::Io { operation, path: self.path.clone(), source }
    }

    fn refused(&self, found: &'static str) -> HistoryError {
        HistoryError::Refused { path: self.path.clone(), found }
    }
}

/// The last record for which `wanted` holds, among the last `most` bytes of a history. Reads blocks from the end, and never
/// holds more than a block and a line: the caller may run for years.
pub fn last_record(mut file: &File, most: u64, wanted: impl Fn(&Record) -> bool) -> io::Result<Option<Record>> {
    let length = file.metadata()?.len();
    let first = length.saturating_sub(most);
    let (mut end, mut size, mut cut_line) = (length, BLOCK_BYTES, Vec::new());
    while end > first {
        let start = end.saturating_sub(size).max(first);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut bytes)?;
        bytes.append(&mut cut_line);
        // The block before this one may have the beginning of its first line.
        let whole = match bytes.iter().position(|&byte| byte == b'\n') {
            _ if start == 0 => 0,
            Some(line_feed) => line_feed,
            None => bytes.len(),
        };
        let found = bytes[whole..].rsplit(|&byte| byte == b'\n').find_map(|line| match Record::from_line(line)? {
            HistoryLine::Record(record) => Some(*record).filter(|record| wanted(record)),
            HistoryLine::OtherVersion => None,
        });
        if found.is_some() {
            return Ok(found);
        }
        // A line that is longer than a block is not read again with each of its blocks.
        size = if whole == bytes.len() { size * 2 } else { BLOCK_BYTES };
        bytes.truncate(whole);
        (end, cut_line) = (start, bytes);
    }
    Ok(None)
}

/// Calls `take` with each line that is not empty, without its line feed.
fn each_line(file: &File, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        match line.strip_suffix(b"\n").unwrap_or(&line) {
            [] => {}
            text => take(text)?,
        }
        line.clear();
    }
    Ok(())
}

fn ends_with_line_feed(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}
