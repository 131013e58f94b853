//! Redacts Oracle's files: keeps parameters about the SGA, and the lines about memory in the last start of an alert log.

use std::io::Cursor;

use hugepage_oracle::readers::{START, alert_log};

use super::lines::lines;

/// Names, or prefixes, of initialisation parameters that are kept (Database Reference).
const PARAMETERS: [&str; 22] = [
    "cluster_database",
    "db_block_size",
    "db_cache_size",
    "db_name",
    "db_unique_name",
    "ifile",
    "inmemory_size",
    "instance_name",
    "instance_type",
    "java_pool_size",
    "large_pool_size",
    "lock_sga",
    "memory_max_target",
    "memory_target",
    "pga_aggregate",
    "pre_page_sga",
    "processes",
    "sga_",
    "shared_pool_size",
    "spfile",
    "streams_pool_size",
    "use_",
];

/// The kept lines of an init.ora or spfile. An spfile has binary data between its lines.
pub fn parameters(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() || c == '\u{fffd}' { '\n' } else { c }).collect();
    lines(&text, is_parameter)
}

/// Whether a line sets a kept parameter: `*.sga_target=4G`, `ORCL1.__sga_target=4G`, `  sga_target  = 4G`.
fn is_parameter(line: &str) -> bool {
    let Some((name, _)) = line.split_once('=') else { return false };
    let name = name.trim().to_ascii_lowercase();
    let name = name.rsplit('.').next().unwrap_or_default().trim_start_matches('_');
    PARAMETERS.iter().any(|known| name.starts_with(known))
}

/// Words of lines about memory, in lower case.
const MEMORY_WORDS: [&str; 24] = [
    "4k ",
    "2048k ",
    "1048576k ",
    "16384k ",
    "524288k ",
    "amm",
    "available system pagesizes",
    "dump of system resources",
    "expected_pages",
    "hugepage",
    "huge page",
    "large page",
    "largepages",
    "locked shared memory",
    "memlock",
    "memory_target",
    "ora-00845",
    "ora-27",
    "pagesize",
    "per process",
    "pmon started",
    "recommendation",
    "shared global area",
    "supported system pagesize",
];

/// The kept lines of the last start, with the timestamp above it.
pub fn alert_log(text: &str) -> String {
    let Some(start) = last_start(text) else { return String::new() };
    // The timestamp is in one of the lines above, after the previous start.
    let above = &text[..start];
    let above = above.rfind(START).map_or(above, |at| &above[at + START.len()..]);
    let near = above.rmatch_indices('\n').nth(4).map_or(above, |(at, _)| &above[at + 1..]);
    let shown = text[start - near.len()..].lines().filter_map(memory_line);
    shown.flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// The offset at which the reader of alert logs finds the last start.
fn last_start(text: &str) -> Option<usize> {
    let start = alert_log::find_last(&mut Cursor::new(text)).ok()??;
    usize::try_from(start).ok()
}

/// The line, if it is about memory or is a timestamp.
fn memory_line(line: &str) -> Option<String> {
    let trimmed = line.trim();
    // log.xml: keep only the time of the attributes.
    if trimmed.starts_with("<msg ") {
        let time = trimmed.split("time='").nth(1).and_then(|rest| rest.split('\'').next());
        return Some(format!("<msg time='{}'>", time.unwrap_or_default()));
    }
    if trimmed.starts_with("</") {
        return Some(line.to_owned());
    }
    let plain = trimmed.strip_prefix("<txt>").unwrap_or(trimmed);
    let lower = plain.to_lowercase();
    let tells = plain.contains(START)
        || is_time(plain)
        || is_parameter(plain)
        || plain.starts_with("***")
        || MEMORY_WORDS.iter().any(|word| lower.contains(word));
    match tells {
        true => Some(line.to_owned()),
        // Keep the tag, because its end tag is kept.
        false if trimmed.starts_with("<txt>") => Some("<txt>".to_owned()),
        false => None,
    }
}

/// Whether a line is only a timestamp: `Tue Jan 06 11:22:33 2015`, `2023-04-05T06:07:08.123+02:00`.
fn is_time(line: &str) -> bool {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let clock = |word: &str| word.len() == 8 && word.split(':').count() == 3;
    match words[..] {
        [_, _, _, time, _] => clock(time),
        [iso] => iso.len() >= 19 && iso.as_bytes()[10] == b'T' && iso.starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_parameters_by_name() {
        let text = "C\u{1}\u{0}\u{fffd}*.sga_target=4G\n*.dispatchers='(PROTOCOL=TCP)'\nORCL1.__sga_target=3G\n*.local_listener='x'\n\u{0}*.use_large_pages='ONLY'\n# sga\n";
        assert_eq!(parameters(text), "*.sga_target=4G\nORCL1.__sga_target=3G\n*.use_large_pages='ONLY'\n");
    }

    #[test]
    fn keep_the_last_start() {
        let text = "Mon Jan 05 11:22:33 2015\nStarting ORACLE instance (normal)\nold\nTue Jan 06 11:22:33 2015\nStarting ORACLE \
                    instance (normal)\nusername SYS logged in from 10.0.0.1\n****** Large Pages Information *****\n\nTotal \
                    Shared Global Region in Large Pages = 2 GB\n  sga_target               = 2G\n  audit_file_dest = \
                    \"/x\"\nPMON started with pid=2\nALTER USER x IDENTIFIED BY y\n";
        let kept = alert_log(text);
        assert_eq!(
            kept,
            "Tue Jan 06 11:22:33 2015\nStarting ORACLE instance (normal)\n****** Large Pages Information *****\nTotal Shared Global \
             Region in Large Pages = 2 GB\n  sga_target               = 2G\nPMON started with pid=2\n"
        );
    }

    #[test]
    fn remove_addresses_of_log_xml() {
        let text = "<msg time='2023-04-05T06:07:08.123+02:00' org_id='oracle' host_addr='10.0.0.1'>\n <txt>Starting ORACLE instance (normal)\n </txt>\n</msg>\n\
                    <msg time='2023-04-05T06:07:09.123+02:00' host_addr='10.0.0.1'>\n <txt>user x\n </txt>\n</msg>\n";
        let kept = alert_log(text);
        assert!(kept.contains(START) && !kept.contains("10.0.0.1") && !kept.contains("user x"), "{kept}");
    }
}
