//! What the files of an Oracle instance say of its next start.

use hugepage_assess::model::{
    Asked, Clusterware, CurrentStart, Demand, Landing, LockLimit, Pending, PoolState, Segment,
};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, InstanceFiles, PageSize};
use hugepage_oracle::readers::locate::Search;
use hugepage_oracle::readers::{LastStart, Parameters, alter_system};
use hugepage_oracle::sga_size::{EXTRA, rounded};

/// The settings of an instance as its files have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// What the next start will read; `None` if that is unknown.
    pub(super) parameters: Option<Parameters>,
    /// The last start in the alert log.
    pub(super) start: Option<LastStart>,
    /// The path of that log.
    pub(super) log: Option<String>,
    /// Whether the spfile is in ASM, where only the instance can read it.
    pub(super) is_in_asm: bool,
}

/// What the files of a running instance say of its start and of the next one.
pub(super) struct OracleSettings {
    /// What the start was asked for.
    pub(super) asked: Asked,
    pub(super) on_disk: Settings,
    /// Grid Infrastructure.
    pub(super) clusterware: Option<Clusterware>,
}

impl Settings {
    /// Reads the parameter file, and the alert log in the DIAGNOSTIC_DEST that it names. `is_of`: whether a start in that
    /// log is the one in question.
    ///
    /// An spfile in ASM is what the last start read, with the `ALTER SYSTEM` statements of the log behind that start.
    pub(super) fn on_disk(
        search: &Search<'_>,
        files: &InstanceFiles,
        is_of: impl FnOnce(&LastStart) -> bool,
        notes: &mut Notes,
    ) -> Self {
        let sid = &search.instance.sid;
        let read = |path: &str, notes: &mut Notes| {
            Some(Parameters::read(files, path, sid, notes)).filter(|parameters| !parameters.is_empty())
        };
        let found = search.parameter_file(files, notes).and_then(|path| read(&path, notes));
        let destination = found.as_ref().and_then(|parameters| parameters.get("diagnostic_dest"));
        let (log, start) = Search { diagnostic_dest: destination, ..*search }.last_start(files, notes).unzip();
        let start = start.filter(is_of);
        let logged = start.as_ref().and_then(|start| start.parameter_file.clone());
        let named = found.as_ref().and_then(|parameters| parameters.get("spfile")).map(str::to_owned);
        let is_asm = |path: &String| path.starts_with('+');
        let is_in_asm = match &found {
            Some(_) => named.as_ref().is_some_and(is_asm),
            None => logged.as_ref().is_some_and(is_asm),
        };
        let parameters = match (is_in_asm, found) {
            (true, _) => start.as_ref().zip(log.as_ref()).and_then(|(start, log)| {
                let changes = notes.keep(alter_system::since_last_start(files, log)).flatten()?;
                let mut parameters = start.parameters.clone();
                changes.iter().filter(|change| change.sid == "*" || change.sid == *sid).for_each(|change| {
                    parameters.change(change);
                });
                Some(parameters)
            }),
            (false, Some(found)) => Some(found),
            // srvctl and STARTUP SPFILE= name a file that no home has.
            (false, None) => {
                logged.filter(|path| path.starts_with('/') && files.exists(path)).and_then(|path| read(&path, notes))
            }
        };
        if is_in_asm && parameters.is_none() {
            notes.add(
                "the spfile is in ASM and no alert log of this start was found, so what the next start asks for is unknown",
            );
        }
        Self { parameters, start, log, is_in_asm }
    }
}

/// What the next start asks for, compared with what runs. `running`: the settings of the running instance as far as its
/// log shows them. `lock_limit`: the permission that a start lacks.
pub(super) fn pending(
    settings: &Settings,
    current: &CurrentStart<'_>,
    ground: PoolState,
    lock_limit: impl FnOnce() -> Option<LockLimit>,
    base: impl Fn(&Parameters) -> Asked,
) -> Pending {
    let Some(next) = &settings.parameters else {
        return if settings.is_in_asm { Pending::Unknown } else { Pending::Unchanged };
    };
    let Some(segment) = current.segment else { return Pending::Unchanged };
    let asked = base(next);
    let same_size = match (&settings.start, next.sga_max_size(), current.huge_page_size) {
        (_, None, _) => true,
        (Some(start), size, _) if !start.parameters.is_empty() => start.parameters.sga_max_size() == size,
        (_, Some(size), Some(page)) => is_about(segment, size, page),
        _ => true,
    };
    let same = asked.huge_pages == current.asked.huge_pages && asked.product == current.asked.product;
    if same_size && same {
        return Pending::Unchanged;
    }
    let shared_memory = match (next.sga_max_size(), current.huge_page_size) {
        (Some(size), Some(page)) if !same_size => page.times(page.pages_to_hold(rounded(size)).saturating_add(EXTRA)),
        _ => segment.to_reserve,
    };
    let lock_limit = match lock_limit() {
        // Whoever has huge pages was let, whatever its groups are now.
        Some(LockLimit::ShmGroup { .. } | LockLimit::Either { limit: None, .. })
            if segment.landing == Landing::Hugetlb =>
        {
            None
        }
        // It is not in the group, so memlock let it.
        Some(LockLimit::Either { limit: Some(limit), .. }) if segment.landing == Landing::Hugetlb => {
            Some(LockLimit::Memlock { limit, others: Bytes(0) })
        }
        limit => limit,
    };
    // An assessment does not use the number of connections.
    Pending::Changed(Demand { asked, max_connections: 0, shared_memory }, PoolState { lock_limit, ..ground })
}

/// Whether a segment is that of an SGA with this SGA_MAX_SIZE, which the instance rounds.
fn is_about(segment: &Segment, size: Bytes, page: PageSize) -> bool {
    let wanted = page.pages_to_hold(rounded(size));
    let has = page.pages_to_hold(segment.to_reserve);
    has >= page.pages_to_hold(size) && has <= wanted.saturating_add(EXTRA).saturating_add(EXTRA)
}
