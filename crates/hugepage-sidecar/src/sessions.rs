//! What a number of sessions takes by the model of [`page_tables`](hugepage_assess::assessment::page_tables), where each has
//! touched all of shared memory, and whether huge pages are worth it for them.

use hugepage_assess::assessment::page_tables::{PageTables, tables};
use hugepage_assess::model::{HugePages, Product, Requested};
use hugepage_kernel::{Bytes, PageSize};

/// The page sizes that a server can be moved to, as columns: 2 MB and 1 GB.
const HUGE_SIZES: [u64; 2] = [2 << 20, 1 << 30];
/// The least share of the host's memory that counts as a saving.
const MIN_SHARE_OF_MEMORY: f64 = 0.01;
/// Below this a server has little to gain: the limit of the verdicts, too.
const SMALL: Bytes = Bytes(1 << 30);

/// The page tables of a number of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionForecast {
    /// The sessions.
    pub sessions: u64,
    /// The shared memory that each of them has touched.
    pub shared_memory: Bytes,
    /// Page tables that each of them needs beside those for shared memory: those of the smallest process. `None` if unknown,
    /// as of a server that does not run; then they are not counted.
    pub own: Option<Bytes>,
    /// All page tables, in base pages.
    pub base: Bytes,
    /// The page tables in pages of [`HUGE_SIZES`]; `None` for a size that this kernel lacks.
    pub huge: [Option<Bytes>; 2],
    /// Whether the first of them saves as much of memory as a restart is worth; `None` if memory is unknown, or this kernel has
    /// no huge pages.
    pub is_worth_it: Option<bool>,
}

impl SessionForecast {
    /// `now`: the page tables of the server's processes. `sizes`: the huge page sizes of the kernel. `memory`: all of the host's.
    pub fn new(
        sessions: u64,
        shared_memory: Bytes,
        now: &PageTables,
        base: PageSize,
        sizes: &[PageSize],
        memory: Option<Bytes>,
    ) -> Self {
        let of_own = Bytes(now.min.unwrap_or_default().0.saturating_mul(sessions));
        let at = |size| of_own.saturating_add(tables(sessions, shared_memory, size));
        let huge = HUGE_SIZES.map(|size| PageSize::new(size).filter(|size| sizes.contains(size)).map(at));
        let base = at(base);
        let mut forecast = Self { sessions, shared_memory, own: now.min, base, huge, is_worth_it: None };
        forecast.is_worth_it = forecast.saving().zip(memory).map(|(saving, memory)| is_worth_it(saving, memory));
        forecast
    }

    /// What the first huge page size saves that this kernel has.
    pub fn saving(&self) -> Option<Bytes> {
        self.huge.iter().flatten().next().map(|huge| self.base.saturating_sub(*huge))
    }
}

#[allow(clippy::cast_precision_loss)]
fn is_worth_it(saving: Bytes, memory: Bytes) -> bool {
    saving.0 as f64 >= memory.0 as f64 * MIN_SHARE_OF_MEMORY
}

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

    const KB: u64 = 1 << 10;
    const GB: u64 = 1 << 30;

    fn size(kb: u64) -> PageSize {
        PageSize::from_kib(kb).unwrap()
    }

    fn now(min: Option<u64>) -> PageTables {
        PageTables { min: min.map(Bytes), ..PageTables::default() }
    }

    /// 1024 sessions on 10 GB: 2 MB a GB and session in 4 kB pages.
    #[test]
    fn page_tables_of_sessions() {
        let sizes = [size(2048), size(1 << 20)];
        let of = |sessions, gb, min| {
            SessionForecast::new(sessions, Bytes(gb * GB), &now(min), size(4), &sizes, Some(Bytes(64 * GB)))
        };
        let many = of(1024, 10, None);
        assert_eq!(many.base, Bytes(20 * GB));
        assert_eq!(many.huge, [Some(Bytes(1024 * 8 * KB + 9 * 4 * KB)), Some(Bytes(1024 * 80))]);
        assert_eq!((many.own, many.is_worth_it), (None, Some(true)));
        let with_own = of(1024, 10, Some(300 * KB));
        assert_eq!(with_own.base, Bytes(20 * GB + 1024 * 300 * KB));
        assert_eq!(with_own.saving(), many.saving(), "private memory has the same page tables in any case");
        // Few sessions, or a small SGA: less than 1% of 64 GB.
        assert_eq!((of(20, 10, None).is_worth_it, of(1024, 0, None).is_worth_it), (Some(false), Some(false)));
        let no_huge = SessionForecast::new(1024, Bytes(GB), &now(None), size(4), &[], Some(Bytes(GB)));
        assert_eq!((no_huge.huge, no_huge.saving(), no_huge.is_worth_it), ([None; 2], None, None));
        let unknown = SessionForecast::new(1024, Bytes(GB), &now(None), size(4), &sizes, None);
        assert_eq!(unknown.is_worth_it, None);
    }

    fn said(sessions: u64, shared: u64, choice: Choice) -> String {
        let (base, huge) = (size(4), size(2048));
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
