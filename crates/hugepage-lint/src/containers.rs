//! Containers that run PostgreSQL: which they are, and how their settings came about.

use std::rc::Rc;

use super::command::{self, ContainerProgram};
use super::environment::Environment;
use super::fields::{Documents, name_of};
use super::image;
use super::mounts::{self, ContainerPlace};
use super::node;
use super::options::{self, Argument, InitdbOptions};
use super::postgres::{ManifestForm, Postgres, Resources};
use super::settings::{Initdb, KnownSettings, NotUnderstood, Setting, not_understood};
use super::shell;
use super::words::{Mention, mention};
use super::yaml::{LocatedNode, YamlNode};

/// Where images have data directories.
const DATA: [&str; 3] = ["/var/lib/postgresql", "/var/lib/pgsql", "/bitnami/postgresql"];
/// How initdb of the official image is told to ask for no huge pages.
const INITDB_CURE: &str = "POSTGRES_INITDB_ARGS = \"--set huge_pages=off\"";

/// The PostgreSQLs of `pod`, which is somewhere in `document`.
pub fn of_pod(documents: &Documents, document: &LocatedNode, pod: &Rc<YamlNode>) -> Vec<Postgres> {
    let list = |key: &str| pod.get(key).map(|all| all.items()).unwrap_or_default();
    let all = list("initContainers").iter().chain(list("containers"));
    all.filter_map(|container| of_container(&ContainerPlace { documents, document, pod, container })).collect()
}

fn of_container(place: &ContainerPlace<'_>) -> Option<Postgres> {
    let ContainerPlace { document, pod, container, .. } = place;
    let image = container.text_at(&["image"]).unwrap_or_default();
    let program = program(place);
    let is_server = match &program {
        Ok(ContainerProgram::Other) => return None,
        Ok(ContainerProgram::Server { .. }) if image::has_known_defaults(image) || names_program(container) => true,
        _ => mentions_server(image, container, is_sidecar(place)),
    };
    if !is_server {
        return None;
    }
    let known = settings(place, image, program);
    let set_names = known.as_ref().map(|known| known.settings.as_slice()).unwrap_or_default();
    let major = image::major(image);
    let nonexistent = nonexistent(set_names, major);
    let container_name = container.text_at(&["name"]).unwrap_or("?");
    Some(Postgres {
        form: ManifestForm::Pod,
        name: format!("{}, container {container_name}", name_of(&document.node)),
        place: document.beside(container),
        settings: known,
        major,
        nonexistent,
        resources: Resources::Container { home: document.beside(container), pod: Some(document.beside(pod)) },
        default_page_size: node::default_page_size(pod),
    })
}

/// Settings of a manifest that no server of this major has.
pub fn nonexistent(settings: &[Setting], major: Option<u32>) -> Vec<Setting> {
    let is_one = |setting: &&Setting| setting.place.is_some() && !super::setting_names::exists(&setting.name, major);
    settings.iter().filter(is_one).cloned().collect()
}

fn words(place: &ContainerPlace<'_>, key: &str) -> Result<Vec<Argument>, NotUnderstood> {
    let environment = Environment::of_container(place.documents, place.document, place.container)?;
    environment.words(place.document, place.container.get(key))
}

fn program(place: &ContainerPlace<'_>) -> Result<ContainerProgram, NotUnderstood> {
    Ok(command::of_container(&words(place, "command")?, &words(place, "args")?))
}

/// Whether a container says which program it runs, and leaves not only options to its image.
fn names_program(container: &Rc<YamlNode>) -> bool {
    let first = |key: &str| container.get(key).and_then(|list| list.items().first()).and_then(|word| word.text());
    first("command").or_else(|| first("args")).is_some_and(|word| !word.starts_with('-'))
}

/// Whether the command line has what only servers get.
fn has_words_of_server(container: &Rc<YamlNode>) -> bool {
    let lists = ["command", "args"].into_iter().filter_map(|key| container.get(key));
    let mut words = lists.flat_map(|list| list.items()).filter_map(|word| word.text());
    words.any(|word| ["shared_buffers", "pg_ctl", "patroni", "initdb"].iter().any(|of_server| word.contains(of_server)))
}

fn has_huge_pages(limits: &Rc<YamlNode>) -> bool {
    limits.entries().iter().any(|(key, _)| key.text().is_some_and(|key| key.starts_with("hugepages-")))
}

/// Whether a container runs as long as its pod: no init container, or one that Kubernetes restarts.
fn is_sidecar(place: &ContainerPlace<'_>) -> bool {
    let before = place.pod.get("initContainers").map(|all| all.items()).unwrap_or_default();
    let is_init = before.iter().any(|container| Rc::ptr_eq(container, place.container));
    !is_init || place.container.text_at(&["restartPolicy"]) == Some("Always")
}

/// Whether a container may run a server: by its image, its command, its data directory, or its name where the image says nothing.
fn mentions_server(image: &str, container: &Rc<YamlNode>, is_sidecar: bool) -> bool {
    let name = mention(container.text_at(&["name"]).unwrap_or_default());
    let mounts = container.get("volumeMounts").map(|all| all.items()).unwrap_or_default();
    let paths = mounts.iter().filter_map(|mount| mount.text_at(&["mountPath"]));
    let has_data = paths.into_iter().any(|path| DATA.iter().any(|data| path.starts_with(data)));
    match image::mentions(image) {
        Mention::Server => true,
        Mention::None if is_sidecar && (name == Mention::Server || has_data) => true,
        // A patch of a manifest names the container alone.
        Mention::None if image.is_empty() && container.at(&["resources", "limits"]).is_some_and(has_huge_pages) => true,
        _ => has_words_of_server(container),
    }
}

/// The settings of the server in a container.
fn settings(
    place: &ContainerPlace<'_>,
    image: &str,
    program: Result<ContainerProgram, NotUnderstood>,
) -> Result<KnownSettings, NotUnderstood> {
    if !image::has_known_defaults(image) {
        return not_understood(match image {
            "" => "the container has no image".to_owned(),
            _ => format!("the image {image} is not one whose defaults are known"),
        });
    }
    let (options, by_entrypoint) = match program? {
        ContainerProgram::Server { options, by_entrypoint } => (options, by_entrypoint),
        ContainerProgram::Unknown(why) => return not_understood(why),
        ContainerProgram::Other => return not_understood("it runs another program"),
    };
    check_pod(place)?;
    if !by_entrypoint && !has_user(place) {
        return not_understood(
            "the command starts postgres as root, the image's user, which it refuses: start docker-entrypoint.sh, or set runAsUser",
        );
    }
    let major = image::major(image);
    let environment = Environment::of_container(place.documents, place.document, place.container)?;
    let initdb = match by_entrypoint {
        true => of_initdb(place, &environment, major)?,
        false => InitdbOptions::default(),
    };
    let server = options::of_server(&options)?;
    let setting =
        |name: &str| server.settings.iter().rev().find(|found| found.name == name).map(|found| found.value.clone());
    let data = data_directory(&environment, major)?;
    let given =
        server.data_directory.or_else(|| setting("data_directory")).filter(|given| given.trim_end_matches('/') != data);
    if let Some(other) = given {
        return not_understood(format!("the server's data directory is {other}"));
    }
    let config_file = setting("config_file");
    mounts::check(place, &data, config_file.as_deref())?;
    mounts::check_preparations(place)?;
    let asks = initdb_asks(&initdb.settings, major, by_entrypoint);
    let of_file = match config_file {
        Some(path) => mounts::configuration(place, &path)?,
        None => initdb.settings,
    };
    if of_file.iter().any(|setting| setting.name == "data_directory") {
        return not_understood("the configuration file sets data_directory");
    }
    let all = of_file.into_iter().chain(server.settings).collect();
    let known = KnownSettings::checked(major, all, None, asks)?;
    Ok(KnownSettings { wal_segment_mb: initdb.wal_segment_mb, ..known })
}

/// Whether the manifest sets another user than root.
fn has_user(place: &ContainerPlace<'_>) -> bool {
    let user = |of: &Rc<YamlNode>| of.text_at(&["securityContext", "runAsUser"]).map(str::to_owned);
    user(place.container).or_else(|| user(place.pod)).is_some_and(|user| user != "0")
}

/// Refuses what runs beside the command and may change its settings or its pages.
fn check_pod(place: &ContainerPlace<'_>) -> Result<(), NotUnderstood> {
    if place.container.at(&["lifecycle", "postStart"]).is_some() {
        return not_understood("postStart runs something that may change settings");
    }
    let of_pod = Resources::of_container(place.document.beside(place.pod));
    let containers = place.pod.get("containers").map(|all| all.items()).unwrap_or_default();
    let mut others = containers.iter().filter(|container| !Rc::ptr_eq(container, place.container));
    let shares = others.any(|other| !Resources::of_container(place.document.beside(other)).page_sizes().is_empty());
    if shares && !of_pod.page_sizes().is_empty() {
        return not_understood("another container takes a part of the pod's huge pages");
    }
    match place.pod.text_at(&["runtimeClassName"]) {
        Some(class) if !class.is_empty() => {
            not_understood(format!("the huge pages of the runtime class {class} are unknown"))
        }
        _ => Ok(()),
    }
}

fn of_initdb(
    place: &ContainerPlace<'_>,
    environment: &Environment,
    major: Option<u32>,
) -> Result<InitdbOptions, NotUnderstood> {
    if environment.get("POSTGRES_INITDB_ARGS_FILE")?.is_some() {
        return not_understood("the options of initdb are in a file");
    }
    let text = environment.get("POSTGRES_INITDB_ARGS")?.unwrap_or_default();
    let commands = shell::commands(text).unwrap_or_default();
    let is_plain =
        commands.iter().all(|command| !command.is_redirected && command.words.iter().all(|word| word.is_literal));
    if !is_plain || commands.len() > 1 || (commands.is_empty() && !text.trim().is_empty()) {
        return not_understood(format!("the options of initdb, {text}, were not understood"));
    }
    let words = commands.into_iter().flat_map(|command| command.words);
    let place = || place.document.beside(place.container);
    let words: Vec<_> = words.map(|word| Argument { text: word.text, place: place() }).collect();
    options::of_initdb(&words, major)
}

/// Whether initdb asks for pages of the default size, with the cure that its major has.
pub fn initdb_asks(settings: &[Setting], major: Option<u32>, runs: bool) -> Initdb {
    let last =
        |name: &str| settings.iter().rev().find(|setting| setting.name == name).map(|setting| setting.value.as_str());
    let is_off = last("huge_pages").is_some_and(|value| ["off", "false", "no", "0"].contains(&value));
    let is_other_size = last("huge_page_size").is_some_and(|value| value != "0");
    match runs && !is_off && !is_other_size {
        true => Initdb::AsksForPages(major.is_none_or(|major| major >= options::FIRST_WITH_SET).then_some(INITDB_CURE)),
        false => Initdb::Harmless,
    }
}

fn data_directory(environment: &Environment, major: Option<u32>) -> Result<String, NotUnderstood> {
    let usual = match major {
        Some(major) if major >= 18 => format!("/var/lib/postgresql/{major}/docker"),
        _ => "/var/lib/postgresql/data".to_owned(),
    };
    let given = environment.get("PGDATA")?.filter(|given| !given.is_empty());
    Ok(given.map_or(usual, |given| given.trim_end_matches('/').to_owned()))
}
