//! The systemd service of a process, from its control group (systemd.unit(5), cgroups(7)), and the limits of its unit.

use std::collections::BTreeMap;

use crate::source::root::if_there;
use crate::{ReadError, Root};

/// Where systemd looks for units, the most important first.
const DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The service that started `pid`, as `oracle-ohasd.service`; `None` for what a user's session started, or if unknown.
pub fn service_of(root: &Root, pid: i32) -> Option<String> {
    let paths = |text: &str| text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(in_path);
    root.read_once(&format!("/proc/{pid}/cgroup"), paths).ok()?
}

/// A limit that a unit sets (systemd.exec(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitLimit {
    /// `infinity`.
    Infinity,
    /// The soft limit: a number, or bytes.
    At(u64),
    /// A value that is not understood.
    Invalid,
}

/// The soft limit that the unit of `service` and its drop-ins set, such as `LimitMEMLOCK`; `None` if they set none.
pub fn limit(root: &Root, service: &str, name: &str) -> Result<Option<UnitLimit>, ReadError> {
    let template = service.split_once('@').map(|(prefix, _)| format!("{prefix}@.service"));
    let units = || [Some(service), template.as_deref()].into_iter().flatten();
    let unit = units().find_map(|unit| {
        DIRECTORIES.iter().map(|directory| format!("{directory}/{unit}")).find(|path| root.exists(path))
    });
    // A drop-in hides those of the same name in less important directories.
    let mut drop_ins = BTreeMap::new();
    for unit in units().chain(["service"]) {
        for directory in DIRECTORIES {
            let directory = format!("{directory}/{unit}.d");
            for file in if_there(root.list(&directory))?.unwrap_or_default() {
                if file.ends_with(".conf") {
                    let path = format!("{directory}/{file}");
                    drop_ins.entry(file).or_insert(path);
                }
            }
        }
    }
    let mut found = None;
    for path in unit.into_iter().chain(drop_ins.into_values()) {
        let text = if_there(root.read(&path))?.unwrap_or_default();
        let values = text.lines().filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        });
        for value in values {
            found = (!value.is_empty()).then(|| soft_limit(value));
        }
    }
    Ok(found)
}

/// `8M`, `infinity`, `8M:16M`.
fn soft_limit(value: &str) -> UnitLimit {
    let soft = value.split(':').next().unwrap_or_default().trim();
    if soft == "infinity" {
        return UnitLimit::Infinity;
    }
    let (digits, unit) = soft.split_at(soft.find(|c: char| !c.is_ascii_digit()).unwrap_or(soft.len()));
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return UnitLimit::Invalid,
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.map_or(UnitLimit::Invalid, UnitLimit::At)
}

fn in_path(path: &str) -> Option<String> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if parts.next()? != "system.slice" {
        return None;
    }
    let is_name = |name: &&str| {
        let named = name.strip_suffix(".service").is_some_and(|name| !name.is_empty());
        named && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.@".contains(&byte))
    };
    parts.find(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_sessions() {
        for (path, service) in [
            ("/system.slice/oracle-ohasd.service", Some("oracle-ohasd.service")),
            ("/system.slice/system-dbora.slice/dbora@ORCL.service", Some("dbora@ORCL.service")),
            ("/user.slice/user-54321.slice/session-4.scope", None),
            ("/user.slice/user-54321.slice/user@54321.service/app.slice/x.service", None),
            ("/system.slice/a b.service", None),
            ("/system.slice/.service", None),
            ("/", None),
        ] {
            assert_eq!(in_path(path).as_deref(), service, "{path}");
        }
    }

    #[test]
    fn limits_of_units() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let root = || Root::at(tree.path());
        let of = |name| limit(&root(), "postgresql@18-main.service", name).unwrap();
        assert_eq!(of("LimitMEMLOCK"), None);
        write("usr/lib/systemd/system/postgresql@.service", "[Service]\nLimitMEMLOCK = 8M\n");
        assert_eq!(of("LimitMEMLOCK"), Some(UnitLimit::At(8 << 20)));
        write(
            "usr/lib/systemd/system/postgresql@.service.d/20.conf",
            "[Service]\nLimitMEMLOCK=1G:2G\nLimitNOFILE=4096\n",
        );
        write("etc/systemd/system/postgresql@18-main.service.d/10.conf", "[Service]\nLimitMEMLOCK=infinity\n");
        assert_eq!(of("LimitMEMLOCK"), Some(UnitLimit::At(1 << 30)));
        assert_eq!(of("LimitNOFILE"), Some(UnitLimit::At(4096)));
        write("etc/systemd/system/postgresql@.service.d/20.conf", "[Service]\nLimitNOFILE=4x\n");
        assert_eq!((of("LimitMEMLOCK"), of("LimitNOFILE")), (Some(UnitLimit::Infinity), Some(UnitLimit::Invalid)));
        write("run/systemd/system/postgresql@18-main.service.d/30.conf", "[Service]\nLimitMEMLOCK=\n");
        assert_eq!(of("LimitMEMLOCK"), None);
    }
}
