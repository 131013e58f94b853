//! What the files of an Oracle instance say of its last start and of the next one, and what the next start of one that does not run
//! asks for by that.

use hugepage_assess::assessment::{Forecast, Outlook, Start};
use hugepage_assess::model::{
    HugePages, LockLimit, PoolFact, PoolState, Product, Requested, UseLargePages,
};
use hugepage_facts::{LastStart, OracleKind, OracleSettings, Parameters};
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, Pages};
use hugepage_sizing::Wants;

use crate::readers::locate::Search;
use crate::readers::{alert_log, parameters};
use crate::sga::{EXTRA, are_of, rounded};
use crate::start_limits::GRID_REGISTRY;

/// Parameters from which Oracle works out its SGA.
pub(crate) const SIZED_BY: [&str; 2] = ["memory_size", "memory_max_size"];

/// Why the need of the next start is unknown: a parameter of these names has changed since the last one.
pub(crate) fn not_computed(settings: &OracleSettings, names: &[&str]) -> Option<String> {
    let next = settings.parameters.as_ref()?;
    let last = |name: &str| settings.start.as_ref()?.parameters.set(name);
    let is_changed = |name: &str| next.set(name) != last(name);
    let name = names.iter().find(|name| is_changed(name))?;
    Some(format!(
        "{} has changed, and what a start takes with it is not known",
        name.to_ascii_uppercase()
    ))
}

/// Reads the parameter file, and the alert log in the DIAGNOSTIC_DEST that it names. `is_of`: whether a start there is the one.
///
/// An spfile in ASM is what the last start read, unless an `ALTER SYSTEM` in the log has changed it since.
pub(crate) fn on_disk(
    search: &Search<'_>,
    files: &InstanceFiles,
    is_of: impl FnOnce(&LastStart) -> bool,
    notes: &mut Notes,
) -> OracleSettings {
    let sid = &search.instance.sid;
    let read = |path: &str, notes: &mut Notes| {
        Some(parameters::read(files, path, sid, notes)).filter(|parameters| !parameters.is_empty())
    };
    let path = search.parameter_file(files, notes);
    let found = path.as_ref().and_then(|path| read(path, notes));
    let is_unread = path.is_some() && found.is_none();
    let named = |name: &str| found.as_ref()?.get(name);
    let (logs, start) = Search {
        diagnostic_dest: named("diagnostic_dest"),
        ..*search
    }
    .last_start(files, notes)
    .unzip();
    let start = start.filter(is_of);
    let logged = start
        .as_ref()
        .and_then(|start| start.parameter_file.clone());
    let is_asm = |path: &str| path.starts_with('+');
    let was_in_asm = logged.as_deref().is_some_and(is_asm);
    let is_in_asm = match &found {
        Some(_) => named("spfile").is_some_and(is_asm),
        // Without a file or a log, Grid Infrastructure knows the spfile.
        None => logged
            .as_deref()
            .map_or(path.is_none() && files.root().exists(GRID_REGISTRY), is_asm),
    };
    let parameters = match (is_in_asm, found) {
        (true, _) => start.as_ref().zip(logs.as_ref()).and_then(|(start, logs)| {
            let changes = |log: &String| alert_log::changed_since_start(files, log, sid);
            let mut changes = logs.iter().map(changes);
            let changed = notes.keep(changes.find_map(Result::transpose).transpose())?;
            if let Some(name) = &changed {
                notes.add(format!(
                    "ALTER SYSTEM has changed {name} since the start, so what the next start asks for is unknown"
                ));
            }
            changed.is_none().then(|| start.parameters.clone())
        }),
        (false, Some(_)) if was_in_asm => {
            notes.add(
                "its last start read an spfile in ASM, which the parameter file of its home does not name, so what the next start asks for is unknown",
            );
            None
        }
        (false, Some(found)) => Some(found),
        // srvctl and STARTUP SPFILE= name a file that no home has.
        (false, None) => logged
            .filter(|path| path.starts_with('/') && files.root().exists(path))
            .and_then(|path| read(&path, notes)),
    };
    if is_in_asm && start.is_none() {
        notes.add(
            "the spfile is in ASM and no alert log of this start was found, so what the next start asks for is unknown",
        );
    }
    OracleSettings {
        parameters,
        start,
        log: logs.and_then(|mut logs| logs.pop()),
        is_unread: is_unread || is_in_asm || was_in_asm,
    }
}

/// The settings of the next start that decide on its memory.
pub(crate) struct NextRequest<'a> {
    settings: &'a OracleSettings,
    /// Those of the file, else of the last start.
    parameters: Option<&'a Parameters>,
    /// `use_large_pages`; `None` if nothing shows it.
    pub use_large_pages: Option<String>,
    /// MEMORY_TARGET; `None` if it is not set.
    pub memory_target: Option<Bytes>,
    sga: Option<Bytes>,
    requested: Requested,
}

impl<'a> NextRequest<'a> {
    /// The files come first, and then the parameters of the last start.
    pub fn new(settings: &'a OracleSettings) -> Self {
        let start = settings.start.as_ref();
        let of_file = settings.parameters.as_ref();
        let parameters = of_file.or(start.map(|start| &start.parameters));
        let use_large_pages = parameters
            .and_then(|parameters| parameters.get("use_large_pages"))
            .map(str::to_ascii_uppercase)
            .or_else(|| start?.use_large_pages.clone());
        let of_log = start
            .filter(|_| of_file.is_none())
            .and_then(|start| start.dev_shm);
        let memory_target = parameters.and_then(parameters::memory_target).or(of_log);
        let sga = parameters.and_then(parameters::sga_max_size);
        let requested = requested_by(
            use_large_pages.as_deref(),
            settings.version(),
            memory_target.is_some(),
            sga,
        );
        Self {
            settings,
            parameters,
            use_large_pages,
            memory_target,
            sga,
            requested,
        }
    }

    /// The huge pages that it needs; `size`: that of the kernel's pages, `None` if it has none.
    pub fn wants(&self, size: Option<PageSize>, kind: OracleKind, home: &str) -> Wants {
        if self.settings.is_unread && self.settings.parameters.is_none() {
            return Wants::Unknown("its parameter file is not read".into());
        }
        if self.requested.huge_pages == HugePages::Off {
            return Wants::None("use_large_pages = FALSE".into());
        }
        let Some(size) = size else {
            return Wants::None("this kernel has no huge pages".into());
        };
        let unclear = || parameters::unclear(self.parameters?, self.sga);
        if let Some(why) = not_computed(self.settings, &SIZED_BY).or_else(unclear) {
            return Wants::Unknown(why);
        }
        if self.memory_target.is_some() {
            return Wants::None("MEMORY_TARGET: its SGA is files in /dev/shm".into());
        }
        let configured = || Some(size.pages_to_hold(rounded(self.sga?)).saturating_add(EXTRA));
        let pages = self.expected(size).or_else(configured);
        match pages.filter(|pages| *pages > Pages(0)) {
            Some(pages) => Wants::Pages(pages),

            // Database Reference, MEMORY_TARGET: an ASM instance has a default of its own.
            None if let (OracleKind::Asm, Some(parameters)) = (kind, self.parameters) => {
                if parameters.get("memory_target").is_some() {
                    Wants::Unknown(
                        "MEMORY_TARGET = 0, and the SGA that ASM has then is not known".into(),
                    )
                } else {
                    Wants::None("ASM uses MEMORY_TARGET unless its parameters say otherwise".into())
                }
            }
            None => Wants::Unknown(format!(
                "neither SGA_MAX_SIZE or SGA_TARGET in a parameter file nor a start with the same pools in an alert log was found for {home}"
            )),
        }
    }

    /// Whether it locks all of its SGA.
    pub fn locks_sga(&self) -> bool {
        self.parameters
            .is_some_and(|parameters| parameters.set("lock_sga").is_some())
    }

    /// EXPECTED_PAGES of the last start, if it had the same SGA_MAX_SIZE as the next one.
    fn expected(&self, size: PageSize) -> Option<Pages> {
        let start = self.settings.start.as_ref()?;
        let expected = start.pages_of(size)?.expected?;
        // A start that failed lists no parameters.
        let is_same = if start.parameters.is_empty() {
            self.sga.is_none_or(|sga| are_of(expected, sga, size))
        } else {
            let pools = Some(parameters::pools(&start.parameters));
            parameters::sga_max_size(&start.parameters) == self.sga
                && (self.sga.is_some() || self.parameters.map(parameters::pools) == pools)
        };
        is_same.then_some(expected)
    }

    /// The pages of a need that are a guess.
    fn surplus(&self, size: PageSize) -> Pages {
        if self.expected(size).is_some() {
            Pages(0)
        } else {
            EXTRA
        }
    }

    /// The size of System V segments that it asks for at least; `None` if none is certain.
    pub fn least_segments(&self, wants: &Wants, size: Option<PageSize>) -> Option<Bytes> {
        match (wants.pages(), size) {
            _ if self.memory_target.is_some() => None,
            (Some(pages @ Pages(1..)), Some(size)) => {
                Some(size.times(pages.saturating_sub(self.surplus(size))))
            }
            _ => self.sga,
        }
    }

    /// What it would get; `None` if its need is unknown, or if it needs no huge pages and would start.
    pub fn forecast(&self, wants: &Wants, pool_state: &PoolState) -> Option<Forecast> {
        let needed = pool_state
            .huge_page_size
            .zip(wants.pages())
            .map(|(size, pages)| size.times(pages));
        // On a kernel without huge pages ONLY fails, whatever the size is, and with MEMORY_TARGET on every kernel (ORA-27138).
        let has_none =
            self.memory_target.is_some() || matches!(pool_state.pool, PoolFact::Unsupported(_));
        let size = match wants {
            _ if pool_state.lock_limit.is_some_and(LockLimit::prevents_start) => needed,
            Wants::Pages(..) => Some(needed?),
            Wants::None(_) if has_none && self.requested.huge_pages == HugePages::On => None,
            _ => return None,
        };
        let start = Start {
            requested: self.requested,
            size,
            pool_state,
            own: Pages(0),
        };
        let forecast = start.forecast();
        let surplus = pool_state.huge_page_size.map(|size| self.surplus(size));
        // The last pages of a guess may not be needed.
        let outlook = match forecast.missing {
            Some(missing @ Pages(1..)) if Some(missing) <= surplus => Outlook::Unknown,
            _ => forecast.outlook,
        };
        Some(Forecast {
            outlook,
            ..forecast
        })
    }
}

/// What a start with `use_large_pages` = `setting` asks for; TRUE is assumed if it is `None`.
pub(crate) fn requested_by(
    setting: Option<&str>,
    version: Option<&str>,
    memory_target: bool,
    sga: Option<Bytes>,
) -> Requested {
    let use_large_pages = setting.and_then(UseLargePages::parse);
    let huge_pages = use_large_pages.unwrap_or(UseLargePages::True).huge_pages();
    // 11.2.0.2 took huge pages for all of the SGA or for nothing; earlier releases had no such parameter.
    Requested {
        product: Product::Oracle {
            memory_target,
            may_mix: !version.is_some_and(|version| version.starts_with("11.2.0.2")),
            use_large_pages,
            is_asm: false,
        },
        huge_pages,
        huge_page_size: None,
        sysv: false,
        shared_buffers: sga.unwrap_or_default(),
        io_uring: false,
    }
}
