//! What a PostgreSQL server would ask for at its next start: one that runs and whose files have changed, or one that is stopped.
//! Only a program of its version can say. Whoever surveys the host asks one, and this says what the answer means.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hugepage_assess::model::{CrashRecovery, CurrentStart, Demand, Landing, Pending, PoolState};
use hugepage_kernel::postgresql::pg_control::{self, PgControl, RecoveryParameters};
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, Root};
use hugepage_start::{StartAnswer, majors};

use super::postgresql::{Configured, max_connections, requested_by_settings};
use super::postgresql_units::PLACES;

/// The program of a start.
#[derive(Clone, Copy, Debug)]
pub enum StartProgram {
    /// That of this running postmaster.
    Running(i32),
    /// That of a package: a file of the server names none.
    Packaged,
}

/// A start of which a program is asked.
#[derive(Debug)]
pub struct ServerStart<'a> {
    /// The program.
    pub program: StartProgram,
    /// The major version of the data directory.
    pub major: u32,
    /// `wal_segment_size` of the data directory.
    pub wal_segment: Bytes,
    /// The effective settings, names in lower case.
    pub settings: BTreeMap<&'a str, &'a str>,
}

/// Who is asked. Bounds how often a program runs, because the files are the server's user's.
pub type AskStart<'a> = dyn Fn(&ServerStart<'_>) -> StartAnswer<Bytes> + 'a;

/// The files of one server that decide on its next start.
pub(super) struct ServerFiles<'a> {
    pub(super) program: StartProgram,
    pub(super) version: &'a str,
    pub(super) directory: &'a str,
    pub(super) files: &'a InstanceFiles,
    pub(super) configured: &'a Configured,
}

impl ServerFiles<'_> {
    /// What the next start asks for, compared with the running server. `default`: the size of huge pages without
    /// `huge_page_size`. `pool_state`: what a start with pages of that size finds. The error is why it is unknown.
    pub(super) fn pending(
        &self,
        ask: &AskStart<'_>,
        current: &CurrentStart<'_>,
        default: Option<PageSize>,
        pool_state: impl FnOnce(Option<PageSize>) -> PoolState,
    ) -> Result<Pending, String> {
        if let Some(error) = &self.configured.files.missing {
            return Ok(Pending::Refused(error.clone()));
        }
        let (start, control) = self.question()?;
        let shared_memory = match ask(&start) {
            StartAnswer::Starts(size) => size,
            StartAnswer::Refuses(error) => return Ok(Pending::Refused(error)),
            StartAnswer::Unknown(why) => return Err(why),
        };
        if let Some(error) = self.recovery(&start, &control)? {
            return Ok(Pending::Refused(error));
        }
        // The notes on these values are there already.
        let requested = requested_by_settings(&start.settings, &mut Notes::default());
        let demand = Demand { requested, max_connections: max_connections(&start.settings), shared_memory };
        let size = requested.huge_page_size;
        let keeps_page = current.landing() != Landing::Hugetlb || current.page_size() == size.or(default);
        let is_same = keeps_page && current.is_met_by(&demand);
        Ok(if is_same { Pending::Unchanged } else { Pending::Changed(demand, pool_state(size)) })
    }

    /// What a program is asked, and what of its data directory it does not get. The error is why none is asked.
    pub(super) fn question(&self) -> Result<(ServerStart<'_>, PgControl), String> {
        if let Some(what) = &self.configured.files.unclear {
            return Err(what.clone());
        }
        let major = self.version.parse().ok().filter(|major| *major >= majors::FIRST_MAJOR);
        let major = major.ok_or_else(|| format!("PostgreSQL {} reports its need only while running", self.version))?;
        let (control, settings) = (self.control()?, self.configured.effective());
        Ok((ServerStart { program: self.program, major, wal_segment: control.wal_segment, settings }, control))
    }

    /// Whether it would recover after a crash with the settings that it was started with. `has_changed`: its files, since then.
    pub(super) fn crash_recovery(&self, has_changed: bool) -> CrashRecovery {
        if !pg_control::SIGNAL_FILES.iter().any(|name| self.has(name)) {
            return CrashRecovery::Possible;
        }
        if has_changed {
            let why = "whether the standby recovers after a crash depends on the settings that it was started with, and its files \
                       have changed since: they must be as high as those of its primary";
            return CrashRecovery::Unknown(why.to_owned());
        }
        let refusal = || {
            let major = self.version.parse().map_err(|_| format!("its version is {}", self.version))?;
            Ok(recovery_parameters(major, &self.configured.effective())?.refusal(&self.control()?.parameters))
        };
        match refusal() {
            Ok(refusal) => refusal.map_or(CrashRecovery::Possible, CrashRecovery::Refused),
            Err::<_, String>(why) => CrashRecovery::Unknown(format!(
                "whether the standby recovers after a restart or a crash is unknown: {why}"
            )),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.files.root().exists(&format!("{}/{name}", self.directory))
    }

    fn control(&self) -> Result<PgControl, String> {
        let bytes = self.files.read_first(&format!("{}/global/pg_control", self.directory), pg_control::LENGTH);
        let found = PgControl::parse(&bytes.map_err(|error| error.to_string())?);
        found.ok_or_else(|| "its pg_control is not one of a known version".to_owned())
    }

    /// What a start finds only in the data directory, which the program does not get: the server's error, or why that is unknown.
    fn recovery(&self, start: &ServerStart<'_>, control: &PgControl) -> Result<Option<String>, String> {
        let settings = &start.settings;
        let own = recovery_parameters(start.major, settings)?;
        if self.has("recovery.signal") {
            return Err("recovery.signal is in its data directory".to_owned());
        }
        if self.has("standby.signal") {
            return Ok(own.refusal(&control.parameters));
        }
        if own.max_prepared_transactions < control.parameters.max_prepared_transactions {
            return Err("max_prepared_transactions is lower, and transactions may be prepared".to_owned());
        }
        // Slots need room, and the wal_level of their time (slot.c, RestoreSlotFromDisk).
        let slots =
            self.files.list(&format!("{}/pg_replslot", self.directory)).map_err(|error| error.to_string())?.len();
        let wal_level = match settings.get("wal_level").map(|value| value.trim().to_ascii_lowercase()).as_deref() {
            Some("minimal") => 0,
            Some("logical") => 2,
            _ => 1,
        };
        let room = number(settings, "max_replication_slots", 10)?;
        if slots > 0 && (wal_level < control.wal_level || i32::try_from(slots).is_ok_and(|slots| slots > room)) {
            return Err(format!("it has {slots} replication slots, and wal_level or max_replication_slots is lower"));
        }
        Ok(None)
    }
}

/// What is there of the files that decide what a service starts: its units with their drop-ins, those of its template, and Debian's
/// options of a cluster. Not what becomes newer without a restart: units of generators, and Debian's own template by an upgrade.
pub(super) fn of_service(root: &Root, service: &str, configured: &Configured) -> Vec<PathBuf> {
    let template = service.split_once('@').map(|(name, _)| format!("{name}@.service"));
    let configuration = configured.files.sources.first();
    let mut files = Vec::from_iter(configuration.map(|file| file.with_file_name("pg_ctl.conf")));
    for name in [Some(service), template.as_deref()].into_iter().flatten() {
        for unit in PLACES.iter().filter(|place| !place.contains("/generator")).map(|place| format!("{place}/{name}")) {
            let drop_ins = PathBuf::from(format!("{unit}.d"));
            files.extend(root.list(&format!("{unit}.d")).iter().flatten().map(|name| drop_ins.join(name)));
            files.extend([PathBuf::from(unit), drop_ins]);
        }
    }
    let of_debian = |file: &PathBuf| file.ends_with("lib/systemd/system/postgresql@.service");
    files.into_iter().filter(|file| root.exists(&file.to_string_lossy()) && !of_debian(file)).collect()
}

/// What a standby with these settings has.
fn recovery_parameters(major: u32, settings: &BTreeMap<&str, &str>) -> Result<RecoveryParameters, String> {
    let hot_standby = settings.get("hot_standby").map_or("on", |value| value.trim());
    Ok(RecoveryParameters {
        hot_standby: !["off", "false", "no", "0"].contains(&&*hot_standby.to_ascii_lowercase()),
        max_connections: number(settings, "max_connections", 100)?,
        max_worker_processes: number(settings, "max_worker_processes", 8)?,
        max_wal_senders: number(settings, "max_wal_senders", 10)?,
        max_prepared_transactions: number(settings, "max_prepared_transactions", 0)?,
        max_locks_per_transaction: number(
            settings,
            "max_locks_per_transaction",
            majors::max_locks_per_transaction(major),
        )?,
    })
}

fn number(settings: &BTreeMap<&str, &str>, name: &str, default: i32) -> Result<i32, String> {
    let parse = |value: &&str| value.trim().parse().map_err(|_| format!("{name} = '{value}' is not a plain number"));
    settings.get(name).map_or(Ok(default), parse)
}
