//! What the files of an Oracle instance say of its next start.

use crate::notes::Notes;
use crate::read::InstanceFiles;
use crate::read::oracle::locate::Search;
use crate::read::oracle::{LastStart, Parameters};

/// The settings of an instance as its files have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// The parameter file that a start reads; `None` if none was found or it has no parameter.
    pub(super) parameters: Option<Parameters>,
    /// The last start in the alert log.
    pub(super) start: Option<LastStart>,
    /// The path of that log.
    pub(super) log: Option<String>,
}

impl Settings {
    /// Reads the parameter file, and the alert log in the DIAGNOSTIC_DEST that it names.
    pub(super) fn on_disk(search: &Search<'_>, files: &InstanceFiles, notes: &mut Notes) -> Self {
        let parameters = search
            .parameter_file(files, notes)
            .map(|path| Parameters::read(files, &path, &search.instance.sid, notes))
            .filter(|parameters| !parameters.is_empty());
        let destination = parameters.as_ref().and_then(|parameters| parameters.get("diagnostic_dest"));
        let found = Search { diagnostic_dest: destination, ..*search }.last_start(files, notes);
        let (log, start) = found.unzip();
        Self { parameters, start, log }
    }
}
