//! oratab: the databases that root.sh and dbca registered on this host, running or not.
//!
//! In a cluster the name is the database's and not the instance's: there `orcl` runs as the SID `orcl1`.

use hugepage_kernel::{InstanceFiles, Notes, Root, if_there, limit};

/// The place of oratab on Linux, and its place on other systems, from which some hosts copied it.
const PLACES: [&str; 2] = ["/etc/oratab", "/var/opt/oracle/oratab"];

/// A line of oratab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OratabEntry {
    /// ORACLE_SID, or the name of a cluster's database.
    pub sid: String,
    /// ORACLE_HOME.
    pub home: String,
    /// The third field, `Y` or `W`: whether dbstart starts it at boot.
    pub starts_at_boot: bool,
}

/// Parses the text. Comments, `*` (which names no instance) and invalid lines are skipped. Of several lines with one
/// name the first counts that starts at boot, else the first: dbstart reads all, oraenv the first.
pub fn parse(text: &str) -> Vec<OratabEntry> {
    let mut entries: Vec<OratabEntry> = Vec::new();
    for entry in text.lines().filter_map(parse_line) {
        match entries.iter_mut().find(|known| known.sid == entry.sid) {
            Some(known) if known.starts_at_boot || !entry.starts_at_boot => {}
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }
    entries
}

fn parse_line(line: &str) -> Option<OratabEntry> {
    let entry = line.split('#').next().unwrap_or_default();
    let mut fields = entry.trim().split(':').map(str::trim);
    let sid = fields.next()?;
    let home = fields.next()?;
    let boot = fields.next().unwrap_or_default();
    (!sid.is_empty() && sid != "*" && !sid.contains(char::is_whitespace) && home.starts_with('/'))
        .then(|| OratabEntry {
            sid: sid.to_owned(),
            home: home.trim_end_matches('/').to_owned(),
            starts_at_boot: matches!(boot, "Y" | "y" | "W" | "w"),
        })
}

/// Every entry on this host; none if there is no oratab. An oratab that cannot be read is a note.
pub fn read(root: &Root, notes: &mut Notes) -> Vec<OratabEntry> {
    let mut text = String::new();
    for place in PLACES {
        let found = if_there(InstanceFiles::own(root).read_text(place, limit::CONFIGURATION));
        if let Some(found) = notes.keep(found).flatten() {
            text.push_str(&found);
            text.push('\n');
        }
    }
    parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let text = "#\n# This file is used by ORACLE utilities.\n\n\
                    *:/u01/none:N\n\
                    orcl:/u01/app/oracle/product/19.0.0/dbhome_1:Y\n\
                    +ASM1:/u01/app/19.0.0/grid:N\t\t# line added by Agent\n\
                    \x20 my_db : /u02/home/ : W \r\n\
                    orcl:/u01/other:N\n\
                    late:/u04/old:N\nlate:/u04/new:Y\nlate:/u04/third:Y\n\
                    nohome\nempty::Y\nrelative:u01:Y\n:/u01:Y\ntwo words:/u01:Y\nlast:/u03";
        let entry = |sid: &str, home: &str, starts_at_boot| OratabEntry {
            sid: sid.to_owned(),
            home: home.to_owned(),
            starts_at_boot,
        };
        let expected = [
            entry("orcl", "/u01/app/oracle/product/19.0.0/dbhome_1", true),
            entry("+ASM1", "/u01/app/19.0.0/grid", false),
            entry("my_db", "/u02/home", true),
            entry("late", "/u04/new", true),
            entry("last", "/u03", false),
        ];
        assert_eq!(parse(text), expected);
    }
}
