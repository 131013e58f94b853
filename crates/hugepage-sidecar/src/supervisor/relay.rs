//! Passes on what another process prints. A process that never ends would keep a pipe open for ever, and who reads from it waits
//! for its end: so it gets a pipe of its own in the place of one.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio;

/// The pipes of one process.
#[derive(Debug, Default)]
pub struct Relays {
    stdout: Option<Relay>,
    stderr: Option<Relay>,
}

#[derive(Debug)]
struct Relay {
    /// The end from which this process reads.
    from: File,
}

/// The ends to which the other process writes.
#[derive(Debug)]
pub struct Ends {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl Relays {
    /// A pipe for each stream that is one; one for both if they are the same, so that their lines keep their order.
    pub fn new() -> io::Result<(Self, Ends)> {
        let (out, error) = (fstat(stdio::stdout())?, fstat(stdio::stderr())?);
        let is_pipe = |mode| matches!(FileType::from_raw_mode(mode), FileType::Fifo | FileType::Socket);
        let (stdout, out_end) = if is_pipe(out.st_mode) { pipe()? } else { (None, None) };
        let (stderr, error_end) = match (&out_end, is_pipe(error.st_mode)) {
            (Some(end), true) if (out.st_dev, out.st_ino) == (error.st_dev, error.st_ino) => {
                (None, Some(end.try_clone()?))
            }
            (_, true) => pipe()?,
            (_, false) => (None, None),
        };
        Ok((Self { stdout, stderr }, Ends { stdout: out_end, stderr: error_end }))
    }

    /// What is to be read from.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.stdout, &self.stderr].into_iter().flatten().map(|relay| relay.from.as_fd())
    }

    /// Passes on what is there. A stream whose reader has gone is closed, so that the other process sees it.
    pub fn pass_on(&mut self) {
        for (relay, to) in
            [(&mut self.stdout, &mut io::stdout() as &mut dyn Write), (&mut self.stderr, &mut io::stderr())]
        {
            if relay.as_mut().is_some_and(|relay| !relay.pass_on(to)) {
                *relay = None;
            }
        }
    }
}

impl Relay {
    /// Whether there may be more.
    fn pass_on(&mut self, to: &mut dyn Write) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.from.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

impl Ends {
    /// Makes them the streams of this process.
    pub fn take(self) -> io::Result<()> {
        self.stdout.map_or(Ok(()), |end| stdio::dup2_stdout(&end))?;
        self.stderr.map_or(Ok(()), |end| stdio::dup2_stderr(&end))?;
        Ok(())
    }
}

fn pipe() -> io::Result<(Option<Relay>, Option<OwnedFd>)> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&from, OFlags::NONBLOCK)?;
    Ok((Some(Relay { from: from.into() }), Some(to)))
}
