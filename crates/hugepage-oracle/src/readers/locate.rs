//! Where an instance keeps its alert log and its parameters. Only Oracle's own directories are searched, to a fixed depth.

use std::time::SystemTime;

use hugepage_facts::{LastStart, OracleKind};
use hugepage_kernel::proc::process;
use hugepage_kernel::{InstanceFiles, Notes, Root, if_there, limit};

use crate::readers::words::is_number;
use crate::readers::{OracleInstance, last_start};

/// The largest number of databases of one diagnostic destination that are read.
const MAX_DATABASES: usize = 1000;
/// The largest number of rotated logs of one instance that are searched.
const MAX_ROTATED_LOGS: usize = 4;
/// The largest number of PMON's open files that are looked at.
const MAX_OPEN_FILES: usize = 4096;

/// The facts about an instance that are known before its files are found.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The instance whose files are searched.
    pub instance: &'a OracleInstance,
    /// ORACLE_HOME of the instance, from PMON's program or from oratab.
    pub home: Option<&'a str>,
    /// DIAGNOSTIC_DEST; `None` if the parameters do not set it.
    pub diagnostic_dest: Option<&'a str>,
    /// The host and its PMON there, if it runs. The files that PMON has open show the place exactly, but only to root.
    pub pmon: Option<(&'a Root, i32)>,
}

impl Search<'_> {
    /// The alert log; of several, the one that was written last. `None` if there is none or none is visible. A directory that cannot
    /// be listed is a note.
    pub fn alert_log(&self, files: &InstanceFiles, notes: &mut Notes) -> Option<String> {
        let opened = self
            .opened_home()
            .and_then(|home| Some(log_in(files, &home, &self.instance.sid)?.1));
        opened.or_else(|| {
            self.destinations(files, notes)
                .iter()
                .find_map(|destination| self.log_below(files, destination, notes))
        })
    }

    /// Where its diagnostic files may be, the most likely first.
    fn destinations(&self, files: &InstanceFiles, notes: &mut Notes) -> Vec<String> {
        let mut all = Vec::from_iter(self.diagnostic_dest.map(str::to_owned));
        if let Some(home) = self.home {
            all.extend(bases(files, home, notes));
            // Without ORACLE_BASE (Database Reference, DIAGNOSTIC_DEST).
            all.push(format!("{home}/log"));
        }
        all
    }

    /// The last start in its alert log, and the paths of that log and of the rotated ones back to the start, which a log that was cut has
    /// not. What cannot be read is a note.
    pub fn last_start(
        &self,
        files: &InstanceFiles,
        notes: &mut Notes,
    ) -> Option<(Vec<String>, LastStart)> {
        let mut logs = vec![self.alert_log(files, notes)?];
        let mut start = notes.keep(last_start(files, &logs[0])).flatten();
        let is_whole = |start: &LastStart| start.mode.is_some();
        if !start.as_ref().is_some_and(is_whole) {
            for log in rotated(files, &logs[0]) {
                let older = notes.keep(last_start(files, &log)).flatten();
                logs.push(log);
                if older.as_ref().is_some_and(is_whole) {
                    start = older;
                    break;
                }
            }
        }
        Some((logs, start?))
    }

    /// The spfile or init.ora that a start without PFILE reads.
    pub fn parameter_file(&self, files: &InstanceFiles, notes: &mut Notes) -> Option<String> {
        let home = self.home?;
        let sid = &self.instance.sid;
        // A read-only home keeps them in ORACLE_BASE (since 18c), whatever was left in its dbs.
        let mut directories = bases(files, home, notes);
        directories.push(home.to_owned());
        let names = |base| {
            [
                format!("{base}/dbs/spfile{sid}.ora"),
                format!("{base}/dbs/spfile.ora"),
                format!("{base}/dbs/init{sid}.ora"),
            ]
        };
        let mut paths = directories.into_iter().flat_map(names);
        paths.find(|path| files.root().modified(path).is_some())
    }

    /// The ADR home by the files that PMON has open.
    fn opened_home(&self) -> Option<String> {
        let (root, pmon) = self.pmon?;
        let descriptors = process::descriptors(root, &pmon.to_string())
            .ok()?
            .into_iter();
        descriptors.take(MAX_OPEN_FILES).find_map(|descriptor| {
            self.home_in(
                &root
                    .read_link(&format!("/proc/{pmon}/fd/{descriptor}"))
                    .ok()?,
            )
        })
    }

    /// `/u01/app/oracle/diag/rdbms/orcl/orcl1` in `/u01/app/oracle/diag/rdbms/orcl/orcl1/trace/orcl1_pmon_7.trc`.
    fn home_in(&self, path: &str) -> Option<String> {
        let within = format!("/diag/{}/", self.product());
        let database = path.find(&within)? + within.len();
        let sid = database + path[database..].find('/')? + 1;
        let end = sid + path[sid..].find('/')?;
        (path[sid..end] == self.instance.sid).then(|| path[..end].to_owned())
    }

    /// The log of the SID below one diagnostic destination, for any database name; of several the one that was written last.
    fn log_below(
        &self,
        files: &InstanceFiles,
        destination: &str,
        notes: &mut Notes,
    ) -> Option<String> {
        let sid = &self.instance.sid;
        let directory = format!("{destination}/diag/{}", self.product());
        let databases = notes
            .keep(if_there(files.list(&directory)))
            .flatten()
            .unwrap_or_default();
        let logs = databases
            .iter()
            .take(MAX_DATABASES)
            .filter_map(|name| log_in(files, &format!("{directory}/{name}/{sid}"), sid));
        Some(logs.max()?.1)
    }

    /// The SID on this host of the database that oratab has under this name. In a cluster that is the name with the
    /// number of the instance (`orcl1`, or `orcl_1` of RAC One Node): of several the one whose log was written last. It is the name
    /// itself where no log shows another.
    pub fn sid_of_database(&self, files: &InstanceFiles, notes: &mut Notes) -> String {
        let name = &self.instance.sid;
        if self.instance.kind != OracleKind::Database {
            return name.clone();
        }
        let last_written = |base: String| {
            let directory = format!("{base}/diag/rdbms/{}", name.to_lowercase());
            let sids = files.list(&directory).unwrap_or_default().into_iter();
            let sids = sids.filter(|sid| sid == name || is_numbered(sid, name));
            let logs = sids.take(MAX_DATABASES).filter_map(|sid| {
                Some((log_in(files, &format!("{directory}/{sid}"), &sid)?.0, sid))
            });
            logs.max()
        };
        let mut places = self.destinations(files, notes).into_iter();
        let found = places.find_map(last_written);
        found.map_or_else(|| name.clone(), |(_, sid)| sid)
    }

    /// The name of the directory of this kind of instance in the ADR.
    fn product(&self) -> &'static str {
        match self.instance.kind {
            OracleKind::Database | OracleKind::ManagementDatabase => "rdbms",
            OracleKind::Asm => "asm",
            OracleKind::AsmProxy => "apx",
            OracleKind::IoServer => "ios",
        }
    }
}

/// The rotated files of a log (`alert_SID.log.1`, `alert_SID.log-20240101`), the last written first.
fn rotated(files: &InstanceFiles, log: &str) -> Vec<String> {
    let Some((directory, name)) = log.rsplit_once('/') else {
        return Vec::new();
    };
    let is_rotated = |file: &String| {
        let behind = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(['.', '-', '_']));
        behind.is_some_and(is_number)
    };
    let names = files
        .list(directory)
        .unwrap_or_default()
        .into_iter()
        .filter(is_rotated);
    let paths = names.map(|name| format!("{directory}/{name}"));
    let mut rotated: Vec<_> = paths
        .filter_map(|path| Some((files.root().modified(&path)?, path)))
        .collect();
    rotated.sort();
    rotated
        .into_iter()
        .rev()
        .take(MAX_ROTATED_LOGS)
        .map(|(_, path)| path)
        .collect()
}

/// Whether `sid` is that of an instance of a cluster's database with this name.
pub fn is_numbered(sid: &str, database: &str) -> bool {
    let number = sid
        .strip_prefix(database)
        .map(|number| number.strip_prefix('_').unwrap_or(number));
    number.is_some_and(is_number)
}

/// The alert log in an ADR home, and when it was last written.
fn log_in(files: &InstanceFiles, home: &str, sid: &str) -> Option<(SystemTime, String)> {
    let path = format!("{home}/trace/alert_{sid}.log");
    Some((files.root().modified(&path)?, path))
}

/// Candidates for ORACLE_BASE of this ORACLE_HOME, the most likely first: the installer's record (orabasetab), the
/// directory above `product`, and for a Grid Infrastructure home the directories beside it that have a `diag`.
pub fn bases(files: &InstanceFiles, home: &str, notes: &mut Notes) -> Vec<String> {
    let table = files.read_text(&format!("{home}/install/orabasetab"), limit::CONFIGURATION);
    let table = notes.keep(if_there(table)).flatten().unwrap_or_default();
    let of_home = |line: &str| {
        line.strip_prefix(home)?
            .strip_prefix(':')?
            .split(':')
            .next()
            .map(str::to_owned)
    };
    let mut bases: Vec<_> = table.lines().filter_map(of_home).collect();
    if let Some((base, _)) = home.rsplit_once("/product/") {
        bases.push(base.to_owned());
    } else if let Some((above, _)) = home
        .rsplit_once('/')
        .and_then(|(above, _)| above.rsplit_once('/'))
    {
        let names = files.list(above).unwrap_or_default();
        let beside = names
            .iter()
            .take(MAX_DATABASES)
            .map(|name| format!("{above}/{name}"));
        bases.extend(beside.filter(|base| files.root().exists(&format!("{base}/diag"))));
    }
    bases.retain(|base| base.starts_with('/'));
    bases
}
