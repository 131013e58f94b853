//! Parses an alert log line by line into a [`LastStart`], the lines of all releases at once: logs outlive upgrades.

use std::mem;

use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::readers::Timestamp;
use crate::readers::startup::{LastStart, LoggedPageRow};
use crate::readers::words::{number, size, word};

/// The beginning of a line that starts an instance.
pub const START: &str = "Starting ORACLE instance (";
/// The bytes of the text in which sentences are searched, because Oracle wraps them.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The largest number of errors of a start that are kept.
const MAX_ERRORS: usize = 16;

/// The facts that the lines so far have shown.
#[derive(Default)]
pub struct StartupParser {
    start: LastStart,
    /// The last time before a line.
    now: Option<Timestamp>,
    /// The lines of this block, as one line in lower case.
    text: String,
    section: Section,
}

/// The section that the current lines belong to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Text,
    /// Rows of the table of page sizes.
    Table,
    /// System parameters with non-default values.
    Parameters,
    /// The lines after a bare `ERROR:`.
    Error,
    /// The instance runs: lines are ignored until the next start.
    Over,
}

impl StartupParser {
    /// Reads a line. Of the last line of a log, which has no end, the numbers may be cut, so only the fact of a start counts.
    pub fn line(&mut self, line: &str, is_cut: bool) {
        let (time, content) = Timestamp::split(line).map_or((None, line.trim()), |(time, rest)| (Some(time), rest));
        if !is_cut || content.starts_with(START) {
            self.now = time.or(self.now.take());
            self.content(content);
        }
    }

    /// The result; `None` if the lines show nothing of a start.
    pub fn finish(mut self) -> Option<LastStart> {
        if self.section == Section::Table && self.start.page_sizes.iter().all(|row| row.is_base) {
            // The log ends in the table, so it does not show whether only base pages were used.
            self.start.page_sizes.clear();
        }
        self.sentences();
        if self.start.use_large_pages.is_none() {
            self.start.use_large_pages = self.start.parameters.get("use_large_pages").map(str::to_ascii_uppercase);
        }
        (self.start != LastStart::default()).then_some(self.start)
    }

    /// Reads what the lines of this block say in sentences, which Oracle wraps anywhere.
    fn sentences(&mut self) {
        let text = mem::take(&mut self.text).to_ascii_lowercase();
        let behind = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
        self.start.memlock = behind("per process system memlock (soft) limit = ").and_then(|limit| match limit {
            _ if limit.starts_with("unlimited") => Some(Rlimit::Unlimited),
            _ => size(limit).map(Rlimit::At),
        });
        let hex = |rest: &str| u64::from_str_radix(word(rest)?, 16).ok();
        self.start.refused_segment = behind("creating segment of size 0x").and_then(hex).map(Bytes);
    }

    fn content(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix(START) {
            *self = Self { now: self.now.take(), ..Self::default() };
            self.start.at.clone_from(&self.now);
            self.start.mode = rest.split(')').next().map(str::to_owned);
            return;
        }
        if self.section == Section::Over || line.is_empty() {
            return;
        }
        let taken = match self.section {
            Section::Table => self.row(line),
            Section::Parameters => self.start.parameters.add_line(line),
            Section::Error => self.error(line),
            Section::Text | Section::Over => false,
        };
        if !taken {
            self.section = Section::Text;
            self.other(line);
        }
    }

    fn other(&mut self, line: &str) {
        if line.starts_with("Dump of system resources acquired") {
            self.start.page_sizes.clear();
            self.text.clear();
        } else if line.starts_with("PAGESIZE") && line.contains("EXPECTED_PAGES") {
            self.section = Section::Table;
        } else if line.starts_with("System parameters with non-default values") {
            self.section = Section::Parameters;
        } else if let Some((_, rest)) = line.split_once("PMON started with pid=") {
            self.start.pmon = rest.split_once("OS id=").and_then(|(_, id)| number(id));
            self.section = Section::Over;
        } else if let Some(message) = line.strip_prefix("ERROR:") {
            self.section = Section::Error;
            self.error(message.trim());
        } else {
            self.identity(line);
            self.refusal(line);
        }
        self.remember(line);
    }

    /// Reads a row such as `2048K  0  769  0  NONE`; false if the line is none.
    fn row(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let unit = first.ends_with(['K', 'M', 'G']);
        let Some(page_size) = size(first).filter(|_| unit).and_then(|size| PageSize::new(size.0)) else {
            return false;
        };
        let available = words.next().unwrap_or_default();
        let is_base = available == "Configured";
        let pages = |word: Option<&str>| word.and_then(|word| word.parse().ok()).map(Pages);
        let available = pages(Some(available));
        if !is_base && available.is_none() {
            return false;
        }
        let (expected, allocated) = (pages(words.next()), pages(words.next()));
        let error = words.collect::<Vec<_>>().join(" ");
        let error = (!matches!(error.as_str(), "" | "NONE" | "0")).then_some(error);
        self.start.page_sizes.push(LoggedPageRow { page_size, available, is_base, expected, allocated, error });
        true
    }

    /// Reads the text after `ERROR:`, on the same or on the next line; true if the line belonged to it.
    fn error(&mut self, message: &str) -> bool {
        const MEMORY: [&str; 4] = ["large_pages", "large pages", "system pages", "shared global"];
        if let (Some(continued), Some(last)) = (message.strip_prefix(':'), self.start.errors.last_mut()) {
            *last = format!("{last}:{continued}");
            return true;
        }
        let lower = message.to_ascii_lowercase();
        if !MEMORY.iter().any(|word| lower.contains(word)) || lower.starts_with("ora-") {
            return false;
        }
        if let Some((_, value)) = lower.split_once("use_large_pages = ") {
            self.start.use_large_pages = word(value).map(str::to_ascii_uppercase);
        }
        self.add_error(message);
        true
    }

    fn add_error(&mut self, message: &str) {
        if self.start.errors.len() < MAX_ERRORS && self.start.errors.iter().all(|known| known != message) {
            self.start.errors.push(message.to_owned());
        }
    }

    /// Reads the release and the files of the instance.
    fn identity(&mut self, line: &str) {
        let version = || {
            let behind = |marker| line.split_once(marker).map(|(_, rest)| rest);
            let release = if line.starts_with("Oracle ") { behind(" Release ") } else { None };
            release.or_else(|| line.strip_prefix("Version ")).or_else(|| behind("ORACLE RDBMS Version: "))
        };
        if let Some(version) = version().and_then(word).map(|version| version.trim_end_matches(['.', ','])) {
            if version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.') {
                self.start.version = Some(version.to_owned());
            }
        } else if let Some((_, file)) = line.split_once("Using parameter settings in ") {
            self.start.parameter_file = file.split_once("pfile ").and_then(|(_, path)| word(path)).map(str::to_owned);
        }
    }

    /// Reads errors that prevent an instance from getting its memory.
    fn refusal(&mut self, line: &str) {
        let code = line.strip_prefix("ORA-").and_then(number::<u32>);
        // Targets that don't fit, a shared pool too small, and the operating system's refusals of shared memory.
        if let Some(821 | 838 | 839 | 843..=849 | 4031 | 27100..=27159) = code {
            self.add_error(line);
        }
        let Some((_, needed)) = line.split_once("/dev/shm file system to be mounted for at least ") else { return };
        if let Some(needed) = size(needed) {
            let available = line.split_once("Current available is ").and_then(|(_, rest)| size(rest));
            let had = available.map_or_else(String::new, |size| format!(", which had {size}"));
            self.add_error(&format!("MEMORY_TARGET needs {needed} in /dev/shm{had}"));
            self.start.dev_shm = Some(needed);
        }
    }

    fn remember(&mut self, line: &str) {
        for word in line.split_ascii_whitespace() {
            if self.text.len() + word.len() >= MAX_TEXT_BYTES {
                return;
            }
            self.text.push_str(word);
            self.text.push(' ');
        }
    }
}
