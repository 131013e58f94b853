//! The name of an image: whether it is one of a PostgreSQL server, whether its defaults are known, and its major version.

use super::words::{Mention, mention};

/// Images that add extensions to the official image and change none of its settings, with the official one. Others make a
/// configuration of their own: by variables, by the limit of memory, or by a file that cannot be seen in a manifest.
const KNOWN: [&str; 4] = ["library/postgres", "postgres", "postgis/postgis", "pgvector/pgvector"];
/// Registries that have these images under the same names.
const REGISTRIES: [&str; 6] = [
    "docker.io/",
    "index.docker.io/",
    "registry-1.docker.io/",
    "registry.hub.docker.com/",
    "public.ecr.aws/docker/",
    "mirror.gcr.io/",
];

/// The name without tag and digest.
pub fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    name.get(last..).and_then(|part| part.find(':')).map_or(name, |colon| &name[..last + colon])
}

/// Whether the settings of a server in this image are PostgreSQL's defaults where nothing else is said.
pub fn has_known_defaults(image: &str) -> bool {
    let repository = repository(image);
    let name = REGISTRIES.iter().find_map(|registry| repository.strip_prefix(registry)).unwrap_or(repository);
    KNOWN.contains(&name)
}

/// What the last part of the name mentions.
pub fn mentions(image: &str) -> Mention {
    mention(repository(image).rsplit('/').next().unwrap_or_default())
}

/// The major version in the tag of an image: `postgres:17.2-bookworm`, `timescaledb:2.17-pg16`, `ubi8-14.6-2`.
pub fn major(image: &str) -> Option<u32> {
    let image = image.split('@').next()?;
    let tag = image.rsplit('/').next()?.split_once(':')?.1;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let after_pg = tag.split("pg").nth(1).and_then(number);
    let after_base = tag.strip_prefix("ubi8-").or_else(|| tag.strip_prefix("ubi9-")).unwrap_or(tag);
    after_pg.or_else(|| number(after_base)).filter(|major| (9..100).contains(major))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images() {
        for (image, known, mentions_one, version) in [
            ("postgres:17.2-bookworm", true, Mention::Server, Some(17)),
            ("docker.io/library/postgres:16", true, Mention::Server, Some(16)),
            ("docker.io/postgres@sha256:0123", true, Mention::Server, None),
            ("registry:5000/postgres:15", false, Mention::Server, Some(15)),
            ("cloudnative-pg/postgresql:16.2-1@sha256:0123", false, Mention::Server, Some(16)),
            ("registry:5000/timescale/timescaledb:2.17.2-pg16", false, Mention::Server, Some(16)),
            ("postgis/postgis:16-3.4", true, Mention::Server, Some(16)),
            ("pgvector/pgvector:0.8.0-pg17", true, Mention::Server, Some(17)),
            ("postgres", true, Mention::Server, None),
            ("postgres:latest", true, Mention::Server, None),
            ("bitnami/postgresql-repmgr:16", false, Mention::Server, Some(16)),
            ("rhel9/postgresql-16:1", false, Mention::Server, None),
            ("crunchy-postgres:ubi8-14.6-2", false, Mention::Server, Some(14)),
            ("prometheuscommunity/postgres-exporter:v0.15.0", false, Mention::Other, None),
            ("bitnami/pgbouncer:1.23", false, Mention::None, None),
            ("postgrest/postgrest:v12", false, Mention::None, None),
            ("zalando/postgres-operator:v1", false, Mention::Other, None),
            ("nginx:1.27", false, Mention::None, None),
        ] {
            assert_eq!((has_known_defaults(image), mentions(image)), (known, mentions_one), "{image}");
            if mentions_one == Mention::Server {
                assert_eq!(major(image), version, "{image}");
            }
        }
    }
}
