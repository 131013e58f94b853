//! The last start in an alert log of any length, and `ALTER SYSTEM` since then: whether the spfile has changed, also where it is in ASM.
//! The log is searched from its end, block by block, for the line that begins a start. From there on, as much is read as the longest start
//! needs. The last 64 MB are searched.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use hugepage_facts::LastStart;
use hugepage_kernel::{InstanceFiles, ReadError, limit};
use memchr::memmem::Finder;

use crate::readers::parameters::is_of_memory;
use crate::readers::startup_parser::{START, StartupParser};
use crate::readers::timestamp;

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
pub fn last_start_in(
    log: &mut (impl Read + Seek),
    left: &mut u64,
) -> io::Result<Option<LastStart>> {
    let start = find_start(log, left)?;
    if start.is_none() && *left == 0 {
        // What is at its beginning is not the last one.
        return Ok(None);
    }
    let from = start
        .unwrap_or_default()
        .saturating_sub(BYTES_BEFORE_START as u64);
    let mut bytes = Vec::new();
    read_at(log, from, BYTES_BEFORE_START + MAX_START_BYTES, &mut bytes)?;
    Ok(start_in(&bytes, from > 0))
}

/// The last start in a part of a log; `within`: whether something precedes it.
fn start_in(bytes: &[u8], within: bool) -> Option<LastStart> {
    let mut parser = StartupParser::default();
    // The first line may have begun before.
    for line in bytes
        .split_inclusive(|&byte| byte == b'\n')
        .skip(usize::from(within))
    {
        let ended = line.strip_suffix(b"\n");
        let line = ended.unwrap_or(line);
        let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE_BYTES)]);
        parser.line(&line, ended.is_none());
    }
    parser.finish()
}

/// The offset of the last line that begins a start, in the last `left` bytes. The phrase within another line does not count.
fn find_start(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<u64>> {
    // Forwards within a block: backwards no finder compares more than a byte at a time.
    let finder = Finder::new(START);
    let mut block = Vec::new();
    let mut upto = log.seek(SeekFrom::End(0))?;
    while *left > 0 && upto > 0 {
        // With the bytes before and after a line that crosses the border of two blocks.
        let from = upto.saturating_sub(BLOCK_BYTES as u64);
        let begin = from.saturating_sub(MAX_TIME_BYTES as u64);
        let before = usize::try_from(from - begin).unwrap_or(MAX_TIME_BYTES);
        let length = usize::try_from(upto - from).unwrap_or(BLOCK_BYTES);
        read_at(log, begin, before + length + START.len() - 1, &mut block)?;
        // What lies before the block is the next one's.
        let is_start = |at: &usize| {
            let start_of_line = at.saturating_sub(MAX_TIME_BYTES);
            (before..before + length).contains(at)
                && begins_line(&block[start_of_line..*at], begin == 0 && start_of_line == 0)
        };
        if let Some(at) = finder.find_iter(&block).filter(is_start).last() {
            return Ok(Some(begin + at as u64));
        }
        *left = left.saturating_sub(upto - from);
        upto = from;
    }
    Ok(None)
}

/// Whether only a time precedes a place in its line. `before`: the bytes up to it; `whole`: from the log's beginning.
fn begins_line(before: &[u8], whole: bool) -> bool {
    let line = match before.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => &before[at + 1..],
        None if whole => before,
        None => return false,
    };
    let line = String::from_utf8_lossy(line);
    line.trim().is_empty() || timestamp::split(&line).is_some_and(|(_, rest)| rest.is_empty())
}

/// Reads `count` bytes at `from` and replaces what was in `bytes`; fewer where the log ends or was cut meanwhile.
fn read_at(
    log: &mut (impl Read + Seek),
    from: u64,
    count: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    log.seek(SeekFrom::Start(from))?;
    bytes.clear();
    bytes.reserve(count);
    log.take(count as u64).read_to_end(bytes)?;
    Ok(())
}

/// The first parameter of a start's memory that was changed in the spfile for the instance `sid` behind the last start in the log at
/// `path`; `Ok(None)` if none was.
pub fn changed_since_start(
    files: &InstanceFiles,
    path: &str,
    sid: &str,
) -> Result<Option<String>, ReadError> {
    files.search_log(path, &mut { limit::ALERT_LOG }, |log, left| {
        changed_since_start_in(log, left, sid)
    })
}

fn changed_since_start_in(
    log: &mut (impl Read + Seek),
    left: &mut u64,
    sid: &str,
) -> io::Result<Option<String>> {
    let start = find_start(log, left)?.unwrap_or_default();
    log.seek(SeekFrom::Start(start))?;
    let mut log = BufReader::with_capacity(BLOCK_BYTES, log.take(limit::ALERT_LOG));
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = log.by_ref().take(MAX_LINE_BYTES as u64);
        let is_end = part.read_until(b'\n', &mut line)? == 0;
        let name = changed(&String::from_utf8_lossy(&line), sid);
        if is_end || name.is_some() {
            return Ok(name);
        }
    }
}

/// The parameter of `ALTER SYSTEM SET sga_max_size='16G' SCOPE=SPFILE SID='*';` or `ALTER SYSTEM RESET memory_target SCOPE=SPFILE;`, as
/// the log has them. `None` for changes of memory alone or for another instance than `sid`, and for what decides on no memory of a start.
fn changed(line: &str, sid: &str) -> Option<String> {
    let (_, assignment) = line.strip_prefix("ALTER SYSTEM ")?.split_once(' ')?;
    let name = assignment.split([' ', '=']).next()?.trim_matches('"');
    let name = name.to_ascii_lowercase();
    // A comment comes before the scope, and the instance behind it.
    let (_, scope) = line.rsplit_once(" SCOPE=")?;
    let is_stored = scope.starts_with("SPFILE") || scope.starts_with("BOTH");
    let whose = scope
        .split_once(" SID='")
        .and_then(|(_, of)| of.split('\'').next());
    let is_its = whose.is_none_or(|of| of == "*" || of.eq_ignore_ascii_case(sid));
    (is_its && is_stored && is_of_memory(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        for (line, found) in [
            (
                "ALTER SYSTEM SET sga_max_size=16G SCOPE=SPFILE;",
                Some("sga_max_size"),
            ),
            (
                "ALTER SYSTEM SET \"SGA_TARGET\"='4G' SCOPE=BOTH SID='*';",
                Some("sga_target"),
            ),
            (
                "ALTER SYSTEM SET use_large_pages='ONLY' COMMENT='a = b' SCOPE=SPFILE SID='orcl1';",
                Some("use_large_pages"),
            ),
            (
                "ALTER SYSTEM RESET memory_target SCOPE=SPFILE SID='*';",
                Some("memory_target"),
            ),
            (
                "ALTER SYSTEM SET memory_size = 48G SCOPE=SPFILE;",
                Some("memory_size"),
            ),
            (
                "ALTER SYSTEM SET db_keep_cache_size=2G SCOPE=SPFILE;",
                Some("db_keep_cache_size"),
            ),
            ("ALTER SYSTEM SET sga_target=4G SCOPE=MEMORY;", None),
            (
                "ALTER SYSTEM SET sga_target='4G' SCOPE=SPFILE SID='orcl2';",
                None,
            ),
            ("ALTER SYSTEM SET open_cursors=400 SCOPE=BOTH;", None),
            (
                "ALTER SYSTEM SET sga_target=4G COMMENT='not SID='orcl2'' SCOPE=SPFILE;",
                Some("sga_target"),
            ),
            ("ALTER SYSTEM SWITCH LOGFILE", None),
            ("ALTER SYSTEM SET", None),
        ] {
            assert_eq!(changed(line, "ORCL1").as_deref(), found, "{line}");
        }
    }

    #[test]
    fn only_what_follows_the_last_start() {
        let set = |name: &str| format!("ALTER SYSTEM SET {name}=1G SCOPE=SPFILE;\n");
        let begin = "Starting ORACLE instance (normal)\n";
        let of = |text: &str| {
            let mut log = io::Cursor::new(text.as_bytes());
            changed_since_start_in(&mut log, &mut { limit::ALERT_LOG }, "orcl").unwrap()
        };
        let (before, after) = (set("sga_target"), set("sga_max_size"));
        assert_eq!(of(&format!("{before}{begin}")), None);
        let long = "x".repeat(3 * MAX_LINE_BYTES);
        let text = format!("{before}{begin}he said {before}{long}\n{after}");
        assert_eq!(of(&text).as_deref(), Some("sga_max_size"));
        // A log that was rotated since the start has none.
        assert_eq!(of(&before).as_deref(), Some("sga_target"));
    }
}
