//! PostgreSQL clusters that are configured on this host and do not run: where they are, and what their own program says
//! that they need.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hugepage_core::Notes;
use hugepage_core::Pages;
use hugepage_core::collect::instances::{Survey, asked_of};
use hugepage_core::collect::stopped_databases::{Down, Wants};
use hugepage_core::read::instance_files::limit;
use hugepage_core::read::postgresql_conf::Configuration;
use hugepage_core::read::{InstanceFiles, Root, postmaster_opts};

/// A program that answers takes hundredths of a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// The clusters of Debian's and Red Hat's places, of systemd units, and of `given`, that do not run.
pub fn clusters(root: &Root, survey: &Survey, given: &[PathBuf], notes: &mut Notes) -> Vec<Down> {
    let running: BTreeSet<String> =
        survey.instances.iter().filter_map(|instance| Some(real(root, instance.directory.as_deref()?))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for place in given.iter().map(|directory| Place::of(directory)).chain(places(root, notes)) {
        let data = place.data.to_string_lossy();
        let directory = real(root, &data);
        let is_cluster = InstanceFiles::of_owner(root, &data).exists(&format!("{data}/PG_VERSION"));
        if given.contains(&place.data) && !is_cluster {
            notes.add(format!("\"{}\" is no data directory of PostgreSQL: it has no PG_VERSION", place.data.display()));
        }
        if is_cluster && !running.contains(&directory) && seen.insert(directory) {
            found.push(look(root, &place, notes));
        }
    }
    found
}

/// A cluster's directories.
#[derive(Debug)]
struct Place {
    data: PathBuf,
    /// Where its configuration file is, if that is not in the data directory.
    config: Option<PathBuf>,
}

impl Place {
    fn of(data: &Path) -> Self {
        Self { data: data.to_owned(), config: None }
    }
}

fn real(root: &Root, directory: &str) -> String {
    InstanceFiles::of_owner(root, directory).canonical(directory).unwrap_or_else(|| directory.to_owned())
}

fn places(root: &Root, notes: &mut Notes) -> Vec<Place> {
    let mut places = Vec::new();
    for version in list(root, "/etc/postgresql") {
        for cluster in list(root, &format!("/etc/postgresql/{version}")) {
            let config = PathBuf::from(format!("/etc/postgresql/{version}/{cluster}/postgresql.conf"));
            let mut configuration = Configuration::default();
            let directory = format!("/etc/postgresql/{version}/{cluster}");
            let mut files = InstanceFiles::of_owner(root, &directory);
            if files.owner(&directory).is_ok_and(|owner| owner.uid == 0) {
                files = InstanceFiles::of_account(root, "postgres");
            }
            configuration.add(&files, &config, notes);
            if let Some(data) = configuration.get("data_directory") {
                places.push(Place { data: data.into(), config: Some(config) });
            }
        }
    }
    for version in list(root, "/var/lib/pgsql") {
        places.push(Place::of(Path::new(&format!("/var/lib/pgsql/{version}/data"))));
    }
    places.push(Place::of(Path::new("/var/lib/pgsql/data")));
    for directory in ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"] {
        for unit in
            list(root, directory).into_iter().filter(|unit| unit.contains("postgres") && unit.ends_with(".service"))
        {
            let text = root.read(&format!("{directory}/{unit}")).unwrap_or_default();
            let data = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("Environment="))
                .find_map(|assignment| assignment.trim_matches('"').strip_prefix("PGDATA=").map(str::to_owned));
            // A template's %i is for its instances to say.
            places.extend(
                data.filter(|data| data.starts_with('/') && !data.contains('%'))
                    .map(|data| Place::of(Path::new(&data))),
            );
        }
    }
    places
}

fn list(root: &Root, directory: &str) -> Vec<String> {
    root.list(directory).unwrap_or_default()
}

fn look(root: &Root, place: &Place, notes: &mut Notes) -> Down {
    let down = |page_size, wants| Down { kind: "postgresql", name: place.data.display().to_string(), page_size, wants };
    let config = place.config.clone().unwrap_or_else(|| place.data.join("postgresql.conf"));
    let mut configuration = Configuration::default();
    let files = InstanceFiles::of_owner(root, &place.data.to_string_lossy());
    for file in [&config, &place.data.join("postgresql.auto.conf")] {
        configuration.add(&files, file, notes);
    }
    if configuration.settings.is_empty() {
        return down(None, Wants::Unknown("its configuration could not be read".to_owned()));
    }
    let asked = asked_of(&configuration, notes);
    if asked.huge_pages == hugepage_core::assess::HugePages::Off {
        return down(asked.huge_page_size, Wants::None("huge_pages = off"));
    }
    if asked.never_in_huge_pages() {
        return down(asked.huge_page_size, Wants::None("shared_memory_type = sysv"));
    }
    let wants = match ask(root, &files, place, &config) {
        Ok(pages) => Wants::Pages(pages, "its own program"),
        Err(why) => Wants::Unknown(why),
    };
    down(asked.huge_page_size, wants)
}

/// Asks the cluster's own program as the cluster's owner: `postgres -C shared_memory_size_in_huge_pages`, which since 15
/// answers for a server that is down, allocates nothing and changes nothing.
fn ask(root: &Root, files: &InstanceFiles, place: &Place, config: &Path) -> Result<Pages, String> {
    if !root.is_live() {
        return Err("only the host itself can ask its program".to_owned());
    }
    let inside = |name: &str| place.data.join(name).to_string_lossy().into_owned();
    let version = files.version(&inside("PG_VERSION")).map_err(|error| error.to_string())?;
    let major: u32 = version.parse().map_err(|_| format!("its PG_VERSION is {version}"))?;
    if major < 15 {
        return Err(format!(
            "PostgreSQL {major} does not tell while it is down; start it, or look at its shared_buffers"
        ));
    }
    let owner = files.owner(&place.data.to_string_lossy()).map_err(|error| error.to_string())?;
    let me = rustix::process::geteuid();
    if owner.uid == 0 || !(me.is_root() || me.as_raw() == owner.uid) {
        return Err(format!("only root and its owner (uid {}) can ask its program", owner.uid));
    }
    let opts = files.read_text(&inside("postmaster.opts"), limit::POSTMASTER_OPTS).unwrap_or_default();
    let of_last_start = opts.split(" \"").next().filter(|program| program.starts_with('/')).map(PathBuf::from);
    let usual = ["/usr/lib/postgresql/{}/bin/postgres", "/usr/pgsql-{}/bin/postgres"];
    let usual = usual.iter().map(|path| PathBuf::from(path.replace("{}", &major.to_string())));
    let program = of_last_start.into_iter().chain(usual).find(|path| path.is_file());
    let program = program.ok_or_else(|| format!("the program of PostgreSQL {major} was not found"))?;

    let mut command = Command::new(&program);
    // What the last start was told on its command line, and Debian's separate configuration.
    let arguments: Vec<String> = postmaster_opts::settings(&postmaster_opts::arguments(&opts))
        .into_iter()
        .filter(|(name, _)| name != "data_directory" && name != "config_file")
        .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
        .collect();
    command.arg("-D").arg(&place.data).arg("-c").arg(format!("config_file={}", config.display()));
    // Its keys may be for a group that only a real start has.
    command.args(arguments).args(["-c", "ssl=off"]).arg("-C").arg("shared_memory_size_in_huge_pages");
    command.env_clear().env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if me.is_root() {
        // The standard library drops all other groups as well.
        command.uid(owner.uid).gid(owner.gid);
    }
    command.process_group(0);
    let child = command.spawn().map_err(|error| format!("{} could not be run: {error}", program.display()))?;
    answer(child)
}

fn answer(mut child: Child) -> Result<Pages, String> {
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < DEADLINE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("its program gave no answer in {} s", DEADLINE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    let (mut answer, mut errors) = (String::new(), String::new());
    let _ = child.stdout.take().map(|mut out| out.read_to_string(&mut answer));
    let _ = child.stderr.take().map(|mut err| err.read_to_string(&mut errors));
    match (status.success(), answer.trim().parse()) {
        (true, Ok(pages)) => Ok(Pages(pages)),
        _ => Err(format!("it would not start: {}", errors.lines().next().unwrap_or("its program says nothing"))),
    }
}
