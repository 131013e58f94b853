//! A snapshot under other names: hosts, users, directories and SIDs get names that are the same wherever they were the same.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_facts::{Snapshot, escape};
use serde_json::Value;

/// The words that say nothing of whose host it is; with digits around them, too.
const KNOWN: &str = "a accounts alert anon another app as asm at auto base be besteffort bin boot burstable bytes cgroup cmdline conf \
    container containerd control could cri crio current cwd d data db dbhome dbs default defs deleted determined dev devices diag diff \
    docker edb etc exe file fs g gb gitlab global grid group guaranteed h home host hugepage hugepages hugetlb in init io ipc is its k \
    kb kernel kubepods kubelet lib libpod limit limits loc local log logical login lxc m machine main maps max mb meminfo memory merged \
    minimal mm mmap mnt modprobe mountinfo mounts mq ms n namespace nerdctl next nodes not nr ns numa of off olr on one only opt opts \
    ora oracle oradata oratab overlay overcommit own passwd path payload pg pgdata pgsql pid pids pod podman postgres postgresql \
    postmaster proc process product program rdbms replica reservation root rsvd run runs s sbin scope self server service session shm \
    sidecar slice smaps spfile srv stat start status storage sync sys sysctl system sysv sysvipc t tb than the tmp tmpfiles trace true \
    false try u uid unix uptime uring usage user users usr var version volumes with worker zero";
/// What stands before a path in a text.
const BEFORE_PATH: &str = " \"'(=:,;\n";
/// What ends one.
const BEHIND_PATH: &str = " \"'),;\n";

/// What has names as values: every word of these may be one.
const PRIVATE: &str = "container directory files home options place pod runtime service sid value";

/// The names that were given so far, by the words in lower case for which they stand.
#[derive(Default)]
struct StableNames {
    given: BTreeMap<String, usize>,
    /// The words of names, in lower case.
    secrets: BTreeSet<String>,
}

/// What `capture --anonymous` prints. Numbers of users and processes stay as they are, and so do the names of programs.
pub fn anonymous(snapshot: &Snapshot) -> serde_json::Result<Snapshot> {
    // Notes have them escaped.
    let both = |name: &String| [name.clone(), escape::line(name).into_owned()];
    let names = names(snapshot).flat_map(both).collect::<Vec<_>>().join(" ");
    let mut names = StableNames::hiding(&names);
    let mut value = serde_json::to_value(snapshot)?;
    names.replace_in("", &mut value);
    serde_json::from_value(value)
}

/// The names of hosts, users and instances that texts may have, and what identifies the machine.
fn names(snapshot: &Snapshot) -> impl Iterator<Item = &String> {
    let host = &snapshot.host;
    let look = &host.next_boot.look;
    let ids = snapshot.servers.iter().map(|server| &server.id);
    let accounts = host.stopped.iter().filter_map(|one| one.account.as_ref());
    [&look.boot_id, &look.machine_id]
        .into_iter()
        .chain(&host.host_name)
        .chain(ids.clone().filter_map(|id| id.place.host_name.as_ref()))
        .chain(host.others.names.values())
        .chain(host.holders.iter().map(|holder| &holder.user))
        .chain(host.strangers.first.iter().map(|one| &one.reason))
        .chain(accounts.map(|account| &account.name))
        .chain(ids.map(|id| &id.name))
        .chain(host.stopped.iter().map(|one| &one.name))
        .chain(
            host.stopped_servers
                .remembered
                .iter()
                .map(|one| &one.key.name),
        )
}

/// Whether a word may stay: one of [`KNOWN`], a number with its unit, or the name of a System V segment.
fn is_known(word: &str) -> bool {
    let stem = word.trim_matches(|c: char| c.is_ascii_digit());
    let is_key = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    stem.is_empty()
        || word.strip_prefix("SYSV").is_some_and(is_key)
        || KNOWN
            .split_ascii_whitespace()
            .any(|known| known.eq_ignore_ascii_case(stem))
}

impl StableNames {
    /// For texts that may have the words of `names`.
    fn hiding(names: &str) -> Self {
        let words = names.split(|c: char| !c.is_alphanumeric());
        Self {
            secrets: words.map(str::to_lowercase).collect(),
            ..Self::default()
        }
    }

    /// The name for a word.
    fn word(&mut self, word: &str) -> String {
        if is_known(word) {
            return word.to_owned();
        }
        let next = self.given.len() + 1;
        let number = self.given.entry(word.to_lowercase()).or_insert(next);
        format!("n{number}")
    }

    /// A text, in which the words of names and of paths are replaced; all words, if it `is_private`.
    fn text(&mut self, text: &str, is_private: bool) -> String {
        let mut found = String::new();
        let mut is_path = false;
        let mut before = ' ';
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_name = is_private || is_path || self.secrets.contains(&word.to_lowercase());
            found += &if is_name {
                self.word(word)
            } else {
                word.to_owned()
            };
            let Some(sign) = piece[word.len()..].chars().next() else {
                break;
            };
            found.push(sign);
            // A path, or the name of an ASM disk group.
            let begins = word.is_empty() && BEFORE_PATH.contains(before) && "/+".contains(sign);
            is_path = begins || is_path && !BEHIND_PATH.contains(sign);
            before = sign;
        }
        found
    }

    /// All texts in `value`, which has the key `key`.
    fn replace_in(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) => {
                *text = self.text(text, PRIVATE.split(' ').any(|private| private == key))
            }
            // Of an option the value alone.
            Value::Array(pair) if key == "option" => self.replace_in("options", &mut pair[1]),
            Value::Array(all) => {
                let key = if key == "options" { "option" } else { key };
                all.iter_mut().for_each(|one| self.replace_in(key, one));
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let key = if key == "files" { key } else { name };
                    self.replace_in(key, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_shape() {
        let mut names = StableNames::hiding("PAYROLL db1.example.com");
        for (text, expected) in [
            (
                "/u01/app/oracle/product/19.0.0/dbhome_1",
                "/u01/app/oracle/product/19.0.0/dbhome_1",
            ),
            ("/srv/payroll/17/main", "/srv/n1/17/main"),
            (
                "\"/srv/payroll/x y\" could not be read",
                "\"/srv/n1/n2 y\" could not be read",
            ),
            (
                "PAYROLL of oratab is not counted, PAYROLLS is",
                "n1 of oratab is not counted, PAYROLLS is",
            ),
            ("+DATA/PAYROLL/spfile.ora", "+DATA/n1/spfile.ora"),
            ("db1.example.com", "db1.n3.n4"),
            ("/dev/zero (deleted)", "/dev/zero (deleted)"),
            ("/SYSV0052e2c1 (deleted)", "/SYSV0052e2c1 (deleted)"),
            (
                "/sys/kernel/mm/hugepages/hugepages-2048kB",
                "/sys/kernel/mm/hugepages/hugepages-2048kB",
            ),
        ] {
            assert_eq!(names.text(text, false), expected);
        }
    }

    #[test]
    fn the_names_of_a_pod_are_replaced() {
        let mut facts = serde_json::json!({"pod": "shop/db-0/main", "name": "/var/lib/postgresql"});
        StableNames::default().replace_in("", &mut facts);
        assert_eq!(facts["pod"], "n1/db-0/main");
        assert_eq!(facts["name"], "/var/lib/postgresql");
    }

    #[test]
    fn values_keep_their_numbers() {
        let mut names = StableNames::default();
        for (text, expected) in [
            ("16GB", "16GB"),
            ("on", "on"),
            ("AUTO_ONLY", "AUTO_ONLY"),
            ("postgresql@15-main.service", "postgresql@15-main.service"),
            ("docker-0a1b2c3d4e.scope", "docker-n1.scope"),
            (
                "(ADDRESS=(HOST=secret)(PORT=1521))",
                "(n2=(HOST=n3)(n4=1521))",
            ),
        ] {
            assert_eq!(names.text(text, true), expected);
        }
    }
}
