//! `ALTER SYSTEM` in an alert log since the last start: what the spfile got in the meantime, also where it is in ASM.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, ReadError};
use memchr::memmem;

use crate::readers::alert_log;
use crate::readers::parameters::ParameterChange;

const STATEMENT: &str = "ALTER SYSTEM ";
/// The log is read in blocks of this size.
const BLOCK_BYTES: usize = 256 << 10;
/// Longer lines are no statements about memory.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// The number of changes that are read: more than anybody makes between two starts.
const MAX_CHANGES: usize = 10_000;

/// The changes with SCOPE=SPFILE or BOTH behind the last start in the log at `path`; `Ok(None)` if no start is found there.
pub fn since_last_start(files: &InstanceFiles, path: &str) -> Result<Option<Vec<ParameterChange>>, ReadError> {
    files.search_log(path, &mut { limit::ALERT_LOG }, since_last_start_within)
}

/// The statements since the last start, of a log of which `left` bytes may be read; those that were are subtracted.
fn since_last_start_within(log: &mut (impl Read + Seek), left: &mut u64) -> io::Result<Option<Vec<ParameterChange>>> {
    let Some(start) = alert_log::find_last(log, left)? else { return Ok(None) };
    log.seek(SeekFrom::Start(start))?;
    let mut log = BufReader::with_capacity(BLOCK_BYTES, log.take(*left));
    let (mut changes, mut line) = (Vec::new(), Vec::new());
    while changes.len() <= MAX_CHANGES && log.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        // Without its end it may be cut within a value.
        changes.extend(line.strip_suffix(b"\n").and_then(change_in));
        line.clear();
    }
    *left = log.get_ref().limit();
    Ok(Some(changes))
}

/// The change that a line is about.
fn change_in(line: &[u8]) -> Option<ParameterChange> {
    let at = memmem::find(line, STATEMENT.as_bytes())?;
    line[..at].trim_ascii().is_empty().then(|| parse(&String::from_utf8_lossy(&line[at..])))?
}

/// Parses `ALTER SYSTEM SET sga_max_size='16G' SCOPE=SPFILE SID='*';` and `ALTER SYSTEM RESET memory_target
/// SCOPE=SPFILE;` as the log has them. `None` for changes of memory alone, and for other statements.
pub fn parse(line: &str) -> Option<ParameterChange> {
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
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn only_what_follows_the_last_start() {
        let set = |size: u32| format!("ALTER SYSTEM SET sga_max_size={size}G SCOPE=SPFILE;\n");
        let begin = "Starting ORACLE instance (normal)\n";
        let values = |text: &str| {
            let found =
                since_last_start_within(&mut io::Cursor::new(text.as_bytes()), &mut { limit::ALERT_LOG }).unwrap();
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
