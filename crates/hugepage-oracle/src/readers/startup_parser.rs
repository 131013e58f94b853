//! Parses an alert log line by line into a [`LastStart`], the lines of all releases at once: logs outlive upgrades.

use std::mem;

use hugepage_facts::{LastStart, LoggedPageRow, Timestamp};
use hugepage_kernel::{PageSize, Pages, Rlimit};

use crate::readers::startup::END;
use crate::readers::words::{number, size, word};
use crate::readers::{parameters, timestamp};

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
    /// Errors since PMON started.
    later: Vec<String>,
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
    /// PMON runs: only the end of the instance counts, until it does something with its database or its disk groups.
    Running,
    /// All lines are ignored until the next start.
    Over,
}

impl StartupParser {
    /// Reads a line. Of the last line of a log, which has no end, the numbers may be cut, so only the fact of a start counts.
    pub fn line(&mut self, line: &str, is_cut: bool) {
        let (time, content) =
            timestamp::split(line).map_or((None, line.trim()), |(time, rest)| (Some(time), rest));
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
            self.start.use_large_pages = self
                .start
                .parameters
                .get("use_large_pages")
                .map(str::to_ascii_uppercase);
        }
        (self.start != LastStart::default()).then_some(self.start)
    }

    /// Reads what the lines of this block say in sentences, which Oracle wraps anywhere.
    fn sentences(&mut self) {
        let text = mem::take(&mut self.text).to_ascii_lowercase();
        let memlock = text.rsplit_once("per process system memlock (soft) limit = ");
        self.start.memlock = memlock.and_then(|(_, limit)| match limit {
            _ if limit.starts_with("unlimited") => Some(Rlimit::Unlimited),
            _ => size(limit).map(Rlimit::At),
        });
        if self.start.page_sizes.is_empty() {
            let is_refused = !self.start.errors.is_empty();
            self.start.page_sizes.extend(large_pages(&text, is_refused));
        }
    }

    fn content(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix(START) {
            *self = Self {
                now: self.now.take(),
                ..Self::default()
            };
            self.start.at.clone_from(&self.now);
            self.start.mode = rest.split(')').next().map(str::to_owned);
            return;
        }
        match self.section {
            _ if line.is_empty() => return,
            Section::Over => return,
            Section::Running => return self.ends(line),
            _ => {}
        }
        let taken = match self.section {
            Section::Table => self.row(line),
            Section::Parameters => parameters::add_line(&mut self.start.parameters, line),
            Section::Error => self.error(line),
            _ => false,
        };
        if !taken {
            self.section = Section::Text;
            self.other(line);
        }
    }

    fn other(&mut self, line: &str) {
        if line.starts_with("Dump of system resources acquired") {
            self.start.page_sizes.clear();
        } else if line.starts_with("PAGESIZE") && line.contains("EXPECTED_PAGES") {
            self.section = Section::Table;
        } else if line.starts_with("System parameters with non-default values") {
            self.section = Section::Parameters;
        } else if let Some((_, rest)) = line.split_once("PMON started with pid=") {
            self.start.pmon = rest.split_once("OS id=").and_then(|(_, id)| number(id));
            self.section = Section::Running;
        } else if let Some(message) = line.strip_prefix("ERROR:") {
            self.section = Section::Error;
            self.error(message.trim());
        } else {
            self.identity(line);
            self.refusal(line);
        }
        self.remember(line);
    }

    /// Reads what ends an instance whose PMON runs. Errors that end none are of other processes.
    fn ends(&mut self, line: &str) {
        self.os_error(line);
        let lower = line.to_ascii_lowercase();
        if lower.contains("alter d") || lower.contains("shutting down") {
            self.section = Section::Over;
        } else if line.contains(END) {
            self.start.errors = mem::take(&mut self.later);
            self.add_error(line);
            self.section = Section::Over;
        } else if line.starts_with("ORA-") && self.later.len() + 1 < MAX_ERRORS {
            self.later.push(line.to_owned());
        }
    }

    /// Reads a row such as `2048K  0  769  0  NONE`; false if the line is none.
    fn row(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let unit = first.ends_with(['K', 'M', 'G']);
        let Some(page_size) = size(first)
            .filter(|_| unit)
            .and_then(|size| PageSize::new(size.0))
        else {
            return false;
        };
        let available = words.next().unwrap_or_default();
        let is_base = available == "Configured";
        let pages = |word: Option<&str>| word.and_then(|word| word.parse().ok()).map(Pages);
        let available = pages(Some(available));
        if !is_base && available.is_none() {
            return false;
        }
        let expected = pages(words.next());
        let allocated = pages(words.next());
        let error = words.collect::<Vec<_>>().join(" ");
        let error = (!matches!(error.as_str(), "" | "NONE" | "0")).then_some(error);
        self.start.page_sizes.push(LoggedPageRow {
            page_size,
            available,
            is_base,
            expected,
            allocated,
            error,
        });
        true
    }

    /// Reads the text after `ERROR:`, on the same or on the next line; true if the line belonged to it.
    fn error(&mut self, message: &str) -> bool {
        let lower = message.to_ascii_lowercase();
        let is_of_memory = |words| lower.contains(words);
        if lower.starts_with("ora-")
            || ![
                "large_pages",
                "large pages",
                "system pages",
                "shared global",
            ]
            .into_iter()
            .any(is_of_memory)
        {
            return false;
        }
        if let Some((_, value)) = lower.split_once("use_large_pages = ") {
            self.start.use_large_pages = word(value).map(str::to_ascii_uppercase);
        }
        self.add_error(message);
        true
    }

    fn add_error(&mut self, message: &str) {
        if self.start.errors.len() < MAX_ERRORS
            && self.start.errors.iter().all(|known| known != message)
        {
            self.start.errors.push(message.to_owned());
        }
    }

    /// Reads the release and the files of the instance.
    fn identity(&mut self, line: &str) {
        let version = || {
            let behind = |marker| line.split_once(marker).map(|(_, rest)| rest);
            behind(" Release ")
                .filter(|_| line.starts_with("Oracle "))
                .or_else(|| line.strip_prefix("Version "))
                .or_else(|| behind("ORACLE RDBMS Version: "))
        };
        if let Some(version) = version()
            .and_then(word)
            .map(|version| version.trim_end_matches(['.', ',']))
        {
            if version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.') {
                self.start.version = Some(version.to_owned());
            }
        } else if let Some((_, file)) = line.split_once("Using parameter settings in ") {
            self.start.parameter_file = file
                .split_once("pfile ")
                .and_then(|(_, path)| word(path))
                .map(str::to_owned);
        }
    }

    /// Reads `Linux-x86_64 Error: 28: No space left on device`, and of a process `fork failed with status: 12`.
    fn os_error(&mut self, line: &str) {
        let code = line
            .strip_prefix("Linux")
            .and_then(|rest| rest.split_once(" Error: "))
            .or_else(|| line.split_once(" failed with status: "));
        if let Some((_, code)) = code {
            self.start.os_error = number(code);
        }
    }

    /// Reads errors that prevent an instance from getting its memory.
    fn refusal(&mut self, line: &str) {
        self.os_error(line);
        let code = line.strip_prefix("ORA-").and_then(number::<u32>);
        // Targets that don't fit, a shared pool too small, and the operating system's refusals of shared memory.
        if line.contains(END)
            || line.starts_with("System cannot support SGA")
            || matches!(
                code,
                Some(821 | 838 | 839 | 843..=849 | 4031 | 27100..=27159 | 27300..=27302)
            )
        {
            self.add_error(line);
        }
        let needed = line.split_once("/dev/shm file system to be mounted for at least ");
        if let Some(needed) = needed.and_then(|(_, needed)| size(needed)) {
            self.add_error(&format!("MEMORY_TARGET needs {needed} in /dev/shm"));
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

/// The block `Large Pages Information` of 11.2 as a row of the table that later releases have. Its sizes in GB are rounded. `is_refused`:
/// whether the start ended there, so that the block has no pages of the instance. `text`: the lines as one, in lower case.
fn large_pages(text: &str, is_refused: bool) -> Option<LoggedPageRow> {
    let behind = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    let pages = |marker: &str| behind(marker).and_then(number).map(Pages);
    let page_size = PageSize::new(size(behind("large page size = ")?)?.0)?;
    let allocated =
        pages("large pages used by this instance: ").or_else(|| is_refused.then_some(Pages(0)))?;
    let unused = pages("large pages unused system wide = ")?;
    let more = pages("unused large pages by at least ")
        .or_else(|| pages("unused large pages by atleast "));
    // `total system global area size is 902 mb`: in gb it is rounded.
    let total = behind(" area size is ").or_else(|| behind(" region size is "));
    let total = total.filter(|total| total.split(' ').nth(1) != Some("gb."));
    let expected = if text.contains("(100%)") {
        Some(allocated)
    } else if let (Some(more), Pages(0)) = (more, unused) {
        Some(allocated.saturating_add(more))
    } else {
        total
            .and_then(size)
            .map(|total| page_size.pages_to_hold(total))
    };
    Some(LoggedPageRow {
        page_size,
        available: Some(allocated.saturating_add(unused)),
        is_base: false,
        expected,
        allocated: Some(allocated),
        error: None,
    })
}
