//! The history file: appended to line by line, cut to its size by rename(2).
//!
//! No failure of it stops the server. If a line is torn or damaged, that line is lost; on a full disk the new record is lost. If it
//! is not a regular file of this user, it is refused. There is one writer at a time: the postmaster while it allocates
//! shared memory and has no children, later its one worker.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hugepage_assess::history::record::{MAX_LINE_BYTES, Record};
use hugepage_kernel::limit;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::SafeDirectory;
use crate::history::stored::{StoredRecords, failed, read_line};

/// A longer file is neither read nor written: this program did not write it.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The path of a server's history.
pub fn path_of_server(data_directory: &Path) -> PathBuf {
    data_directory.join("pg_hugepages.history")
}

/// The place of one instance's history.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    /// The file at `path`, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The records, one at a time; `None` if there is no file.
    pub fn records(&self) -> io::Result<Option<StoredRecords>> {
        let file = self.open(OFlags::RDONLY)?;
        Ok(file.map(|file| StoredRecords::of(&self.path, file)))
    }

    /// The last record for which `wanted` holds. Reads only so much of the end, for a start of the server waits for it.
    pub fn last(&self, wanted: impl Fn(&Record) -> bool) -> io::Result<Option<Record>> {
        self.records()?
            .map_or(Ok(None), |records| records.last(limit::HISTORY, wanted))
    }

    /// Appends one record in one write. If it does not fit completely, the file is cut back.
    pub fn append(&self, record: &Record) -> io::Result<()> {
        let opened = self.open(OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        let mut file = self.named("create", || opened.ok_or(io::ErrorKind::NotFound.into()))?;
        self.named("write", || {
            let (length, mut line) = (file.metadata()?.len(), record.to_line());
            if line.len() > MAX_LINE_BYTES {
                return Err(io::Error::other("the record is longer than 64 kB"));
            }
            if length > 0 && !ends_with_line_feed(&mut file)? {
                // A crash tore the last line; the new one begins on its own line.
                line.insert(0, '\n');
            }
            file.write_all(line.as_bytes()).inspect_err(|_| {
                // If this fails too, nothing more can be done; readers skip the torn line.
                let _ = file.set_len(length);
            })
        })
    }

    /// Drops damaged lines and all others except the last `keep`, and makes the rest durable across a crash of the machine
    /// (fsync). Returns the number of damaged lines. Never holds more than one line: the caller may run for years.
    pub fn trim(&self, keep: usize) -> io::Result<usize> {
        let Some(mut file) = self.open(OFlags::RDONLY)? else {
            return Ok(0);
        };
        let mut whole = 0_usize;
        let mut damaged = 0;
        self.named("read", || {
            each_line(&file, |line| {
                match Record::json_of(line) {
                    Some(_) => whole += 1,
                    None => damaged += 1,
                }
                Ok(())
            })?;
            file.rewind()
        })?;
        let directory = || SafeDirectory::open_above(&self.path, OFlags::empty());
        if whole <= keep && damaged == 0 {
            return self.named("fsync", || {
                file.sync_data()?;
                directory()?.0.sync()?;
                Ok(0)
            });
        }
        let mut excess = whole.saturating_sub(keep);
        self.named("rewrite", || {
            let (directory, name) = directory()?;
            let new = Path::new(name).with_extension("history.new");
            // A crash may have left the file of an earlier attempt.
            directory.remove(&new)?;
            let new = directory.new_file(new, mode_in(&directory)?)?;
            let mut kept = BufWriter::new(&new.file);
            each_line(&file, |line| match Record::json_of(line) {
                None => Ok(()),
                Some(_) if excess > 0 => {
                    excess -= 1;
                    Ok(())
                }
                Some(_) => kept.write_all(line).and_then(|()| kept.write_all(b"\n")),
            })?;
            kept.into_inner()?;
            new.put(name)?;
            Ok(damaged)
        })
    }

    /// Opens it if it is a regular file of this user and not a link; `None` if it does not exist and is not to be created.
    fn open(&self, flags: OFlags) -> io::Result<Option<File>> {
        let opened = SafeDirectory::open_above(&self.path, OFlags::PATH)
            .and_then(|(directory, name)| directory.open_file(name, flags, mode_in(&directory)?));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
                return Err(self.refused("a symbolic link"));
            }
            Err(error) => return self.named("open", || Err(error)),
        };
        let metadata = self.named("open", || file.metadata())?;
        if !metadata.is_file() {
            Err(self.refused("not a plain file"))
        } else if metadata.nlink() > 1 {
            Err(self.refused("a file with several hard links"))
        } else if metadata.len() > MAX_FILE_BYTES {
            Err(self.refused("longer than 256 MB"))
        } else if metadata.uid() != geteuid().as_raw() {
            Err(self.refused("another user's file"))
        } else {
            Ok(Some(file))
        }
    }

    /// What `work` does. Its error names the operation and the file.
    fn named<T>(&self, operation: &str, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        work().map_err(|source| failed(operation, &self.path, &source))
    }

    /// `found`: what the file is instead, a noun phrase.
    fn refused(&self, found: &str) -> io::Error {
        io::Error::other(format!(
            "\"{}\" is {found}, not a history file of this server",
            self.path.display()
        ))
    }
}

/// The mode of a new file: that of the directory's own files, so that a group that may read a backup may read this file too.
fn mode_in(directory: &SafeDirectory) -> io::Result<u32> {
    Ok(directory.metadata()?.mode() & 0o640)
}

/// Calls `take` with each line, without its line feed.
fn each_line(file: &File, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? {
        take(&line)?;
    }
    Ok(())
}

fn ends_with_line_feed(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
