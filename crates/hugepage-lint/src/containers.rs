//! Containers that run PostgreSQL: which they are, and the settings on their command line.

use std::rc::Rc;

use super::fields::name_of;
use super::postgres::{LocatedNode, ManifestForm, Postgres, Resources};
use super::yaml::YamlNode;

/// The PostgreSQLs of the pod at the end of `path`.
pub fn containers(place: &LocatedNode, path: &[&str]) -> Vec<Postgres> {
    let Some(pod) = place.node.at(path) else { return Vec::new() };
    let all = pod.get("containers").map(|all| all.items()).unwrap_or_default();
    all.iter().filter_map(|container| postgres_of(place, container)).collect()
}

fn postgres_of(place: &LocatedNode, container: &Rc<YamlNode>) -> Option<Postgres> {
    let words: Vec<&Rc<YamlNode>> =
        ["command", "args"].iter().filter_map(|key| container.get(key)).flat_map(|list| list.items()).collect();
    let image = container.text_at(&["image"]).unwrap_or_default();
    let runs_server = words.first().and_then(|word| word.text()).is_some_and(|word| word.ends_with("postgres"));
    if !runs_server && !is_server_image(image) {
        return None;
    }
    let found = |node: &Rc<YamlNode>| LocatedNode { file: place.file, node: Rc::clone(node) };
    let (settings, mut unknown) = command_line(&words, &found);
    let mounts = container.get("volumeMounts").map(|mounts| mounts.items()).unwrap_or_default();
    let mounted = mounts.iter().filter_map(|mount| mount.text_at(&["mountPath"])).find(|path| path.contains(".conf"));
    if let Some(path) = mounted {
        unknown.get_or_insert_with(|| format!("the container has a configuration file mounted at {path}"));
    }
    let container_name = container.text_at(&["name"]).unwrap_or("?");
    Some(Postgres {
        form: ManifestForm::Pod,
        name: format!("{}, container {container_name}", name_of(&place.node)),
        place: found(container),
        major: major_of_image(image),
        settings,
        settings_home: None,
        settings_unknown: unknown,
        max_connections_at_most: None,
        resources: Resources::Limits(found(container)),
        wal_segment_mb: None,
    })
}

/// Settings on the server's command line (postgres(1)), and why there are others.
#[allow(clippy::type_complexity)]
fn command_line(
    words: &[&Rc<YamlNode>],
    found: &dyn Fn(&Rc<YamlNode>) -> LocatedNode,
) -> (Vec<(String, String, Option<LocatedNode>)>, Option<String>) {
    let (mut settings, mut unknown) = (Vec::new(), None);
    let mut rest = words.iter().filter_map(|node| Some((node.text()?, *node)));
    while let Some((word, node)) = rest.next() {
        let (assignment, node) = match word {
            "-c" | "-B" | "-N" => match rest.next() {
                Some((value, node)) if word == "-c" => (value.to_owned(), node),
                Some((value, node)) if word == "-B" => (format!("shared_buffers={value}"), node),
                Some((value, node)) => (format!("max_connections={value}"), node),
                None => continue,
            },
            _ if word.starts_with("--") => (word[2..].to_owned(), node),
            _ if word.starts_with("-c") => (word[2..].to_owned(), node),
            _ if word.contains(char::is_whitespace) => {
                unknown = Some("the container runs a script".to_owned());
                continue;
            }
            _ => continue,
        };
        let Some((name, value)) = assignment.split_once('=') else { continue };
        let name = name.trim().replace('-', "_").to_ascii_lowercase();
        if name == "config_file" {
            unknown = Some(format!("they are in {value}"));
        }
        settings.push((name, value.trim().to_owned(), Some(found(node))));
    }
    (settings, unknown)
}

/// Whether an image is one of a server, by the last part of its name.
fn is_server_image(image: &str) -> bool {
    const SERVERS: [&str; 6] = ["postgres", "postgis", "pgvector", "timescaledb", "spilo", "patroni"];
    const OTHERS: [&str; 7] = ["exporter", "operator", "backup", "bouncer", "pool", "client", "upgrade"];
    let name = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default().to_ascii_lowercase();
    SERVERS.iter().any(|server| name.contains(server)) && !OTHERS.iter().any(|other| name.contains(other))
}

/// The major version in the tag of an image: `postgres:17.2-bookworm`, `timescaledb:2.17-pg16`.
pub fn major_of_image(image: &str) -> Option<u32> {
    let image = image.split('@').next()?;
    let tag = image.rsplit('/').next()?.split_once(':')?.1;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let after_pg = tag.split("pg").nth(1).and_then(number);
    after_pg.or_else(|| number(tag)).filter(|major| (9..100).contains(major))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images() {
        for (image, server, major) in [
            ("postgres:17.2-bookworm", true, Some(17)),
            ("registry.example/cloudnative-pg/postgresql:16.2-1@sha256:0123", true, Some(16)),
            ("registry:5000/timescale/timescaledb:2.17.2-pg16", true, Some(16)),
            ("postgis/postgis:16-3.4", true, Some(16)),
            ("postgres", true, None),
            ("postgres:latest", true, None),
            ("registry.example/postgres-exporter:v0.15.0", false, None),
            ("bitnami/pgbouncer:1.23", false, None),
            ("nginx:1.27", false, None),
        ] {
            assert_eq!(is_server_image(image), server, "{image}");
            if server {
                assert_eq!(major_of_image(image), major, "{image}");
            }
        }
    }
}
