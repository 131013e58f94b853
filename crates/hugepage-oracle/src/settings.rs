//! What the files of an Oracle instance say of its last start and of the next one.

use hugepage_kernel::{InstanceFiles, Notes};

use crate::readers::locate::{Search, database_of};
use crate::readers::{LastStart, Parameters, alert_log};
use crate::start_limits::GRID_REGISTRY;

/// The settings of an instance as its files have them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What the next start will read; `None` if that is unknown.
    pub parameters: Option<Parameters>,
    /// The last start in the alert log.
    pub start: Option<LastStart>,
    /// The path of that log.
    pub log: Option<String>,
    /// Whether there is a parameter file that could not be read, such as an spfile in ASM.
    pub is_unread: bool,
}

impl Settings {
    /// The parameters of the start, then those on disk, as far as they are known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Parameters> {
        self.start.as_ref().map(|start| &start.parameters).into_iter().chain(&self.parameters)
    }

    /// The release, by the log.
    pub(crate) fn version(&self) -> Option<&str> {
        self.start.as_ref()?.version.as_deref()
    }

    /// The names of the database: DB_UNIQUE_NAME and DB_NAME by the parameters; then by the path of its alert log, in lower case.
    pub(crate) fn database_names(&self) -> Vec<String> {
        let of_parameters = self.known().flat_map(|known| ["db_unique_name", "db_name"].map(|name| known.get(name)));
        let of_log = self.log.as_deref().and_then(database_of);
        of_parameters.chain([of_log]).flatten().map(str::to_owned).collect()
    }

    /// Reads the parameter file, and the alert log in the DIAGNOSTIC_DEST that it names. `is_of`: whether a start there is the one.
    ///
    /// An spfile in ASM is what the last start read, with the `ALTER SYSTEM` statements of the log behind that start.
    pub(crate) fn on_disk(
        search: &Search<'_>,
        files: &InstanceFiles,
        is_of: impl FnOnce(&LastStart) -> bool,
        notes: &mut Notes,
    ) -> Self {
        let sid = &search.instance.sid;
        let read = |path: &str, notes: &mut Notes| {
            Some(Parameters::read(files, path, sid, notes)).filter(|parameters| !parameters.is_empty())
        };
        let path = search.parameter_file(files, notes);
        let found = path.as_ref().and_then(|path| read(path, notes));
        let is_unread = path.is_some() && found.is_none();
        let destination = found.as_ref().and_then(|parameters| parameters.get("diagnostic_dest"));
        let (log, start) = Search { diagnostic_dest: destination, ..*search }.last_start(files, notes).unzip();
        let start = start.filter(is_of);
        let logged = start.as_ref().and_then(|start| start.parameter_file.clone());
        let named = found.as_ref().and_then(|parameters| parameters.get("spfile")).map(str::to_owned);
        let is_asm = |path: &String| path.starts_with('+');
        let is_in_asm = match &found {
            Some(_) => named.as_ref().is_some_and(is_asm),
            // Without a file or a log, Grid Infrastructure knows the spfile.
            None => logged.as_ref().map_or(path.is_none() && files.root().exists(GRID_REGISTRY), is_asm),
        };
        let parameters = match (is_in_asm, found) {
            (true, _) => start.as_ref().zip(log.as_ref()).and_then(|(start, log)| {
                let changes = notes.keep(alert_log::changes_since_start(files, log)).flatten()?;
                let mut parameters = start.parameters.clone();
                changes.iter().filter(|change| change.sid == "*" || change.sid == *sid).for_each(|change| {
                    parameters.change(change);
                });
                Some(parameters)
            }),
            (false, Some(found)) => Some(found),
            // srvctl and STARTUP SPFILE= name a file that no home has.
            (false, None) => logged
                .filter(|path| path.starts_with('/') && files.root().exists(path))
                .and_then(|path| read(&path, notes)),
        };
        if is_in_asm && parameters.is_none() {
            notes.add(
                "the spfile is in ASM and no alert log of this start was found, so what the next start asks for is unknown",
            );
        }
        Self { parameters, start, log, is_unread: is_unread || is_in_asm }
    }
}
