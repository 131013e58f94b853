//! The volumes that a container mounts: whether they hide what the image has, and the configuration file among them.

use std::rc::Rc;

use hugepage_kernel::postgresql::conf_line;

use super::command;
use super::environment::Environment;
use super::fields::{Documents, document_beside};
use super::settings::{NotUnderstood, Setting, not_understood};
use super::yaml::{LocatedNode, YamlNode};

/// Directories with programs and with files that programs read: a volume there changes what the image does.
const OF_IMAGE: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/docker-entrypoint.sh", "/etc/ld.so.preload", "/proc"];
/// Scripts here run when the data directory is new, with the rights to change every setting.
const INITIALIZATION: &str = "/docker-entrypoint-initdb.d";

/// The data directory of the official image before 18, whose entry point does not start where a volume is still mounted there.
const OLD_DATA: &str = "/var/lib/postgresql/data";

/// A container with the pod and the document that it is in.
#[derive(Clone, Copy, Debug)]
pub struct ContainerPlace<'a> {
    /// The documents of all files.
    pub documents: &'a Documents,
    /// The document of the pod.
    pub document: &'a LocatedNode,
    /// The specification of the pod.
    pub pod: &'a Rc<YamlNode>,
    /// The container.
    pub container: &'a Rc<YamlNode>,
}

/// A volume that a container mounts.
struct VolumeMount<'a> {
    path: &'a str,
    sub_path: Option<&'a str>,
    name: &'a str,
    /// Its volume; `None` for a volume claim template.
    volume: Option<&'a Rc<YamlNode>>,
}

impl VolumeMount<'_> {
    /// Whether Kubernetes fills the volume with files of its objects.
    fn has_files(&self) -> bool {
        let kinds = ["configMap", "secret", "projected", "downwardAPI", "image"];
        self.volume.is_some_and(|volume| kinds.iter().any(|kind| volume.get(kind).is_some()))
    }

    /// The ConfigMap behind the volume.
    fn config_map(&self, place: &ContainerPlace<'_>) -> Option<LocatedNode> {
        let name = self.volume?.text_at(&["configMap", "name"])?;
        document_beside(place.documents, place.document, "ConfigMap", name)
    }

    /// The key of the ConfigMap that becomes `file`; `None` if the mount does not have that file.
    fn key_of(&self, file: &str) -> Option<String> {
        let below = match file.strip_prefix(self.path)? {
            "" => self.sub_path?,
            rest if self.sub_path.is_none() => rest.strip_prefix('/')?,
            _ => return None,
        };
        match self.volume?.at(&["configMap", "items"]) {
            None => Some(below.to_owned()),
            Some(items) => {
                let item = items.items().iter().find(|item| item.text_at(&["path"]) == Some(below))?;
                item.text_at(&["key"]).map(str::to_owned)
            }
        }
    }
}

fn mounts<'a>(pod: &'a Rc<YamlNode>, container: &'a Rc<YamlNode>) -> Vec<VolumeMount<'a>> {
    let volumes = pod.get("volumes").map(|all| all.items()).unwrap_or_default();
    let all = container.get("volumeMounts").map(|all| all.items()).unwrap_or_default();
    let of = |mount: &'a Rc<YamlNode>| {
        let name = mount.text_at(&["name"]).unwrap_or_default();
        VolumeMount {
            path: mount.text_at(&["mountPath"]).unwrap_or_default().trim_end_matches('/'),
            sub_path: mount.text_at(&["subPath"]).or_else(|| mount.text_at(&["subPathExpr"])),
            name,
            volume: volumes.iter().find(|volume| volume.text_at(&["name"]) == Some(name)),
        }
    };
    all.iter().map(of).collect()
}

/// Whether `path` is `directory` or below it.
fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses mounts that may change what the server reads besides `config_file`.
pub fn check(place: &ContainerPlace<'_>, data: &str, config_file: Option<&str>) -> Result<(), NotUnderstood> {
    for mount in mounts(place.pod, place.container) {
        let path = mount.path;
        if path.is_empty() || path == "/etc" || OF_IMAGE.iter().any(|directory| is_within(path, directory)) {
            return not_understood(format!("a volume at {}/ hides files of the image", path));
        }
        if path == OLD_DATA && data.starts_with("/var/lib/postgresql/") && data.ends_with("/docker") {
            return not_understood(format!(
                "the entry point refuses a volume at {path}: mount it at /var/lib/postgresql"
            ));
        }
        if is_within(path, INITIALIZATION) {
            check_initialization(place, &mount)?;
        } else if mount.has_files() && (is_within(path, data) || is_within(data, path)) {
            return not_understood(format!("files are mounted into the data directory, at {path}"));
        } else if config_file.is_none() && mount.has_files() && names_configuration(place, &mount) {
            return not_understood(format!("a configuration is mounted at {path}, and no config_file names it"));
        }
    }
    Ok(())
}

/// Whether a mount of files looks like the configuration of a server. Files of access rules are none.
fn names_configuration(place: &ContainerPlace<'_>, mount: &VolumeMount<'_>) -> bool {
    let is_one =
        |name: &str| name.contains("conf") && !name.ends_with("pg_hba.conf") && !name.ends_with("pg_ident.conf");
    let map = mount.config_map(place);
    let keys = map.as_ref().and_then(|map| map.node.get("data")).map(|data| data.entries()).unwrap_or_default();
    is_one(mount.path) || keys.iter().filter_map(|(key, _)| key.text()).any(is_one)
}

/// Scripts that run with the first start may write settings.
fn check_initialization(place: &ContainerPlace<'_>, mount: &VolumeMount<'_>) -> Result<(), NotUnderstood> {
    let Some(map) = mount.config_map(place) else {
        return not_understood(format!("scripts at {} are not in the files", mount.path));
    };
    let suspicious = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["alter system", ".conf", "pgdata", "pg_ctl", "set_config"].iter().any(|word| text.contains(word))
    };
    let scripts = map.node.get("data").map(|data| data.entries()).unwrap_or_default();
    match scripts.iter().find(|(_, text)| text.text().is_none_or(suspicious)) {
        Some((key, _)) => {
            not_understood(format!("the script {} at {} may change settings", key.text().unwrap_or("?"), mount.path))
        }
        None if map.node.get("binaryData").is_some() => not_understood(format!("scripts at {} are binary", mount.path)),
        None => Ok(()),
    }
}

/// The settings of the configuration file at `path`, which is a key of a ConfigMap among the documents.
pub fn configuration(place: &ContainerPlace<'_>, path: &str) -> Result<Vec<Setting>, NotUnderstood> {
    let mounts = mounts(place.pod, place.container);
    // The longest path wins where one mount lies below another.
    let mount = mounts.iter().filter(|mount| is_within(path, mount.path)).max_by_key(|mount| mount.path.len());
    let found = mount.and_then(|mount| Some((mount.config_map(place)?, mount.key_of(path)?)));
    let text = found.as_ref().and_then(|(map, key)| Some((map, map.node.at(&["data", key])?)));
    let Some((map, node)) = text else {
        return not_understood(format!("the settings are in {path}, which is not in the files"));
    };
    let mut settings = Vec::new();
    for (number, line) in node.text().unwrap_or_default().lines().enumerate() {
        if !conf_line::is_valid(line) {
            return not_understood(format!("line {} of {path} was not understood", number + 1));
        }
        let Some((name, value)) = conf_line::parse(line) else { continue };
        if name.starts_with("include") {
            return not_understood(format!("{path} includes {value}"));
        }
        settings.push(Setting::of_manifest(&name, &value, map.beside(node)));
    }
    Ok(settings)
}

/// Refuses init containers that may write into a volume of the container.
pub fn check_preparations(place: &ContainerPlace<'_>) -> Result<(), NotUnderstood> {
    let own: Vec<_> = mounts(place.pod, place.container).into_iter().map(|mount| mount.name).collect();
    let before = place.pod.get("initContainers").map(|all| all.items()).unwrap_or_default();
    for container in before.iter().filter(|container| !Rc::ptr_eq(container, place.container)) {
        let shares = mounts(place.pod, container).iter().any(|mount| own.contains(&mount.name) && !mount.has_files());
        if !shares {
            continue;
        }
        let environment = Environment::of_container(place.documents, place.document, container)?;
        let words = |key: &str| environment.words(place.document, container.get(key));
        if !command::is_harmless_preparation(&words("command")?, &words("args")?) {
            let name = container.text_at(&["name"]).unwrap_or("?");
            return not_understood(format!("the init container {name} may write into a volume of the server"));
        }
    }
    Ok(())
}
