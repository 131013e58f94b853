//! What the command line and the files of a running PostgreSQL server say.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hugepage_facts::{Configured, PostgreSqlServer, PostgreSqlSettings};
use hugepage_kernel::fields::value;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::proc::process::unless_gone;
use hugepage_kernel::proc::{process, program};
use hugepage_kernel::{Configuration, InstanceFiles, Notes, ReadError, Root, if_there, limit};

use crate::data_directory;
use crate::postgresql_settings::requested_by_settings;

/// The kernel tells the start of a process, and how long it is up, in hundredths of a second (proc(5)).
const START_PRECISION: Duration = Duration::from_millis(20);

/// Whether the configuration was found, and understood as far as it may be read.
pub fn has_configuration(settings: &PostgreSqlSettings) -> bool {
    let mut unclear = Notes::default();
    requested_by_settings(&settings.configured.effective(), &mut unclear);
    unclear.extend(settings.configured.unclear.clone());
    settings.is_there && (!settings.can_see || unclear.into_vec().is_empty())
}

/// The file that has changed since the server has `started`.
pub fn changed_since(
    settings: &PostgreSqlSettings,
    started: Option<SystemTime>,
) -> Option<&PathBuf> {
    let (at, path) = settings.last_change.as_ref()?;
    let started = started?;
    // A container's script makes the files and then becomes the server. A clock that was set since puts it outside of these two.
    let told = settings.told_start.zip(settings.first_child);
    let began = told
        .filter(|(told, child)| (started..=*child).contains(told))
        .map_or(started, |(told, _)| told);
    (*at > began.checked_add(START_PRECISION)?).then_some(path)
}

/// When the first child of `pid` started that is left; `None` if the kernel does not list them.
fn first_child(root: &Root, pid: i32) -> Option<SystemTime> {
    let first = |text: &str| text.split_ascii_whitespace().next()?.parse().ok();
    let child = process::read(root, pid, &format!("task/{pid}/children"), first);
    process::started(root, child.ok()???).ok()?
}

/// What the files of the postmaster `pid`, which are `its_files`, show: the server, its major version (`PG_VERSION`), and its settings.
pub fn files(
    root: &Root,
    its_files: &InstanceFiles,
    pid: i32,
    arguments: &[String],
    notes: &mut Notes,
) -> (PostgreSqlServer, Option<String>) {
    let options = postmaster_opts::settings(arguments);
    let of_command_line = |name: &str| {
        options
            .iter()
            .rev()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
    };
    let given = postmaster_opts::letter(arguments, 'D').filter(|path| path.starts_with('/'));
    // A postmaster works in its data directory. If that link may not be read, the command line tells the directory.
    let told = of_command_line("data_directory")
        .or(given.map(str::to_owned))
        .filter(|path| path.starts_with('/'));
    // -D names the directory of postgresql.conf, which may set another data_directory (SelectConfigFiles in guc.c).
    let of_configuration = given.map(|path| Path::new(path).join("postgresql.conf"));
    let mut unseen = Notes::default();
    let mut link = |name: &str| unseen.keep(process::link(root, pid, name)).flatten();
    let program = link("exe").and_then(|path| Some(path.strip_suffix(" (deleted)")?.to_owned()));
    // The kernel shows it from this program's root, and the files are found from the server's.
    let top = link("root").filter(|top| top != "/").unwrap_or_default();
    let directory = link("cwd")
        .map(|path| path.strip_prefix(&top).unwrap_or(&path).to_owned())
        .or(told);
    let in_directory = |file: &str| Some(Path::new(directory.as_deref()?).join(file));
    let there = |file: &Path| !its_files.is_absent(&file.to_string_lossy());
    let file = of_command_line("config_file")
        .map(Into::into)
        .or_else(|| of_configuration.filter(|file| there(file)))
        .or_else(|| in_directory("postgresql.conf"));
    let can_see = in_directory("PG_VERSION").is_some_and(|file| there(&file));
    let is_there = !can_see || file.as_deref().is_some_and(there);
    let mut configuration = Configuration::default();
    for file in [file, in_directory("postgresql.auto.conf")]
        .into_iter()
        .flatten()
    {
        configuration.add(its_files, &file, notes);
    }
    let changes = configuration.sources.iter();
    let changes = changes.filter_map(|path| unseen.keep(its_files.last_change(path)).flatten());
    let last_change = changes.max();
    let mut told = |file: &str, take: &dyn Fn(&str) -> Result<String, ReadError>| {
        let path = in_directory(file)?;
        unseen
            .keep(if_there(take(&path.to_string_lossy())))
            .flatten()
    };
    let version = told("PG_VERSION", &|path| its_files.version(path));
    let system_identifier = told("global/pg_control", &|path| match its_files
        .read_first(path, 8)?
        .try_into()
    {
        // In the byte order of the machine (pg_control.h).
        Ok(bytes) => Ok(u64::from_ne_bytes(bytes).to_string()),
        Err(_) => Err(its_files.root().content(path, "it is too short")),
    });
    let lock = told("postmaster.pid", &|path| {
        let bytes = its_files.read_first(path, limit::POSTMASTER_PID)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    // Whole seconds, in the third line (CreateLockFile in miscinit.c).
    let seconds = lock.and_then(|lock| lock.lines().nth(2)?.parse().ok());
    let told_start =
        seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    // A container repeats the command line of its first process.
    let is_first = |text: &str| {
        let last = value(text, "NSpid")?.split_ascii_whitespace().last();
        last.map(|last| last == "1")
    };
    let status = root.read_short(&format!("/proc/{pid}/status"), is_first);
    let is_first_process = unseen.keep(unless_gone(status)).flatten().flatten();
    let unseen = unseen.into_vec().into_iter().next();
    configuration.unclear = configuration.unclear.or(unseen);
    let configured = Configured::new(configuration, options);
    let settings = configured.effective();
    let mut unclear = Notes::default();
    let requested = requested_by_settings(&settings, &mut unclear);
    unclear.extend(configured.unclear.clone());
    notes.extend(unclear.into_vec());
    if !is_there {
        notes.add(format!(
            "the configuration file of the server with process {pid} is not in its data directory and its place is unknown"
        ));
    } else if configured.files.is_empty() && (!can_see || configured.unclear.is_some()) {
        notes.add(format!(
            "the configuration of the server with process {pid} could not be read, so its default huge_pages = {} is \
             assumed; run this on the host as root",
            requested.huge_pages
        ));
    }
    let settings = PostgreSqlSettings {
        can_see,
        is_there,
        last_change,
        told_start,
        first_child: first_child(root, pid),
        configured,
        has_rings: process::has_rings(root, pid).ok(),
        replaced_program: program,
        is_first_process,
        data: directory
            .as_ref()
            .map(|directory| data_directory::read(its_files, directory)),
        answer: None,
    };
    let (owner, inode) = program::working_directory(root, pid).unzip();
    let by_name = || its_files.root().inode(directory.as_deref()?);
    let server = PostgreSqlServer {
        inode: inode.or_else(by_name),
        owner,
        directory,
        system_identifier,
        settings,
    };
    (server, version)
}
