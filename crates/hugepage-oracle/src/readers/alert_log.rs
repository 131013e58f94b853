//! The last start, or all starts, in an alert log of any length. The log is searched from its end, block by block, for the line that
//! begins a start. From there on, as much is read as the longest start needs. The last 64 MB are searched, or for all starts of
//! its history the last GB.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, ReadError};
use memchr::memmem::Finder;

use crate::readers::startup_parser::{START, StartupParser};
use crate::readers::{LastStart, Timestamp};

/// The log is searched in blocks of this size.
const BLOCK_BYTES: usize = 256 << 10;
/// The time of a start is in the bytes before its line: `Adjusting the default value of parameter ...` comes between.
const BYTES_BEFORE_START: usize = 4 << 10;
/// The largest part of a log that is read for a start; most of it are the parameters.
const MAX_START_BYTES: usize = 1 << 20;
/// The longest time before a line.
const MAX_TIME_BYTES: usize = 64;
/// Longer lines are cut.
const MAX_LINE_BYTES: usize = 4 << 10;

/// The last start in the log at `path`; `Ok(None)` if it has none.
pub fn last_start(files: &InstanceFiles, path: &str) -> Result<Option<LastStart>, ReadError> {
    files.search_log(path, &mut { limit::ALERT_LOG }, last_start_in)
}

/// The last start in a log, or what it has of it. `left`: how many bytes may be searched; those that were are subtracted.
pub fn last_start_in(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<LastStart>> {
    let from = find_last(log, left)?.map_or(0, |start| start.saturating_sub(BYTES_BEFORE_START as u64));
    let mut bytes = Vec::new();
    read_at(log, from, BYTES_BEFORE_START + MAX_START_BYTES, &mut bytes)?;
    Ok(start_in(&bytes, from > 0))
}

/// Up to `most` starts in a log, the last first, with the lines of each up to the next one. `left` as above.
pub fn starts_in(log: &mut (impl Read + Seek), most: usize, left: &mut u64) -> io::Result<Vec<LastStart>> {
    let mut offsets = Vec::new();
    find_starts(log, left, |at| {
        offsets.push(at);
        if offsets.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let (mut starts, mut bytes, mut end) = (Vec::new(), Vec::new(), u64::MAX);
    for at in offsets {
        let from = at.saturating_sub(BYTES_BEFORE_START as u64);
        let count = (end - from).min((BYTES_BEFORE_START + MAX_START_BYTES) as u64);
        read_at(log, from, usize::try_from(count).unwrap_or(MAX_START_BYTES), &mut bytes)?;
        starts.extend(start_in(&bytes, from > 0));
        end = at;
    }
    Ok(starts)
}

/// The last start in a part of a log; `within`: whether something precedes it.
fn start_in(bytes: &[u8], within: bool) -> Option<LastStart> {
    let mut parser = StartupParser::default();
    // The first line may have begun before.
    for line in bytes.split_inclusive(|&byte| byte == b'\n').skip(usize::from(within)) {
        let ended = line.strip_suffix(b"\n");
        let line = ended.unwrap_or(line);
        let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE_BYTES)]);
        match ended {
            Some(_) => parser.line(&line),
            None => parser.cut_line(&line),
        }
    }
    parser.finish()
}

/// The offset of the last line of a log that begins a start, whatever the log's length; `Ok(None)` if what is searched has none. The
/// phrase within another line does not count. `left`: how many bytes may be searched; those that were are subtracted.
pub fn find_last(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<u64>> {
    let mut last = None;
    find_starts(log, left, |at| {
        last = Some(at);
        ControlFlow::Break(())
    })?;
    Ok(last)
}

/// Calls `each` with the offset of every line that begins a start, the last first, until it breaks or `left` bytes have been searched.
fn find_starts(
    log: &mut (impl Read + Seek),
    left: &mut u64,
    mut each: impl FnMut(u64) -> ControlFlow<()>,
) -> io::Result<()> {
    // Forwards within a block: backwards no finder compares more than a byte at a time.
    let finder = Finder::new(START);
    let (mut block, mut found) = (Vec::new(), Vec::new());
    let mut upto = log.seek(SeekFrom::End(0))?;
    while *left > 0 && upto > 0 {
        // With the bytes before and after a line that crosses the border of two blocks.
        let from = upto.saturating_sub(BLOCK_BYTES as u64);
        let begin = from.saturating_sub(MAX_TIME_BYTES as u64);
        let before = usize::try_from(from - begin).unwrap_or(MAX_TIME_BYTES);
        let length = usize::try_from(upto - from).unwrap_or(BLOCK_BYTES);
        read_at(log, begin, before + length + START.len() - 1, &mut block)?;
        found.clear();
        // What lies before the block is the next one's.
        found.extend(finder.find_iter(&block).filter(|at| (before..before + length).contains(at)));
        for &at in found.iter().rev() {
            let start_of_line = at.saturating_sub(MAX_TIME_BYTES);
            if begins_line(&block[start_of_line..at], begin == 0 && start_of_line == 0)
                && each(begin + at as u64).is_break()
            {
                return Ok(());
            }
        }
        *left = left.saturating_sub(upto - from);
        upto = from;
    }
    Ok(())
}

/// Whether only a time precedes a place in its line. `before`: the bytes up to it; `whole`: from the log's beginning.
fn begins_line(before: &[u8], whole: bool) -> bool {
    let line = match before.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => &before[at + 1..],
        None if whole => before,
        None => return false,
    };
    let line = String::from_utf8_lossy(line);
    line.trim().is_empty() || Timestamp::split(&line).is_some_and(|(_, rest)| rest.is_empty())
}

/// Reads `count` bytes at `from` and replaces what was in `bytes`; fewer where the log ends or was cut meanwhile.
fn read_at(log: &mut (impl Read + Seek), from: u64, count: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    log.seek(SeekFrom::Start(from))?;
    bytes.clear();
    bytes.reserve(count);
    log.take(count as u64).read_to_end(bytes)?;
    Ok(())
}
