//! What a running Oracle instance has that other servers have not.

use std::time::{SystemTime, UNIX_EPOCH};

use hugepage_assess::model::Product;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, InstanceFiles};
use serde::{Deserialize, Serialize};

use crate::clusterware::Clusterware;
use crate::readers::locate::Search;
use crate::readers::oratab::HostOratab;
use crate::readers::process::home_of;
use crate::readers::{LastStart, OracleInstance, OracleKind};
use crate::requested::requested_at_start;
use crate::settings::{OracleSettings, Settings};
use crate::sga::ShmFiles;

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
    /// Grid Infrastructure; `None` if there is none.
    pub clusterware: Option<Clusterware>,
    /// The Managed Global Area: files of /dev/shm beside the SGA (18c and later). `None` if its memory may not be read.
    pub managed_global_area: Option<Bytes>,
}

/// The process PMON of an instance.
pub struct PmonProcess<'a> {
    /// The process id.
    pub pid: i32,
    /// When it started.
    pub started: Option<SystemTime>,
    /// The systemd service that started it.
    pub service: Option<&'a str>,
}

impl RunningOracle {
    /// The release, by the alert log.
    pub fn version(&self) -> Option<&str> {
        self.last_start.as_ref()?.version.as_deref()
    }

    /// PGA_AGGREGATE_LIMIT, by the alert log.
    pub fn pga_aggregate_limit(&self) -> Option<Bytes> {
        self.last_start.as_ref()?.parameters.size("pga_aggregate_limit")
    }

    /// What the files of a running instance tell of it. `shm_files`: the files of /dev/shm that it has, where they may be seen.
    pub fn read(
        oratab: &HostOratab<'_>,
        pmon: PmonProcess<'_>,
        files: &InstanceFiles,
        instance: &OracleInstance,
        shm_files: Option<ShmFiles>,
        notes: &mut Notes,
    ) -> (Self, OracleSettings) {
        let root = oratab.root();
        let PmonProcess { pid, started, service } = pmon;
        let exe = process::link(root, pid, "exe").ok().flatten();
        let of_oratab = || {
            let entries = oratab.entries(files, notes);
            entries.iter().find(|entry| entry.sid == instance.sid).map(|entry| entry.home.clone())
        };
        let home = exe.as_deref().and_then(home_of).map(str::to_owned).or_else(of_oratab);
        let search = Search { instance, home: home.as_deref(), diagnostic_dest: None, pmon: Some((root, pid)) };
        let is_of = |start: &LastStart| {
            let seconds = started.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let started = seconds.and_then(|seconds| i64::try_from(seconds.as_secs()).ok());
            started.is_some_and(|started| start.is_of(pid, started) == Some(true))
        };
        let settings = Settings::on_disk(&search, files, is_of, notes);
        let by_agent = || {
            service.is_some_and(|service| service.contains("ohasd"))
                || oratab
                    .entries(files, &mut Notes::default())
                    .iter()
                    .any(|entry| entry.by_agent && entry.sid == instance.sid)
        };
        let clusterware = settings.clusterware(instance, files, by_agent, notes);
        let automatic = shm_files.map(|files| files.are_sga);
        let requested =
            requested_at_start(settings.start.as_ref(), settings.parameters.as_ref(), automatic, instance.kind);
        if matches!(requested.product, Product::Oracle { use_large_pages: None, .. }) {
            notes.add(
                "use_large_pages is unknown: neither an alert log of this start nor a parameter file shows it; TRUE, the default, \
                 is assumed",
            );
        }
        let oracle = Self {
            kind: instance.kind,
            home,
            database: settings.database_names(),
            alert_log: settings.log,
            last_start: settings.start,
            clusterware,
            managed_global_area: shm_files.map(|files| files.managed_global_area),
        };
        (oracle, OracleSettings { requested, parameters: settings.parameters, is_unread: settings.is_unread })
    }
}
