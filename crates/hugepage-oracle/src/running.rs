//! What a running Oracle instance has that other servers have not.

use std::time::{SystemTime, UNIX_EPOCH};

use hugepage_assess::model::{Product, Requested};
use hugepage_facts::{LastStart, OracleKind, OracleSettings, RunningOracle};
use hugepage_kernel::proc::process;
use hugepage_kernel::{InstanceFiles, Notes, Root};

use crate::next_start::lock_rights;
use crate::readers::OracleInstance;
use crate::readers::locate::Search;
use crate::readers::parameters::{memory_target, sga_max_size};
use crate::readers::process::home_of;
use crate::readers::{oratab, startup};
use crate::settings::{on_disk, requested_by};

/// What the files of the running instance tell whose PMON is `pid` and has `started` then. `is_in_shm`: whether its SGA is files of
/// /dev/shm, where that may be seen.
pub fn read(
    root: &Root,
    (pid, started): (i32, Option<SystemTime>),
    files: &InstanceFiles,
    instance: &OracleInstance,
    is_in_shm: Option<bool>,
    notes: &mut Notes,
) -> RunningOracle {
    let exe = process::link(root, pid, "exe").ok().flatten();
    let home = exe
        .as_deref()
        .and_then(home_of)
        .map(str::to_owned)
        .or_else(|| {
            Some(
                oratab::read(files.root(), notes)
                    .into_iter()
                    .find(|entry| entry.sid == instance.sid)?
                    .home,
            )
        });
    let search = Search {
        instance,
        home: home.as_deref(),
        diagnostic_dest: None,
        pmon: Some((root, pid)),
    };
    let started =
        started.and_then(|at| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok());
    let is_of =
        |start: &LastStart| started.is_some_and(|started| startup::is_of(start, pid, started));
    RunningOracle {
        settings: on_disk(&search, files, is_of, notes),
        kind: instance.kind,
        lock_rights: lock_rights(root, pid),
        home,
        is_in_shm,
    }
}

/// What its start was asked for.
pub fn requested(oracle: &RunningOracle, notes: &mut Notes) -> Requested {
    let requested = requested_at_start(&oracle.settings, oracle.is_in_shm, oracle.kind);
    if matches!(
        requested.product,
        Product::Oracle {
            use_large_pages: None,
            ..
        }
    ) {
        notes.add(
            "use_large_pages is unknown: neither an alert log of this start nor a parameter file shows it; TRUE, the default, \
             is assumed",
        );
    }
    requested
}

/// What the start was asked for, by its log, else by the parameter file. `automatic`: whether the SGA was seen in files of /dev/shm.
fn requested_at_start(
    settings: &OracleSettings,
    automatic: Option<bool>,
    kind: OracleKind,
) -> Requested {
    let start = settings.start.as_ref();
    let of_log = start.and_then(|start| start.use_large_pages.as_deref());
    // A list of the parameters that were set shows that one is not among them.
    let is_default = start.is_some_and(|start| !start.parameters.is_empty());
    let setting = of_log.or_else(|| {
        if is_default {
            Some("TRUE")
        } else {
            settings.parameters.as_ref()?.get("use_large_pages")
        }
    });
    let memory_target = automatic
        .unwrap_or_else(|| start.is_some_and(|start| memory_target(&start.parameters).is_some()));
    let sga = start.and_then(|start| sga_max_size(&start.parameters));
    let mut requested = requested_by(setting, settings.version(), memory_target, sga);
    if let Product::Oracle { is_asm, .. } = &mut requested.product {
        *is_asm = kind == OracleKind::Asm;
    }
    requested
}
