//! The last start, or all starts, in an alert log of any length, and `ALTER SYSTEM` since the last start: what the spfile got in the
//! meantime, also where it is in ASM. The log is searched from its end, block by block, for the line that
//! begins a start. From there on, as much is read as the longest start needs. The last 64 MB are searched, or for all starts of
//! its history the last GB.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, ReadError};
use memchr::memmem::{self, Finder};

use crate::readers::parameters::ParameterChange;
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
const STATEMENT: &str = "ALTER SYSTEM ";
/// Longer lines are no statements about memory.
const MAX_STATEMENT_BYTES: u64 = 64 << 10;
/// The number of changes that are read: more than anybody makes between two starts.
const MAX_CHANGES: usize = 10_000;

/// The last start in the log at `path`; `Ok(None)` if it has none.
pub fn last_start(files: &InstanceFiles, path: &str) -> Result<Option<LastStart>, ReadError> {
    files.search_log(path, &mut { limit::ALERT_LOG }, last_start_in)
}

/// The last start in a log, or what it has of it. `left`: how many bytes may be searched; those that were are subtracted.
pub fn last_start_in(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<LastStart>> {
    let from = find_starts(log, left, 1)?.pop().map_or(0, |start| start.saturating_sub(BYTES_BEFORE_START as u64));
    let mut bytes = Vec::new();
    read_at(log, from, BYTES_BEFORE_START + MAX_START_BYTES, &mut bytes)?;
    Ok(start_in(&bytes, from > 0))
}

/// Up to `most` starts in a log, the last first, with the lines of each up to the next one. `left` as above.
pub fn starts_in(log: &mut (impl Read + Seek), most: usize, left: &mut u64) -> io::Result<Vec<LastStart>> {
    let (mut starts, mut bytes, mut end) = (Vec::new(), Vec::new(), u64::MAX);
    for at in find_starts(log, left, most)? {
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
        parser.line(&line, ended.is_none());
    }
    parser.finish()
}

/// The offsets of up to `most` lines that begin a start, the last first, in the last `left` bytes. The phrase within another line does
/// not count.
fn find_starts(log: &mut (impl Read + Seek), left: &mut u64, most: usize) -> io::Result<Vec<u64>> {
    // Forwards within a block: backwards no finder compares more than a byte at a time.
    let finder = Finder::new(START);
    let (mut block, mut offsets) = (Vec::new(), Vec::new());
    let mut upto = log.seek(SeekFrom::End(0))?;
    while *left > 0 && upto > 0 {
        // With the bytes before and after a line that crosses the border of two blocks.
        let from = upto.saturating_sub(BLOCK_BYTES as u64);
        let begin = from.saturating_sub(MAX_TIME_BYTES as u64);
        let before = usize::try_from(from - begin).unwrap_or(MAX_TIME_BYTES);
        let length = usize::try_from(upto - from).unwrap_or(BLOCK_BYTES);
        read_at(log, begin, before + length + START.len() - 1, &mut block)?;
        // What lies before the block is the next one's.
        let found: Vec<_> = finder.find_iter(&block).filter(|at| (before..before + length).contains(at)).collect();
        for &at in found.iter().rev() {
            let start_of_line = at.saturating_sub(MAX_TIME_BYTES);
            if begins_line(&block[start_of_line..at], begin == 0 && start_of_line == 0) {
                offsets.push(begin + at as u64);
                if offsets.len() == most {
                    return Ok(offsets);
                }
            }
        }
        *left = left.saturating_sub(upto - from);
        upto = from;
    }
    Ok(offsets)
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

/// The changes with SCOPE=SPFILE or BOTH behind the last start in the log at `path`; `Ok(None)` if no start is found there.
pub fn changes_since_start(files: &InstanceFiles, path: &str) -> Result<Option<Vec<ParameterChange>>, ReadError> {
    files.search_log(path, &mut { limit::ALERT_LOG }, changes_since_start_in)
}

/// The statements since the last start, of a log of which `left` bytes may be read; those that were are subtracted.
fn changes_since_start_in(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<Vec<ParameterChange>>> {
    let Some(start) = find_starts(log, left, 1)?.pop() else { return Ok(None) };
    log.seek(SeekFrom::Start(start))?;
    let mut log = BufReader::with_capacity(BLOCK_BYTES, log.take(*left));
    let (mut changes, mut line) = (Vec::new(), Vec::new());
    while changes.len() <= MAX_CHANGES && log.by_ref().take(MAX_STATEMENT_BYTES).read_until(b'\n', &mut line)? > 0 {
        // Without its end it may be cut within a value.
        let whole = line.strip_suffix(b"\n").filter(|line| memmem::find(line, STATEMENT.as_bytes()).is_some());
        changes.extend(whole.and_then(|line| change(&String::from_utf8_lossy(line))));
        line.clear();
    }
    *left = log.get_ref().limit();
    Ok(Some(changes))
}

/// Parses `ALTER SYSTEM SET sga_max_size='16G' SCOPE=SPFILE SID='*';` and `ALTER SYSTEM RESET memory_target
/// SCOPE=SPFILE;` as the log has them. `None` for changes of memory alone, and for other statements.
fn change(line: &str) -> Option<ParameterChange> {
    let (verb, rest) = line.trim().strip_prefix(STATEMENT)?.trim_start().split_once(' ')?;
    let rest = rest.trim().trim_end_matches(';');
    let (assignment, scope) = rest.rsplit_once(" SCOPE=").or_else(|| rest.rsplit_once(" scope="))?;
    let (scope, sid) = match scope.split_once(" SID=") {
        Some((scope, sid)) => (scope, sid.trim().trim_matches('\'')),
        None => (scope, "*"),
    };
    if !matches!(scope.trim().to_ascii_uppercase().as_str(), "SPFILE" | "BOTH") {
        return None;
    }
    let (name, value) = match verb.to_ascii_uppercase().as_str() {
        "SET" => {
            let (name, value) = assignment.split_once('=')?;
            let value = value.split(" COMMENT=").next().unwrap_or(value).trim();
            (name, Some(value.trim_matches(['\'', '"']).to_owned()))
        }
        "RESET" => (assignment, None),
        _ => return None,
    };
    let name = name.trim().trim_matches('"').to_ascii_lowercase();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| ParameterChange { name, value, sid: sid.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        for (line, found) in [
            ("ALTER SYSTEM SET sga_max_size=16G SCOPE=SPFILE;", Some(("sga_max_size", Some("16G"), "*"))),
            ("ALTER SYSTEM SET sga_target='4G' SCOPE=BOTH SID='*';", Some(("sga_target", Some("4G"), "*"))),
            (
                "ALTER SYSTEM SET use_large_pages='ONLY' COMMENT='a = b' SCOPE=SPFILE SID='orcl1';",
                Some(("use_large_pages", Some("ONLY"), "orcl1")),
            ),
            ("ALTER SYSTEM RESET memory_target SCOPE=SPFILE SID='*';", Some(("memory_target", None, "*"))),
            ("ALTER SYSTEM SET sga_target=4G SCOPE=MEMORY;", None),
            ("ALTER SYSTEM SWITCH LOGFILE", None),
            ("ALTER SYSTEM SET x y=1 SCOPE=SPFILE;", None),
            ("ALTER SYSTEM SET", None),
        ] {
            let expected = found.map(|(name, value, sid)| ParameterChange {
                name: name.to_owned(),
                value: value.map(str::to_owned),
                sid: sid.to_owned(),
            });
            assert_eq!(change(line), expected, "{line}");
        }
    }

    #[test]
    fn only_what_follows_the_last_start() {
        let set = |size: u32| format!("ALTER SYSTEM SET sga_max_size={size}G SCOPE=SPFILE;\n");
        let begin = "Starting ORACLE instance (normal)\n";
        let values = |text: &str| {
            let found =
                changes_since_start_in(&mut io::Cursor::new(text.as_bytes()), &mut { limit::ALERT_LOG }).unwrap();
            found.map(|all| all.into_iter().filter_map(|change| change.value).collect::<Vec<_>>())
        };
        assert_eq!(values(&set(1)), None);
        assert_eq!(
            values(&format!("{}{begin}{}x {}{}", set(1), set(2), set(3), set(4))),
            Some(vec!["2G".to_owned(), "4G".to_owned()])
        );
        assert_eq!(values(&format!("{begin}{}", set(2).trim())), Some(Vec::new()));
    }
}
