//! Asks what the next start of a PostgreSQL server needs, of a running one and of a stopped one: its program gets the settings in
//! the files, on an empty data directory. A reader asks, as the owner of the files, who gains nothing by them, nor by the program: it is
//! one that only root, or this user, can change.

pub mod empty_cluster;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hugepage_facts::StartAnswer;
use hugepage_host::{AskStart, ServerStart, StartProgram, readers};
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::{Bytes, Root};
use hugepage_server::safe_directory::other_writer;
use hugepage_start::parts::is_known_library;
use rustix::process::geteuid;

use self::empty_cluster::EmptyCluster;

/// Settings of one server, bytes of a value, and libraries that it preloads.
const MAX_SETTINGS: usize = 500;
const MAX_VALUE: usize = 100;
const MAX_LIBRARIES: usize = 100;

/// Settings that have no part in the size of shared memory, and that name files, addresses and commands, which are nothing to
/// the empty data directory, or have secrets, which no command line may show.
const LEFT_OUT: &str = "\
    application_name archive_cleanup_command archive_command archive_library backtrace_functions \
    bonjour_name cluster_name config_file data_directory event_source extension_control_path \
    external_pid_file hba_file ident_file jit_provider krb_server_keyfile listen_addresses \
    local_preload_libraries log_directory log_filename log_line_prefix oauth_validator_libraries \
    primary_conninfo promote_trigger_file recovery_end_command recovery_target_name \
    recovery_target_time restore_command search_path session_preload_libraries \
    synchronized_standby_slots synchronous_standby_names syslog_ident temp_tablespaces \
    timezone_abbreviations unix_socket_directories unix_socket_group";
/// Settings that decide on the start by what only the server's own process has: its stack limit, and libraries elsewhere.
const OF_ITS_PROCESS: [&str; 2] = ["max_stack_depth", "dynamic_library_path"];

/// The error is why it is unknown.
type ProgramAnswer = Result<StartAnswer<Bytes>, String>;

/// Who may be asked about a start: nobody of a host that is not this one.
pub fn asked(root: &Root) -> Option<&'static AskStart<'static>> {
    if !root.is_live() {
        return None;
    }
    readers::answer_with(|question| {
        let answer = serde_json::from_str(question)
            .map_err(|error| error.to_string())
            .and_then(answer);
        serde_json::to_string(&answer.unwrap_or_else(StartAnswer::Unknown)).unwrap_or_default()
    });
    Some(&|start| ask(start).unwrap_or_else(StartAnswer::Unknown))
}

/// The answer of the process that is the user of the server.
fn ask(start: &ServerStart) -> ProgramAnswer {
    let text = |error: serde_json::Error| error.to_string();
    let answer = readers::ask(&serde_json::to_string(start).map_err(text)?)?;
    serde_json::from_str(&answer).map_err(text)
}

/// The answer for one start; the error is why there is none.
fn answer(start: ServerStart) -> ProgramAnswer {
    if geteuid().is_root() {
        return Err("its program is started only as the user of the server".to_owned());
    }
    let ServerStart {
        major, settings, ..
    } = &start;
    let program = match start.program {
        StartProgram::Running(pid) => check_running(pid)?,
        StartProgram::Packaged => check_installed(*major)?,
    };
    let text = settings
        .get("shared_preload_libraries")
        .map_or("", String::as_str);
    let libraries = library_names(text)?;
    let settings = passed(settings, &libraries)?;
    if let Some(name) = libraries.iter().find(|name| !is_known_library(name)) {
        return Err(format!(
            "the shared memory of the library {name} may depend on more than settings"
        ));
    }
    let megabytes =
        u32::try_from(start.wal_segment.0 >> 20).map_err(|_| "its WAL segments are too large")?;
    let cluster = EmptyCluster::new(&program, *major, megabytes)?;
    Ok(cluster.shared_memory(settings.into_iter()))
}

/// The settings that the program gets. The error names one without which its answer says nothing.
fn passed<'a>(
    settings: &'a BTreeMap<String, String>,
    libraries: &[&str],
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | ' ' | '-' | '_' | '/' | ',' | '+' | ':')
    };
    let mut passed = Vec::new();
    for (name, value) in settings {
        let (name, value) = (&**name, &**value);
        if let Some((prefix, _)) = name.split_once('.') {
            let is_of_library = || {
                libraries
                    .iter()
                    .any(|library| library.strip_suffix(".so").unwrap_or(library) == prefix)
            };
            // The server warns of invalid values and takes the default; it never refuses a start for them.
            if is_scalar(value) && is_of_library() {
                passed.push((name, value));
            }
            continue;
        }
        if LEFT_OUT.split(' ').any(|other| other == name) || name.starts_with("ssl") {
            continue;
        }
        if OF_ITS_PROCESS.contains(&name) {
            return Err(format!(
                "{name} is set, which depends on the process of the server"
            ));
        }
        // Its names were checked.
        let is_given = name == "shared_preload_libraries"
            || value.len() <= MAX_VALUE && value.chars().all(is_plain);
        if !is_given {
            return Err(format!(
                "the value of {name} is not given to another program"
            ));
        }
        passed.push((name, value));
    }
    match passed.len() {
        ..=MAX_SETTINGS => Ok(passed),
        count => Err(format!("it has {count} settings")),
    }
}

/// Whether the value is a number, with a unit or not, or a truth value: no text that a library could run.
fn is_scalar(value: &str) -> bool {
    let number = value.trim().trim_start_matches(['-', '+']);
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_number =
        number.starts_with(|c: char| c.is_ascii_digit()) && unit.trim_start().len() <= 3;
    is_number && unit.trim_start().chars().all(|c| c.is_ascii_alphabetic())
        || ["on", "off", "true", "false", "yes", "no"]
            .contains(&value.to_ascii_lowercase().as_str())
}

/// The names in the text of `shared_preload_libraries`, without `$libdir/`. The error is why they are not looked for, such as a path.
fn library_names(text: &str) -> Result<Vec<&str>, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for listed in text.split(',').map(str::trim) {
        let name = listed.strip_prefix("$libdir/").unwrap_or(listed);
        if name.is_empty()
            || name.starts_with('.')
            || !name.chars().all(is_plain)
            || names.len() == MAX_LIBRARIES
        {
            return Err(format!(
                "shared_preload_libraries names \"{listed}\", which is not run"
            ));
        }
        names.push(name);
    }
    Ok(names)
}

/// Where Debian's and Red Hat's packages have the server of a major version.
fn packaged(major: u32) -> impl Iterator<Item = PathBuf> {
    let paths = [
        "/usr/lib/postgresql/{}/bin/postgres",
        "/usr/pgsql-{}/bin/postgres",
    ];
    paths
        .into_iter()
        .map(move |path| PathBuf::from(path.replace("{}", &major.to_string())))
}

/// The program of the running server `pid`, if it may be run, and if a start of it by anybody would come to
/// the same as that of the server: with the same files, and without what its environment puts in their place.
fn check_running(pid: i32) -> Result<PathBuf, String> {
    const OTHER_FILES: [&str; 4] = ["LOCPATH", "TZDIR", "NLSPATH", "GCONV_PATH"];
    let root = Root::live();
    if namespace::container(&root, pid).is_some() {
        return Err("it runs in a mount namespace, or a root directory, of its own".to_owned());
    }
    let environment = root
        .read(&format!("/proc/{pid}/environ"))
        .map_err(|error| error.to_string())?;
    let names = environment
        .split('\0')
        .filter_map(|variable| Some(variable.split_once('=')?.0));
    if let Some(name) = names
        .into_iter()
        .find(|name| name.starts_with("LD_") || OTHER_FILES.contains(name))
    {
        return Err(format!("its environment has {name}"));
    }
    let link = process::link(&root, pid, "exe").map_err(|error| error.to_string())?;
    let program = check(Path::new(&link.ok_or("it is ending")?))?;
    let identity = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino()))
    };
    match identity(&program) {
        Some(found) if identity(&PathBuf::from(format!("/proc/{pid}/exe"))) == Some(found) => {
            Ok(program)
        }
        _ => Err(format!(
            "{} is not the program that it runs",
            program.display()
        )),
    }
}

/// A package's program of version `major`, if it may be run.
pub fn check_installed(major: u32) -> Result<PathBuf, String> {
    let program = packaged(major).find(|path| path.is_file());
    check(&program.ok_or_else(|| format!("no postgres program of version {major} was found"))?)
}

/// The path without links of `program`, if only root or this user can put something else in its place.
fn check(program: &Path) -> Result<PathBuf, String> {
    let refused = |why: String| format!("{} is not run: {why}", program.display());
    let writer = other_writer(program, |uid| uid == 0 || uid == geteuid().as_raw());
    match writer.map_err(|error| refused(error.to_string()))? {
        Some((at, Some(owner))) => Err(refused(format!(
            "{} belongs to {}",
            at.display(),
            user(owner)
        ))),
        Some((at, None)) => Err(refused(format!(
            "the group of {} or others can write to it",
            at.display()
        ))),
        None => fs::canonicalize(program).map_err(|error| refused(error.to_string())),
    }
}

/// The name of the user `uid`, or `uid 1000` where /etc/passwd has none.
pub fn user(uid: u32) -> String {
    let accounts = accounts::accounts(&Root::live())
        .unwrap_or_default()
        .into_iter();
    let mut names = accounts
        .filter(|account| account.uid == uid)
        .map(|account| account.name);
    names.next().unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn run_programs_that_no_other_user_can_replace() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("postgres");
        fs::copy("/bin/sh", &program).unwrap();
        assert_eq!(check(&program), Ok(program.canonicalize().unwrap()));
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check(&program).unwrap_err().contains("can write"));
        assert!(check(&directory.path().join("none/postgres")).is_err());
    }

    fn of(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        settings.iter().map(owned).collect()
    }

    #[test]
    fn settings_of_the_program() {
        let settings = of(&[
            ("archive_command", "curl -u me:secret"),
            ("datestyle", "iso, mdy"),
            ("log_line_prefix", "%m [%p] "),
            ("other.max", "7"),
            ("pg_stat_statements.max", "9000"),
            ("pg_stat_statements.track", "all"),
            ("primary_conninfo", "password"),
            ("shared_buffers", "1GB"),
            ("ssl_cert_file", "x"),
            ("timezone", "Europe/Berlin"),
        ]);
        let expected = [
            ("datestyle", "iso, mdy"),
            ("pg_stat_statements.max", "9000"),
            ("shared_buffers", "1GB"),
            ("timezone", "Europe/Berlin"),
        ];
        assert_eq!(
            passed(&settings, &["pg_stat_statements"]).unwrap(),
            expected
        );
        for (name, value) in [
            ("dynamic_library_path", "/tmp"),
            ("max_stack_depth", "2MB"),
            ("some_text", "a=b"),
            ("shared_buffers", "1GB\n"),
        ] {
            assert!(
                passed(&of(&[(name, value)]), &[])
                    .unwrap_err()
                    .contains(name)
            );
        }
        let long = "x".repeat(MAX_VALUE + 1);
        assert!(passed(&of(&[("wal_level", &long)]), &[]).is_err());
    }

    #[test]
    fn numbers_and_truth_values() {
        for value in ["5000", "1.5 GB", "-1", "on", "False", "64kB"] {
            assert!(is_scalar(value), "{value}");
        }
        for value in ["", "exec", "1; rm", "1GBofX", "system", "-"] {
            assert!(!is_scalar(value), "{value}");
        }
    }

    #[test]
    fn names_of_the_servers_own_libraries() {
        assert_eq!(library_names("").unwrap(), [""; 0]);
        assert_eq!(
            library_names("pg_stat_statements, $libdir/auto_explain ,x.so").unwrap(),
            ["pg_stat_statements", "auto_explain", "x.so"]
        );
        for text in [
            "/tmp/evil",
            "plugins/x",
            "../x",
            "$libdir/../x",
            "a,,b",
            "\"a\"",
            "a b",
            "..",
            "$libdir/",
        ] {
            assert!(
                library_names(text).unwrap_err().contains("not run"),
                "{text}"
            );
        }
        assert!(
            is_known_library("pg_prewarm")
                && is_known_library("auto_explain.so")
                && !is_known_library("evil")
        );
    }
}
