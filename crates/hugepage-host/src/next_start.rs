//! What a PostgreSQL server would ask for at its next start: one that runs and whose files have changed, or one that is stopped.
//! Only a program of its version can say. Whoever surveys the host asks one, and this says what the answer means.

use std::collections::BTreeMap;

use hugepage_assess::model::{CrashRecovery, CurrentStart, Demand, Pending, PoolState, Requested};
use hugepage_facts::{Configured, DataDirectory, Landing, StartAnswer};
use hugepage_kernel::postgresql::pg_control::{PgControl, RecoveryParameters};
use hugepage_kernel::{Bytes, Notes, PageSize};
use hugepage_start::majors;
use serde::{Deserialize, Serialize};

use crate::postgresql_settings::{max_connections, requested_by_settings};

/// The program of a start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum StartProgram {
    /// That of this running postmaster.
    Running(i32),
    /// That of a package: a file of the server names none.
    Packaged,
}

/// A start of which a program is asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerStart {
    /// The program.
    pub program: StartProgram,
    /// The major version of the data directory.
    pub major: u32,
    /// `wal_segment_size` of the data directory.
    pub wal_segment: Bytes,
    /// The effective settings, names in lower case.
    pub settings: BTreeMap<String, String>,
}

/// Who is asked. Bounds how often a program runs, because the files are the server's user's.
pub type AskStart<'a> = dyn Fn(&ServerStart) -> StartAnswer<Bytes> + 'a;

/// What decides on the next start of one server.
pub(super) struct StartFiles<'a> {
    pub(super) version: &'a str,
    pub(super) data: &'a DataDirectory,
    pub(super) configured: &'a Configured,
}

impl StartFiles<'_> {
    /// What `program` is asked. The error is why none is asked.
    pub(super) fn question(&self, program: StartProgram) -> Result<ServerStart, String> {
        if let Some(what) = &self.configured.unclear {
            return Err(what.clone());
        }
        let major = self.major().filter(|major| *major >= majors::FIRST_MAJOR);
        let major = major.ok_or_else(|| {
            format!(
                "PostgreSQL {} reports its need only while running",
                self.version
            )
        })?;
        Ok(ServerStart {
            program,
            major,
            wal_segment: self.data.control.clone()?.wal_segment,
            settings: self
                .configured
                .effective()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    fn major(&self) -> Option<u32> {
        self.version.parse().ok()
    }

    /// What the next start asks for by the program's `answer`, compared with the running server. `default`: the size of huge pages without
    /// `huge_page_size`. `pool_state`: what a start finds. The error is why it is unknown.
    pub(super) fn pending(
        &self,
        answer: &StartAnswer<Bytes>,
        current: &CurrentStart<'_>,
        default: Option<PageSize>,
        pool_state: impl FnOnce(&Requested) -> PoolState,
    ) -> Result<Pending, String> {
        let shared_memory = match answer {
            StartAnswer::Starts(size) => *size,
            StartAnswer::Refuses(error) => return Ok(Pending::Refused(error.clone())),
            StartAnswer::Unknown(why) => return Err(why.clone()),
        };
        let settings = self.configured.effective();
        if let Some(error) = self.recovery(&settings)? {
            return Ok(Pending::Refused(error));
        }
        // The notes on these values are there already.
        let requested = requested_by_settings(&settings, &mut Notes::default());
        let demand = Demand {
            requested,
            max_connections: max_connections(&settings),
            shared_memory,
        };
        let size = requested.huge_page_size;
        let keeps_page =
            current.landing() != Landing::Hugetlb || current.page_size() == size.or(default);
        let is_same = keeps_page && current.is_met_by(&demand);
        Ok(if is_same {
            Pending::Unchanged
        } else {
            Pending::Changed(demand, pool_state(&requested))
        })
    }

    /// Whether it would recover after a crash with the settings that it was started with. `has_changed`: its files, since then.
    pub(super) fn crash_recovery(&self, has_changed: bool) -> CrashRecovery {
        if !self.data.is_standby && !self.data.recovers {
            return CrashRecovery::Possible;
        }
        if has_changed {
            let why = "whether the standby recovers after a crash depends on the settings that it was started with, and its files \
                       have changed since: they must be as high as those of its primary";
            return CrashRecovery::Unknown(why.to_owned());
        }
        let refusal = || {
            let major = self.major();
            let major = major.ok_or_else(|| format!("its version is {}", self.version))?;
            let control = self.data.control.clone();
            Ok(recovery_parameters(major, &self.configured.effective())?
                .refusal(&control?.parameters))
        };
        match refusal() {
            Ok(refusal) => refusal.map_or(CrashRecovery::Possible, CrashRecovery::Refused),
            Err::<_, String>(why) => CrashRecovery::Unknown(format!(
                "whether the standby recovers after a restart or a crash is unknown: {why}"
            )),
        }
    }

    /// What a start finds only in the data directory, which the program does not get: the server's error, or why that is unknown.
    fn recovery(&self, settings: &BTreeMap<&str, &str>) -> Result<Option<String>, String> {
        let PgControl {
            wal_level: written,
            parameters,
            ..
        } = self.data.control.clone()?;
        let own = recovery_parameters(self.major().unwrap_or_default(), settings)?;
        if self.data.recovers {
            return Err("recovery.signal is in its data directory".to_owned());
        }
        if self.data.is_standby {
            return Ok(own.refusal(&parameters));
        }
        if own.max_prepared_transactions < parameters.max_prepared_transactions {
            return Err(
                "max_prepared_transactions is lower, and transactions may be prepared".to_owned(),
            );
        }
        // Slots need room, and the wal_level of their time (slot.c, RestoreSlotFromDisk).
        let slots = self.data.slots.clone()?;
        let wal_level = match settings
            .get("wal_level")
            .map(|value| value.trim().to_ascii_lowercase())
            .as_deref()
        {
            Some("minimal") => 0,
            Some("logical") => 2,
            _ => 1,
        };
        let room = number(settings, "max_replication_slots", 10)?;
        if slots > 0
            && (wal_level < written || i32::try_from(slots).is_ok_and(|slots| slots > room))
        {
            return Err(format!(
                "it has {slots} replication slots, and wal_level or max_replication_slots is lower"
            ));
        }
        Ok(None)
    }
}

/// What a standby with these settings has.
fn recovery_parameters(
    major: u32,
    settings: &BTreeMap<&str, &str>,
) -> Result<RecoveryParameters, String> {
    let hot_standby = settings
        .get("hot_standby")
        .map_or("on", |value| value.trim());
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
    let parse = |value: &&str| {
        value
            .trim()
            .parse()
            .map_err(|_| format!("{name} = '{value}' is not a plain number"))
    };
    settings.get(name).map_or(Ok(default), parse)
}
