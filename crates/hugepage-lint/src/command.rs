//! What a container runs: a server with its options, another program, or something that is not understood.

use super::options::Argument;
use super::shell::{self, ShellCommand};
use super::words::is_one_of;

/// What a container runs.
#[derive(Debug)]
pub enum ContainerProgram {
    /// A server.
    Server {
        /// The options of the server.
        options: Vec<Argument>,
        /// Whether the image's entry point starts it, which runs initdb where there is no data directory.
        by_entrypoint: bool,
    },
    /// A program that is no server.
    Other,
    /// Something that may be a server; the text says what.
    Unknown(String),
}

/// Programs of PostgreSQL that are no servers.
const CLIENTS: &str = "psql pg_dump pg_dumpall pg_restore pg_isready pgbench createdb dropdb createuser vacuumdb reindexdb clusterdb \
    pg_basebackup pg_receivewal pg_recvlogical pg_verifybackup pg_amcheck pgbackrest wal-g barman pg_archivecleanup";
/// Words and programs of scripts that start no server.
const HARMLESS: &str = "if then else elif fi while until do done for ! [ [[ test true false : set exit wait echo printf sleep date chown \
    chmod mkdir rmdir ls id cat gzip gunzip zstd bzip2 xz tar find rm du df head tail grep awk nc trap read break \
    sysctl";
/// Programs that only a script of a client uses.
const TRANSFERS: &str = "export unset aws mc gsutil az s3cmd rclone curl wget scp rsync cp mv touch sed apk";
const SHELLS: &str = "sh bash ash dash";
/// Directories whose programs are the image's own.
const DIRECTORIES: [&str; 6] =
    ["/usr/lib/postgresql/", "/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"];
const ENTRYPOINT: &str = "docker-entrypoint.sh";

/// The name of a program: of a path only if it is the image's own.
fn program(word: &str) -> &str {
    match word.rsplit_once('/') {
        Some((_, name)) if DIRECTORIES.iter().any(|directory| word.starts_with(directory)) => name,
        _ => word,
    }
}

/// What `command` and `args` of a container run. `command` replaces the image's entry point.
pub fn of_container(command: &[Argument], args: &[Argument]) -> ContainerProgram {
    match command {
        [] => of_entrypoint(args),
        _ => of_words(&[command, args].concat()),
    }
}

/// The official image's entry point: options are those of a server.
fn of_entrypoint(words: &[Argument]) -> ContainerProgram {
    match words.first() {
        Some(first) if !first.text.starts_with('-') => match of_words(words) {
            ContainerProgram::Server { options, .. } => ContainerProgram::Server { options, by_entrypoint: true },
            other => other,
        },
        _ => ContainerProgram::Server { options: words.to_vec(), by_entrypoint: true },
    }
}

fn of_words(words: &[Argument]) -> ContainerProgram {
    let Some((first, rest)) = words.split_first() else {
        return ContainerProgram::Unknown("its command is empty".to_owned());
    };
    match program(&first.text) {
        "postgres" => ContainerProgram::Server { options: rest.to_vec(), by_entrypoint: false },
        // `command` replaces the image's arguments, too.
        ENTRYPOINT if rest.is_empty() => ContainerProgram::Unknown("its entry point gets no program".to_owned()),
        ENTRYPOINT => of_entrypoint(rest),
        name if is_one_of(CLIENTS, name) || is_one_of(HARMLESS, name) => ContainerProgram::Other,
        name if is_one_of(SHELLS, name) => of_shell(rest),
        _ => ContainerProgram::Unknown(format!("it runs {}", first.text)),
    }
}

/// `sh -c SCRIPT`.
fn of_shell(words: &[Argument]) -> ContainerProgram {
    let is_script = |flags: &str| {
        flags
            .strip_prefix('-')
            .is_some_and(|letters| letters.ends_with('c') && letters.chars().all(|c| "ceuxl".contains(c)))
    };
    let script = match words {
        [flags, script] if is_script(&flags.text) => shell::commands(&script.text).map(|commands| (commands, script)),
        _ => None,
    };
    match script {
        Some((commands, script)) => of_script(&commands, script),
        None => ContainerProgram::Unknown("it runs a script that was not understood".to_owned()),
    }
}

fn of_script(commands: &[ShellCommand], script: &Argument) -> ContainerProgram {
    let is_of = |command: &ShellCommand, lists: &[&str]| {
        let first = first_program(command);
        first.is_none_or(|(name, is_literal)| is_literal && lists.iter().any(|list| is_one_of(list, name)))
    };
    if commands.iter().all(|command| is_of(command, &[CLIENTS, HARMLESS, TRANSFERS])) {
        return ContainerProgram::Other;
    }
    let unknown = || ContainerProgram::Unknown("it runs a script that was not understood".to_owned());
    let Some((server, before)) = commands.split_last() else { return unknown() };
    let is_plain = |command: &ShellCommand| !command.is_redirected && command.words.iter().all(|word| word.is_literal);
    if !is_plain(server) || !before.iter().all(|command| is_plain(command) && is_of(command, &[PREPARATIONS])) {
        return unknown();
    }
    let words = server.words.iter().map(|word| Argument { text: word.text.clone(), place: script.place.clone() });
    let words: Vec<_> = words.skip_while(|word| word.text == "exec").collect();
    match of_words(&words) {
        server @ ContainerProgram::Server { .. } => server,
        _ => unknown(),
    }
}

/// The program of a command, behind keywords and assignments, and whether the shell leaves it as it is.
fn first_program(command: &ShellCommand) -> Option<(&str, bool)> {
    let is_before = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        let is_assignment = name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        is_assignment || is_one_of("then else do if while until ! exec", word)
    };
    let word = command.words.iter().find(|word| !is_before(&word.text))?;
    Some((program(&word.text), word.is_literal))
}

/// What a script may do before it starts a server, without a change of what the server reads.
const PREPARATIONS: &str = "chown chmod mkdir echo sleep set";

/// Whether an init container can leave nothing behind that a server reads.
pub fn is_harmless_preparation(command: &[Argument], args: &[Argument]) -> bool {
    let words = [command, args].concat();
    let texts: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
    let is_known =
        |name: &str| !is_one_of("cat find tar", name) && (is_one_of(HARMLESS, name) || is_one_of(CLIENTS, name));
    match texts.as_slice() {
        [shell, _, script] if is_one_of(SHELLS, program(shell)) => shell::commands(script).is_some_and(|commands| {
            let is_harmless = |command: &ShellCommand| {
                !command.is_redirected
                    && first_program(command).is_none_or(|(name, is_literal)| is_literal && is_known(name))
            };
            commands.iter().all(is_harmless)
        }),
        [first, ..] => is_known(program(first)),
        [] => false,
    }
}
