//! Names of PostgreSQL and of programs around it, as whole words.

/// What a name mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    /// A PostgreSQL server, as far as a name says so.
    Server,
    /// A program around PostgreSQL: an exporter, an operator, a client.
    Other,
    /// Nothing of PostgreSQL.
    None,
}

/// Words of a server, of a product that contains one, or of an operator's custom resource.
const SERVERS: &str = "postgres postgresql postmaster pgsql postgis pgvector pgvecto vchord timescale timescaledb citus paradedb spilo \
    patroni stolon pgautoupgrade orioledb postgresml supabase neon cnpg cloudnativepg stackgres sgcluster sgshardedcluster \
    kubegres pgcluster perconapgcluster postgrescluster pgo";
/// Words of what is no server, although it names one.
const OTHERS: &str = "exporter operator backup backups backrest pgbackrest barman wal bouncer pgbouncer pgpool pooler pool client \
    upgrade pgadmin pgadmin4 admin dump restore migrate migration migrations rest proxy monitor monitoring metrics \
    controller webhook console ui mcp cdc sync pull credentials wait init permissions app api";

/// Whether a word is in a list that is separated by blanks.
pub fn is_one_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// What a name mentions: `postgres-exporter` an other program, `rhel9/postgresql-16` a server.
pub fn mention(name: &str) -> Mention {
    let lower = name.to_ascii_lowercase();
    let words: Vec<_> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
        .collect();
    let has = |list: &str| words.iter().any(|word| is_one_of(list, word));
    match (has(SERVERS), has(OTHERS)) {
        (false, _) => Mention::None,
        (true, true) => Mention::Other,
        (true, false) => Mention::Server,
    }
}

/// Keys of documents whose values name an image, a chart or a kind of database.
const KEYS: &str = "apiVersion kind image imageName repository clusterDef clusterDefinitionRef componentDef componentDefRef \
    clusterVersionRef componentType chart chartName engine flavor serviceType newName";

/// Whether the value of a key of any document may name a server.
pub fn names_server(key: &str, value: &str) -> bool {
    let value = value.split('@').next().unwrap_or_default();
    match key {
        // The words of a kind are not separated.
        "kind" => {
            let kind = value.to_ascii_lowercase();
            let others =
                ["backup", "restore", "user", "role", "database", "schema", "grant", "policy", "upgrade", "team"];
            let is_other = others.iter().any(|other| kind.contains(other)) || mention(value) == Mention::Other;
            !is_other && (kind.contains("postgres") || mention(value) == Mention::Server)
        }
        _ => is_one_of(KEYS, key) && mention(value) == Mention::Server,
    }
}
