//! The Oracle instance of a process, from its command line: its title there, of which `comm` has 15 bytes.

use hugepage_facts::OracleKind;

use crate::readers::words::is_name;

/// The prefixes of the names of background processes.
const PREFIXES: [&str; 7] = ["ora", "xe", "db", "asm", "mdb", "apx", "ios"];

/// An instance: its SID, which is unique among the instances of one ORACLE_HOME.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OracleInstance {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// `ORACLE_SID`, in its own case.
    pub sid: String,
}

impl OracleInstance {
    /// The instance of that SID, whose first characters tell the kind: those of Grid Infrastructure are reserved.
    pub fn new(sid: &str) -> Self {
        let kind = match sid {
            _ if sid.starts_with("+ASM") => OracleKind::Asm,
            _ if sid.starts_with("+APX") => OracleKind::AsmProxy,
            _ if sid.starts_with("+IOS") => OracleKind::IoServer,
            _ if sid.starts_with("-MGMTDB") => OracleKind::ManagementDatabase,
            _ => OracleKind::Database,
        };
        Self {
            kind,
            sid: sid.to_owned(),
        }
    }
}

/// A process of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleProcess {
    /// The instance of the process.
    pub instance: OracleInstance,
    /// Whether it is PMON: the one that every running instance has exactly once.
    pub is_pmon: bool,
}

impl OracleProcess {
    /// Parses the content of /proc/PID/cmdline, words separated by NUL or, in a title, by spaces. `None` for other
    /// programs. Any process can have such a title: check with /proc/PID/exe that it runs `bin/oracle` ([`home_of`]).
    pub fn parse(cmdline: &str) -> Option<Self> {
        let (name, rest) = cmdline.split_once(['\0', ' ']).unwrap_or((cmdline, ""));
        if let Some(sid) = name.strip_prefix("oracle") {
            // Without the bracket it is another program whose name begins so.
            return rest.starts_with('(').then(|| server(sid)).flatten();
        }
        let (prefix, rest) = name.split_once('_')?;
        let (function, sid) = rest.split_once('_')?;
        // Others may be called db_backup_1, too.
        let is_long = prefix.len() < 3 && function.len() != 4 || function.is_empty();
        let known = PREFIXES.contains(&prefix)
            && is_sid(sid)
            && !is_long
            && function.bytes().all(|byte| byte.is_ascii_alphanumeric());
        known.then(|| Self {
            instance: OracleInstance::new(sid),
            is_pmon: function == "pmon",
        })
    }
}

/// The server process of a session: `oracleSID`, and in later releases `oracle_4711_SID` with the process id, `oracle+ASM1_asmb_SID` for a connection to ASM.
fn server(name: &str) -> Option<OracleProcess> {
    let sid = match name
        .strip_prefix('_')
        .and_then(|numbered| numbered.split_once('_'))
    {
        Some((number, sid)) if number.bytes().all(|byte| byte.is_ascii_digit()) => sid,
        _ if name.starts_with('+') => name.split('_').next().unwrap_or(name),
        _ => name,
    };
    is_sid(sid).then(|| OracleProcess {
        instance: OracleInstance::new(sid),
        is_pmon: false,
    })
}

/// A name, after `+` or `-` for Grid Infrastructure's own.
fn is_sid(text: &str) -> bool {
    is_name(text.strip_prefix(['+', '-']).unwrap_or(text), 64)
}

/// ORACLE_HOME from the target of /proc/PID/exe: the part before `/bin/oracle`, also of one that a patch replaced.
pub fn home_of(exe: &str) -> Option<&str> {
    exe.strip_suffix(" (deleted)")
        .unwrap_or(exe)
        .strip_suffix("/bin/oracle")
        .filter(|home| home.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        use OracleKind::{Asm, AsmProxy, Database, IoServer, ManagementDatabase};
        for (cmdline, kind, sid, is_pmon) in [
            ("ora_pmon_TEST1\0", Database, "TEST1", true),
            ("ora_pmon_TEST1", Database, "TEST1", true),
            ("ora_pmon_my_db_1\0", Database, "my_db_1", true),
            ("asm_pmon_+ASM1\0", Asm, "+ASM1", true),
            ("mdb_pmon_-MGMTDB\0", ManagementDatabase, "-MGMTDB", true),
            ("apx_pmon_+APX2\0", AsmProxy, "+APX2", true),
            ("ios_pmon_+IOS1\0", IoServer, "+IOS1", true),
            ("db_pmon_FREE\0", Database, "FREE", true),
            ("xe_pmon_XE\0", Database, "XE", true),
            ("db_dbw0_FREE\0", Database, "FREE", false),
            ("ora_dbw0_orcl\0", Database, "orcl", false),
            ("ora_p00a_my_db_1\0", Database, "my_db_1", false),
            ("asm_rbal_+ASM\0", Asm, "+ASM", false),
            ("oracleorcl\0(LOCAL=NO)\0", Database, "orcl", false),
            ("oraclemy_db_1 (LOCAL=NO)\0\0\0", Database, "my_db_1", false),
            (
                "oracleorcl\0(DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))\0",
                Database,
                "orcl",
                false,
            ),
            ("oracle_4711_my_db\0(LOCAL=NO)\0", Database, "my_db", false),
            (
                "oracle+ASM1_asmb_orcl\0(DESCRIPTION=(LOCAL=YES))\0",
                Asm,
                "+ASM1",
                false,
            ),
            (
                "oracle-MGMTDB (LOCAL=NO)",
                ManagementDatabase,
                "-MGMTDB",
                false,
            ),
        ] {
            let expected = OracleProcess {
                instance: OracleInstance {
                    kind,
                    sid: sid.to_owned(),
                },
                is_pmon,
            };
            assert_eq!(OracleProcess::parse(cmdline), Some(expected), "{cmdline:?}");
        }
        for cmdline in [
            "",
            "\0",
            "ora_pmon_\0",
            "ora_pmon",
            "ora__TEST1",
            "ora_pm on_TEST1",
            "ora_pmon_a/b",
            "xyz_pmon_TEST1",
            "db_backup_prod",
            "xe_web_1",
            "oracle",
            "oracleasm-discover\0",
            "oracle\0(LOCAL=NO)\0",
            "oracleorcl\0--help\0",
            "grep\0ora_pmon_TEST1\0",
            "postgres: checkpointer \0",
            "ora_pmon_\u{fffd}",
        ] {
            assert_eq!(OracleProcess::parse(cmdline), None, "{cmdline:?}");
        }
    }

    #[test]
    fn homes() {
        for (exe, home) in [
            (
                "/u01/app/oracle/product/19.0.0/dbhome_1/bin/oracle",
                Some("/u01/app/oracle/product/19.0.0/dbhome_1"),
            ),
            (
                "/u01/app/19/grid/bin/oracle (deleted)",
                Some("/u01/app/19/grid"),
            ),
            ("/usr/bin/oraclexe", None),
            ("bin/oracle", None),
            ("/bin/oracle", None),
        ] {
            assert_eq!(home_of(exe), home, "{exe}");
        }
    }
}
