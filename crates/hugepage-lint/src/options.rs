//! The options of `postgres` and of `initdb`, as settings.

use super::settings::{NotUnderstood, Setting, not_understood};
use super::yaml::LocatedNode;

/// A word of a command line, with the value of the manifest that has it.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The word as the program gets it.
    pub text: String,
    /// The value that the word is in.
    pub place: LocatedNode,
}

/// The options of a server.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Settings in their order.
    pub settings: Vec<Setting>,
    /// `-D`.
    pub data_directory: Option<String>,
}

/// The options of initdb.
#[derive(Debug, Default)]
pub struct InitdbOptions {
    /// Settings of `--set`, which initdb writes into postgresql.conf.
    pub settings: Vec<Setting>,
    /// `--wal-segsize`, in MB.
    pub wal_segment_mb: Option<u32>,
}

/// The first major whose initdb has `--set`.
pub const FIRST_WITH_SET: u32 = 16;
/// Options of postgres that need no value, and those that need one (postmaster.c, `getopt`).
const FLAGS: &str = "EeFijlnOPsT";
const WITH_VALUE: &str = "BcDdfhkNprStW";

fn assignment(text: &str, place: &LocatedNode) -> Result<Setting, NotUnderstood> {
    match text.split_once('=') {
        // The server takes the blank for a part of the name.
        Some((name, _)) if name.contains(char::is_whitespace) => {
            not_understood(format!("no setting is named \"{name}\""))
        }
        Some((name, value)) => Ok(Setting::of_manifest(&name.replace('-', "_"), value, place.clone())),
        None => not_understood(format!("the option \"{text}\" has no value")),
    }
}

/// The options of postgres(1).
pub fn of_server(words: &[Argument]) -> Result<ServerOptions, NotUnderstood> {
    let mut options = ServerOptions::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if let Some(long) = word.text.strip_prefix("--") {
            options.settings.push(assignment(long, &word.place)?);
            continue;
        }
        let Some(short) = word.text.strip_prefix('-').filter(|short| !short.is_empty()) else {
            return not_understood(format!("postgres gets the word \"{}\"", word.text));
        };
        let letters = short.trim_start_matches(|c: char| FLAGS.contains(c));
        let Some(letter) = letters.chars().next() else { continue };
        if !WITH_VALUE.contains(letter) {
            return not_understood(format!("postgres gets the option \"{}\"", word.text));
        }
        let (value, place) = match letters.get(1..).filter(|value| !value.is_empty()) {
            Some(value) => (value, &word.place),
            None => match rest.next() {
                Some(next) => (next.text.as_str(), &next.place),
                None => return not_understood(format!("the option \"{}\" has no value", word.text)),
            },
        };
        match letter {
            'c' => options.settings.push(assignment(value, place)?),
            'B' => options.settings.push(Setting::of_manifest("shared_buffers", value, place.clone())),
            'N' => options.settings.push(Setting::of_manifest("max_connections", value, place.clone())),
            'D' => options.data_directory = Some(value.to_owned()),
            _ => {}
        }
    }
    Ok(options)
}

/// The options of initdb(1). `major`: options of later majors are refused by it.
pub fn of_initdb(words: &[Argument], major: Option<u32>) -> Result<InitdbOptions, NotUnderstood> {
    let mut options = InitdbOptions::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ if text.starts_with("-c") && text.len() > 2 => ("-c", text.get(2..)),
            _ => (text, None),
        };
        if matches!(name, "-D" | "--pgdata" | "-L") {
            return not_understood(format!("initdb gets the option \"{text}\""));
        }
        if !matches!(name, "-c" | "--set" | "--wal-segsize") {
            continue;
        }
        let Some(value) = value.or_else(|| rest.next().map(|next| next.text.as_str())) else {
            return not_understood(format!("initdb's option \"{text}\" has no value"));
        };
        match (name, major) {
            ("--wal-segsize", _) => match value.parse::<u32>() {
                Ok(size) if size.is_power_of_two() && size <= 1024 => options.wal_segment_mb = Some(size),
                _ => return not_understood(format!("initdb's option \"{text}\" has the value \"{value}\"")),
            },
            (_, Some(major)) if major < FIRST_WITH_SET => {
                return not_understood(format!("initdb of PostgreSQL {major} has no option {name}, and fails"));
            }
            _ => options.settings.push(assignment(value, &word.place)?),
        }
    }
    Ok(options)
}
