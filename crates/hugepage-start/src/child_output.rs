//! What a child prints, which is read without waiting: a process that it leaves behind may hold its pipes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// What is kept of a stream; an answer is a number, an error some lines.
pub const MAX_BYTES: usize = 64 << 10;

/// A pipe from a child.
#[derive(Debug)]
pub struct ChildOutput {
    /// `None` at its end, and once enough is kept: a child that prints more gets SIGPIPE.
    file: Option<File>,
    bytes: Vec<u8>,
}

impl ChildOutput {
    /// The output behind `pipe`, from which reading returns at once from now on.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self {
            file: Some(File::from(pipe)),
            bytes: Vec::new(),
        })
    }

    /// The pipe, where more is to be read.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Whether it had more than is kept.
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() >= MAX_BYTES
    }

    /// Reads what is there.
    pub fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8 << 10];
        while let Some(file) = &mut self.file {
            match file.read(&mut buffer) {
                Ok(0) => self.file = None,
                Ok(count) => {
                    self.bytes
                        .extend_from_slice(&buffer[..count.min(MAX_BYTES - self.bytes.len())]);
                    self.file = self.file.take().filter(|_| !self.is_cut());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What was read.
    pub fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_there_and_not_more_than_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut output = ChildOutput::new(reader.into()).unwrap();
        output.read().unwrap();
        writer.write_all(b"17\n").unwrap();
        output.read().unwrap();
        assert!(output.pipe().is_some() && !output.is_cut() && output.bytes == b"17\n");
        let endless = [b'x'; 8 << 10];
        while output.pipe().is_some() {
            writer.write_all(&endless).unwrap();
            output.read().unwrap();
        }
        assert!(output.is_cut() && output.into_text().len() == MAX_BYTES);
        assert!(writer.write_all(&endless).is_err());
    }
}
