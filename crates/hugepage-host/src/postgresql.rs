//! What a PostgreSQL server was asked for, from its command line and its files; of files that may not be read, the defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hugepage_assess::model::{HugePages, Product, Requested};
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::postgresql::{postmaster_opts, size_setting};
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, ReadError, Root};
use hugepage_start::parts;
use serde::{Deserialize, Serialize};

/// The part of a running server that is PostgreSQL's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PostgreSqlServer {
    /// The data directory, as the server itself sees it.
    pub directory: Option<String>,
    /// Device and inode of it: the same from wherever it is seen, whatever is mounted over its path elsewhere.
    pub inode: Option<(u64, u64)>,
    /// The system identifier (pg_control), as pg_controldata prints it.
    pub system_identifier: Option<String>,
}

/// What a server is configured with.
#[derive(Clone, Debug)]
pub struct PostgreSqlSettings {
    /// The settings of huge pages, where the command line counts before files.
    pub requested: Requested,
    /// Whether the configuration was found, and understood as far as it may be read; a server does not start without one.
    pub has_configuration: bool,
    /// The file or directory of the configuration that has changed last, of a missing file its directory; `None` if no time is seen.
    pub last_change: Option<(SystemTime, PathBuf)>,
    /// All settings.
    pub configured: Configured,
}

/// Everything that a server is configured with.
#[derive(Clone, Debug)]
pub struct Configured {
    /// The configuration files.
    pub files: Configuration,
    /// The settings of its command line, which count before those of files; of several with one name the last.
    pub options: Vec<(String, String)>,
}

impl Configured {
    /// The effective settings.
    pub fn effective(&self) -> BTreeMap<&str, &str> {
        self.with(&self.options)
    }

    /// The settings of its files with these on the command line.
    fn with<'a>(&'a self, options: &'a [(String, String)]) -> BTreeMap<&'a str, &'a str> {
        self.files.settings.iter().chain(options).map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// An option without which a start may need another size of shared memory.
    pub fn option_with_effect(&self) -> Option<&str> {
        let (all, alone) = (self.effective(), self.with(&[]));
        let value = |of: &BTreeMap<&str, &str>, name: &str| of.get(name).map(|value| value.to_ascii_lowercase());
        let mut names = self.options.iter().map(|(name, _)| name.as_str());
        names.find(|name| parts::has_effect(name) && value(&all, name) != value(&alone, name))
    }
}

/// What the files of the postmaster `pid`, which are `its_files`, show: the server, its major version (`PG_VERSION`), and its settings.
pub fn files(
    root: &Root,
    its_files: &InstanceFiles,
    pid: i32,
    arguments: &[String],
    notes: &mut Notes,
) -> (PostgreSqlServer, Option<String>, PostgreSqlSettings) {
    let options = postmaster_opts::settings(arguments);
    let of_command_line =
        |name: &str| options.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    let given = postmaster_opts::letter(arguments, 'D').filter(|path| path.starts_with('/'));
    // A postmaster works in its data directory. If that link may not be read, the command line tells the directory.
    let told = of_command_line("data_directory").or(given.map(str::to_owned)).filter(|path| path.starts_with('/'));
    // -D names the directory of postgresql.conf, which may set another data_directory (SelectConfigFiles in guc.c).
    let of_configuration = given.map(|path| Path::new(path).join("postgresql.conf"));
    let link = |name: &str| process::link(root, pid, name).ok().flatten();
    // The kernel shows it from this program's root, and the files are found from the server's.
    let top = link("root").filter(|top| top != "/").unwrap_or_default();
    let directory = link("cwd").map(|path| path.strip_prefix(&top).unwrap_or(&path).to_owned()).or(told);
    let in_directory = |file: &str| Some(Path::new(directory.as_deref()?).join(file));
    let there = |file: &Path| its_files.open(&file.to_string_lossy()).is_ok();
    let file = of_command_line("config_file")
        .map(Into::into)
        .or_else(|| of_configuration.filter(|file| there(file)))
        .or_else(|| in_directory("postgresql.conf"));
    let can_see = in_directory("PG_VERSION").is_some_and(|file| there(&file));
    let is_there = !can_see || file.as_deref().is_some_and(there);
    let mut configuration = Configuration::default();
    for file in [file, in_directory("postgresql.auto.conf")].into_iter().flatten() {
        configuration.add(its_files, &file, notes);
    }
    let configured = Configured { files: configuration, options };
    let settings = configured.effective();
    let mut unclear = Notes::default();
    let requested = requested_by_settings(&settings, &mut unclear);
    let unclear: Vec<_> = unclear.into_vec().into_iter().chain(configured.files.unclear.clone()).collect();
    let has_configuration = is_there && (!can_see || unclear.is_empty());
    unclear.into_iter().for_each(|what| notes.add(what));
    if !is_there {
        notes.add(format!(
            "the configuration file of the server with process {pid} is not in its data directory and its place is unknown"
        ));
    } else if configured.files.settings.is_empty() && (!can_see || configured.files.unclear.is_some()) {
        notes.add(format!(
            "the configuration of the server with process {pid} could not be read, so its default huge_pages = {} is \
             assumed; run this as root",
            requested.huge_pages
        ));
    }
    let last_change = configured.files.sources.iter().filter_map(|path| its_files.last_change(path)).max();
    let mut told = |file: &str, take: &dyn Fn(&str) -> Result<String, ReadError>| {
        match take(&in_directory(file)?.to_string_lossy()) {
            Ok(text) => Some(text),
            // Who may not read the files has been told so.
            Err(ReadError::Io { .. }) => None,
            Err(error) => notes.keep(Err(error)),
        }
    };
    let version = told("PG_VERSION", &|path| its_files.version(path));
    let system_identifier = told("global/pg_control", &|path| match its_files.read_first(path, 8)?.try_into() {
        // In the byte order of the machine (pg_control.h).
        Ok(bytes) => Ok(u64::from_ne_bytes(bytes).to_string()),
        Err(_) => Err(its_files.root().content(path, "it is too short")),
    });
    let settings = PostgreSqlSettings { requested, has_configuration, last_change, configured };
    let inode = directory.as_deref().and_then(|directory| its_files.root().inode(directory));
    (PostgreSqlServer { directory, inode, system_identifier }, version, settings)
}

/// What effective settings ask for, and the server's defaults for those that it does not have.
pub fn requested_by_settings(settings: &BTreeMap<&str, &str>, notes: &mut Notes) -> Requested {
    let huge_pages = understood(settings, "huge_pages", "on, off or try", HugePages::parse, notes);
    let page_size = understood(settings, "huge_page_size", "a size", |text| size_setting(text, 1 << 10), notes);
    let buffers = understood(settings, "shared_buffers", "a size", |text| size_setting(text, 8 << 10), notes);
    Requested {
        product: Product::PostgreSql,
        huge_pages: huge_pages.unwrap_or(HugePages::Try),
        huge_page_size: page_size.and_then(|size| PageSize::new(size.0)),
        sysv: settings.get("shared_memory_type").is_some_and(|text| text.eq_ignore_ascii_case("sysv")),
        shared_buffers: buffers.unwrap_or(Bytes(128 << 20)),
        io_uring: settings.get("io_method").is_some_and(|text| text.trim().eq_ignore_ascii_case("io_uring")),
    }
}

/// A setting; `None` if it is not there, or if a note says that it is no such value.
fn understood<T>(
    settings: &BTreeMap<&str, &str>,
    name: &str,
    kind: &str,
    parse: impl Fn(&str) -> Option<T>,
    notes: &mut Notes,
) -> Option<T> {
    let text = settings.get(name)?;
    notes.keep(parse(text).ok_or_else(|| format!("{name} = '{text}' is not {kind}")))
}

/// `max_connections` of effective settings.
pub fn max_connections(settings: &BTreeMap<&str, &str>) -> u64 {
    settings.get("max_connections").and_then(|text| text.trim().parse().ok()).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_the_server_takes_them() {
        let of = |pairs: &'static [(&str, &str)]| {
            let mut notes = Notes::default();
            let requested = requested_by_settings(&BTreeMap::from_iter(pairs.iter().copied()), &mut notes);
            let size = requested.huge_page_size.map(|size| size.bytes().0);
            (requested.huge_pages.to_string(), size, requested.sysv, requested.shared_buffers.0, notes.into_vec().len())
        };
        assert_eq!(of(&[]), ("try".into(), None, false, 128 << 20, 0));
        let all = [("huge_pages", "ON"), ("huge_page_size", "1GB"), ("shared_buffers", "16384")];
        assert_eq!(of(Box::leak(Box::new(all))), ("on".into(), Some(1 << 30), false, 128 << 20, 0));
        assert_eq!(of(&[("huge_page_size", "2048"), ("huge_pages", "1")]).1, Some(2 << 20));
        assert_eq!(of(&[("huge_page_size", "0"), ("huge_pages", "0")]), ("off".into(), None, false, 128 << 20, 0));
        assert_eq!(of(&[("shared_memory_type", "SysV"), ("shared_buffers", "1.5 GB")]).3, 3 << 29);
        assert_eq!(
            of(&[("huge_pages", "maybe"), ("shared_buffers", "8 EB")]),
            ("try".into(), None, false, 128 << 20, 2)
        );
    }
}
