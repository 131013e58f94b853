//! What a running Oracle instance has that other servers have not.

use std::time::{SystemTime, UNIX_EPOCH};

use hugepage_assess::model::{Product, Requested};
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, Root};
use serde::{Deserialize, Serialize};

use crate::readers::locate::Search;
use crate::readers::oratab;
use crate::readers::process::home_of;
use crate::readers::{LastStart, OracleInstance, OracleKind, Parameters};
use crate::settings::{Settings, requested_by};

/// The part of a running server that is Oracle's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningOracle {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// ORACLE_HOME; `None` if it is not visible.
    pub home: Option<String>,
    /// The names of its database, by the path of its alert log and by its parameters; empty if none is known.
    pub database: Vec<String>,
    /// The path of its alert log, as its processes see it; `None` if none is visible.
    pub alert_log: Option<String>,
    /// What the alert log shows of the start of this instance.
    pub last_start: Option<LastStart>,
    /// MEMORY_TARGET, by the alert log, else by the parameter file.
    pub memory_target: Option<Bytes>,
}

impl RunningOracle {
    /// The release, by the alert log.
    pub fn version(&self) -> Option<&str> {
        self.last_start.as_ref()?.version.as_deref()
    }

    /// What the files of the running instance tell whose PMON is `pid` and has `started` then, and what its start was asked for. `is_in_shm`: whether its SGA is files of /dev/shm, where that may be seen.
    pub fn read(
        root: &Root,
        (pid, started): (i32, Option<SystemTime>),
        files: &InstanceFiles,
        instance: &OracleInstance,
        is_in_shm: Option<bool>,
        notes: &mut Notes,
    ) -> (Self, Requested, Settings) {
        let exe = process::link(root, pid, "exe").ok().flatten();
        let home = exe.as_deref().and_then(home_of).map(str::to_owned).or_else(|| {
            Some(oratab::read(files.root(), notes).into_iter().find(|entry| entry.sid == instance.sid)?.home)
        });
        let search = Search { instance, home: home.as_deref(), diagnostic_dest: None, pmon: Some((root, pid)) };
        let started = started.and_then(|at| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok());
        let is_of = |start: &LastStart| started.is_some_and(|started| start.is_of(pid, started) == Some(true));
        let settings = Settings::on_disk(&search, files, is_of, notes);
        let requested = requested_at_start(&settings, is_in_shm, instance.kind);
        if matches!(requested.product, Product::Oracle { use_large_pages: None, .. }) {
            notes.add(
                "use_large_pages is unknown: neither an alert log of this start nor a parameter file shows it; TRUE, the default, \
                 is assumed",
            );
        }
        let known = settings.start.iter().map(|start| &start.parameters).chain(&settings.parameters);
        let memory_target = known.filter_map(Parameters::memory_target).next();
        let oracle = Self {
            memory_target,
            kind: instance.kind,
            home,
            database: settings.database_names(),
            alert_log: settings.log.clone(),
            last_start: settings.start.clone(),
        };
        (oracle, requested, settings)
    }
}

/// What the start was asked for, by its log, else by the parameter file. `automatic`: whether the SGA was seen in files of /dev/shm.
fn requested_at_start(settings: &Settings, automatic: Option<bool>, kind: OracleKind) -> Requested {
    let start = settings.start.as_ref();
    let of_parameters = start.and_then(|start| start.parameters.get("use_large_pages"));
    let of_log = of_parameters.or_else(|| start?.use_large_pages.as_deref());
    // A list of the parameters that were set shows that one is not among them.
    let is_default = start.is_some_and(|start| !start.parameters.is_empty());
    let setting =
        of_log.or_else(|| if is_default { Some("TRUE") } else { settings.parameters.as_ref()?.get("use_large_pages") });
    let memory_target =
        automatic.unwrap_or_else(|| start.is_some_and(|start| start.parameters.memory_target().is_some()));
    let sga = start.and_then(|start| start.parameters.sga_max_size());
    let mut requested = requested_by(setting, settings.version(), memory_target, sga);
    if let Product::Oracle { is_asm, .. } = &mut requested.product {
        *is_asm = kind == OracleKind::Asm;
    }
    requested
}
