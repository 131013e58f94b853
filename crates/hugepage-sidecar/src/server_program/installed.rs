//! Installed servers as `lint` asks them: each program is found once, and has one empty data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hugepage_kernel::Bytes;
use hugepage_lint::AskServer;
use hugepage_start::{StartAnswer, majors};

use super::empty_cluster::EmptyCluster;
use super::trust;
use super::{ANSWER_TIMEOUT, child, packaged};

/// The servers that can be asked, each started at most once.
#[derive(Debug)]
pub struct InstalledServers {
    /// The program that the user names.
    named: Option<Result<(u32, PathBuf), String>>,
    /// Whether programs are run at all.
    may_run: bool,
    known: BTreeMap<(u32, Option<u32>), Result<EmptyCluster, String>>,
}

impl InstalledServers {
    /// `directory`: that of `postgres`, or above its `bin`. None is run where the host is a captured one.
    pub fn new(directory: Option<&Path>, may_run: bool) -> Self {
        let named = directory.filter(|_| may_run).map(|directory| {
            let programs = [directory.join("postgres"), directory.join("bin/postgres"), directory.to_owned()];
            let program = programs.into_iter().find(|path| path.is_file());
            let program = program.ok_or_else(|| format!("no program postgres in {}", directory.display()))?;
            Ok((version(&program)?, program))
        });
        Self { named, may_run, known: BTreeMap::new() }
    }

    /// Why the program that the user names cannot be asked.
    pub fn error(&self) -> Option<&str> {
        self.named.as_ref()?.as_ref().err().map(String::as_str)
    }

    fn program(&self, major: Option<u32>) -> Result<(u32, PathBuf), String> {
        if !self.may_run {
            return Err("no program is run with --root".to_owned());
        }
        match (&self.named, major) {
            (Some(Ok((named, program))), major) if major.is_none_or(|major| major == *named) => {
                return Ok((*named, program.clone()));
            }
            (Some(Err(why)), _) => return Err(why.clone()),
            _ => {}
        }
        let Some(major) = major else {
            return Err("the manifest does not say the major version".to_owned());
        };
        match packaged(major).find(|path| path.is_file()) {
            _ if major < majors::FIRST_MAJOR => Err(format!("PostgreSQL {major} does not report it")),
            Some(program) => Ok((major, program)),
            None => Err(format!("PostgreSQL {major} is not installed here")),
        }
    }
}

impl AskServer for InstalledServers {
    fn ask(
        &mut self,
        major: Option<u32>,
        wal_segment_mb: Option<u32>,
        settings: &BTreeMap<&str, &str>,
    ) -> Result<(u32, StartAnswer<Bytes>), String> {
        let (major, program) = self.program(major)?;
        let start = || EmptyCluster::new(&program, major, wal_segment_mb);
        let cluster = self.known.entry((major, wal_segment_mb)).or_insert_with(start).as_ref().map_err(Clone::clone)?;
        Ok((major, cluster.shared_memory(settings.iter().map(|(name, value)| (*name, *value)))))
    }
}

/// The major version of a program.
fn version(program: &Path) -> Result<u32, String> {
    let program = trust::check_program(program)?;
    let output = child::run(&program, &["--version".into()], ANSWER_TIMEOUT)?;
    // postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1), 19devel
    let number = output.stdout.split_whitespace().nth(2).unwrap_or_default();
    let major = number.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse().ok());
    match major {
        Some(major) if major >= majors::FIRST_MAJOR => Ok(major),
        _ => Err(format!("{} is PostgreSQL \"{number}\", and 15 is the first that reports it", program.display())),
    }
}
