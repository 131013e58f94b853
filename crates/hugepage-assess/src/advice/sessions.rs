//! One sentence on the page tables of a number of sessions: whether huge pages are worth it for them.

use hugepage_kernel::Bytes;

use crate::assessment::sessions::SessionForecast;
use crate::model::{HugePages, Product, Requested};

/// Below this a server has little to gain: the limit of the verdicts, too.
const SMALL: Bytes = Bytes(1 << 30);

/// Where the shared memory of a server is by choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// In huge pages, or it would take them.
    HugePages,
    /// In base pages: `huge_pages = off`, `use_large_pages = FALSE`.
    BasePages,
    /// In files of /dev/shm: MEMORY_TARGET, which rules out huge pages.
    MemoryTarget,
}

impl Choice {
    /// The choice of these settings.
    pub const fn by_settings(requested: &Requested) -> Self {
        match (requested.product, requested.huge_pages) {
            (Product::Oracle { memory_target: true, .. }, _) => Self::MemoryTarget,
            (_, HugePages::Off) => Self::BasePages,
            _ => Self::HugePages,
        }
    }
}

/// Whether it is worth it, and why.
pub fn worth(forecast: &SessionForecast, choice: Choice, memory: Option<Bytes>) -> String {
    let (Some(saving), Some(memory), Some(is_worth_it)) = (forecast.saving(), memory, forecast.is_worth_it) else {
        return "Whether huge pages are worth it is unknown: the memory of this host could not be read, or its kernel has none."
            .to_owned();
    };
    let sessions = forecast.sessions;
    let saved = format!("{sessions} sessions save {saving} of page tables of {memory} of memory");
    if is_worth_it {
        let what = match choice {
            Choice::HugePages => "Huge pages are worth it",
            Choice::BasePages => "Base pages are set, and huge pages would be worth it",
            Choice::MemoryTarget => {
                "SGA_TARGET in place of MEMORY_TARGET, so that the SGA can be in huge pages, is worth it"
            }
        };
        return format!("{what}: {saved}.");
    }
    let what = match choice {
        Choice::HugePages => "Huge pages are not worth a change for page tables",
        Choice::BasePages => "Base pages are set, and huge pages are not worth a change for page tables",
        Choice::MemoryTarget => "Giving up MEMORY_TARGET is not worth it for page tables",
    };
    let why = if forecast.shared_memory < SMALL { "shared memory is small" } else { "the sessions are few" };
    format!("{what}: {why}, {saved}, less than 1%.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assessment::page_tables::PageTables;
    use hugepage_kernel::PageSize;

    const GB: u64 = 1 << 30;

    fn said(sessions: u64, shared: u64, choice: Choice) -> String {
        let (base, huge) = (PageSize::from_kib(4).unwrap(), PageSize::from_kib(2048).unwrap());
        let memory = Some(Bytes(64 * GB));
        let now = PageTables::default();
        let forecast = SessionForecast::new(sessions, Bytes(shared), &now, base, &[huge], memory);
        worth(&forecast, choice, memory)
    }

    #[test]
    fn choices() {
        let oracle =
            |memory_target| Product::Oracle { memory_target, may_mix: true, use_large_pages: None, is_asm: false };
        for (product, huge_pages, expected) in [
            (Product::PostgreSql, HugePages::Try, Choice::HugePages),
            (Product::PostgreSql, HugePages::On, Choice::HugePages),
            (Product::PostgreSql, HugePages::Off, Choice::BasePages),
            (oracle(false), HugePages::Try, Choice::HugePages),
            (oracle(true), HugePages::Off, Choice::MemoryTarget),
        ] {
            let (huge_page_size, shared_buffers) = (None, Bytes(GB));
            let requested =
                Requested { product, huge_pages, huge_page_size, sysv: false, shared_buffers, io_uring: false };
            assert_eq!(Choice::by_settings(&requested), expected, "{requested:?}");
        }
    }

    #[test]
    fn sentences() {
        for (sessions, shared, choice, expected) in [
            (1024, 8 * GB, Choice::HugePages, "Huge pages are worth it: 1024 sessions save"),
            (1024, 8 * GB, Choice::BasePages, "Base pages are set, and huge pages would be worth it: 1024"),
            (1024, 8 * GB, Choice::MemoryTarget, "SGA_TARGET in place of MEMORY_TARGET, so that"),
            (
                10,
                8 * GB,
                Choice::HugePages,
                "Huge pages are not worth a change for page tables: the sessions are few, 10",
            ),
            (10, GB, Choice::HugePages, "the sessions are few"),
            (10, GB - 1, Choice::HugePages, "shared memory is small"),
            (
                200,
                GB / 2,
                Choice::BasePages,
                "huge pages are not worth a change for page tables: shared memory is small",
            ),
            (
                10,
                8 * GB,
                Choice::MemoryTarget,
                "Giving up MEMORY_TARGET is not worth it for page tables: the sessions are",
            ),
        ] {
            let text = said(sessions, shared, choice);
            assert!(text.contains(expected), "{text}");
            assert_eq!(text.ends_with("of 64 GB of memory, less than 1%."), text.contains("not worth"), "{text}");
        }
    }
}
