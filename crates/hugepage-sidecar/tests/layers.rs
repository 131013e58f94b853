//! The order of the crates, and that no files of one name each other in a circle.

#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate, and those of the workspace that it may name: what Cargo.toml says, in the order that is meant.
const CRATES: [(&str, &[&str]); 7] = [
    ("kernel", &[]),
    ("start", &["kernel"]),
    ("assess", &["kernel"]),
    ("server", &["assess", "kernel"]),
    ("sizing", &["assess", "kernel"]),
    ("oracle", &["assess", "kernel", "sizing"]),
    ("host", &["assess", "kernel", "oracle", "server", "sizing", "start"]),
];

/// What the extension names of the workspace: nothing of Oracle, and nothing of other servers.
const OF_THE_EXTENSION: [&str; 4] = ["assess", "kernel", "server", "start"];

/// A path in the source, such as `crate::read::Root`: its segments.
type Segments = Vec<String>;

/// The files of one crate, and which files each of them names.
struct Graph {
    edges: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

/// The source files below one directory by their modules.
struct Sources {
    files: BTreeMap<Segments, Source>,
}

struct Source {
    path: PathBuf,
    named: Vec<Segments>,
    /// What `pub use` gives another place: the last segment and the path.
    exported: BTreeMap<String, Segments>,
}

#[test]
fn each_crate_names_those_below_it() {
    let named = |manifest: &Path| {
        let text = fs::read_to_string(manifest).unwrap();
        let text = text.split("[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap().to_owned();
        let names = text.lines().filter_map(|line| line.strip_prefix("hugepage-")?.split(['.', ' ']).next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, below) in CRATES {
        assert_eq!(named(&workspace().join(format!("crates/hugepage-{name}/Cargo.toml"))), *below, "hugepage-{name}");
    }
    assert_eq!(named(&workspace().join("Cargo.toml")), OF_THE_EXTENSION);
}

#[test]
fn no_circle_of_files() {
    for directory in source_directories() {
        let graph = Graph::below(&directory);
        assert_eq!(graph.circles(), Vec::<Vec<PathBuf>>::new(), "{}", directory.display());
    }
    assert!(
        Graph::below(&workspace().join("crates/hugepage-assess/src")).arrows().count() > 100,
        "the paths are found"
    );
}

#[test]
fn type_names_are_unique_in_the_workspace() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for directory in source_directories() {
        for path in rust_files(&directory) {
            for line in fs::read_to_string(&path).unwrap().lines() {
                // Associated types are indented, and named by the trait.
                let line =
                    line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
                let Some(rest) =
                    ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))
                else {
                    continue;
                };
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                places.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    assert!(places.len() > 200, "the types are found");
    places.retain(|_, places| places.len() > 1);
    assert_eq!(places, BTreeMap::new());
}

#[test]
fn circles_and_reexports_are_seen() {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("lib.rs", "pub mod a;\npub use a::one::One;\n"),
        ("a/mod.rs", "//! use crate::nothing;\nmod one;\nmod two;\npub use one::One;\n"),
        ("a/one.rs", "pub struct One;\nfn f() -> super::two::Two { \"crate::a::none\"; '\"'; super::two::Two }\n"),
        ("a/two.rs", "use crate::a::{One, other::{self}};\npub(in crate::a) struct Two<'a>(&'a One);\n"),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let graph = Graph::below(tree.path());
    assert_eq!(graph.circles(), [["a/one.rs", "a/two.rs"].map(PathBuf::from)]);
    let arrows: Vec<_> = graph.arrows().map(|(from, to)| format!("{} {}", from.display(), to.display())).collect();
    // `other` is no module, so the name could be an item of a/mod.rs.
    assert_eq!(arrows, ["a/one.rs a/two.rs", "a/two.rs a/mod.rs", "a/two.rs a/one.rs"]);
}

/// The workspace; at run time, so that the compiled test can be pointed to another checkout.
fn workspace() -> PathBuf {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&manifest).join("../..")
}

/// The sources of the extension and of each crate.
fn source_directories() -> Vec<PathBuf> {
    let crates = fs::read_dir(workspace().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    crates.filter(|sources| sources.is_dir()).chain([workspace().join("src")]).collect()
}

impl Graph {
    fn below(directory: &Path) -> Self {
        let mut sources = Sources { files: BTreeMap::new() };
        sources.add(directory, directory);
        let edges = sources.files.iter().map(|(module, source)| {
            let named = source.named.iter().filter_map(|segments| sources.find(module, segments, 0));
            // What a mod.rs puts together of its own parts is no arrow, as a part may name what the whole shares.
            let own = source.path.parent().filter(|_| source.path.ends_with("mod.rs"));
            let is_arrow = |path: &PathBuf| *path != source.path && !own.is_some_and(|own| path.starts_with(own));
            (source.path.clone(), named.filter(is_arrow).collect())
        });
        Self { edges: edges.collect() }
    }

    fn arrows(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from.as_path(), to.as_path())))
    }

    fn reachable<'a>(&'a self, from: &'a Path) -> BTreeSet<&'a Path> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(path) = open.pop() {
            open.extend(self.edges[path].iter().map(PathBuf::as_path).filter(|next| seen.insert(*next)));
        }
        seen
    }

    /// The files of each circle, sorted.
    fn circles(&self) -> Vec<Vec<PathBuf>> {
        let reach: BTreeMap<_, _> = self.edges.keys().map(|path| (path.as_path(), self.reachable(path))).collect();
        let circle = |path: &Path| {
            reach[path].iter().filter(|other| reach[**other].contains(path)).map(|one| one.to_path_buf()).collect()
        };
        let circles: BTreeSet<Vec<PathBuf>> =
            reach.keys().filter(|path| reach[*path].contains(*path)).map(|path| circle(path)).collect();
        circles.into_iter().collect()
    }
}

impl Sources {
    fn add(&mut self, top: &Path, directory: &Path) {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                self.add(top, &entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let path = entry.strip_prefix(top).unwrap().to_owned();
                let mut module: Segments =
                    path.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
                let text = fs::read_to_string(&entry).unwrap();
                let (named, exported) = paths(&tokens(text.split("#[cfg(test)]\nmod ").next().unwrap()));
                self.files.insert(module, Source { path, named, exported });
            }
        }
    }

    /// The file that `segments`, written in `module`, lead to; `None` if that is outside of the crate.
    fn find(&self, module: &[String], segments: &[String], depth: usize) -> Option<PathBuf> {
        let (mut at, mut rest) = match segments.first()?.as_str() {
            "crate" => (Vec::new(), &segments[1..]),
            "self" => (module.to_vec(), &segments[1..]),
            "super" => (module[..module.len().checked_sub(1)?].to_vec(), &segments[1..]),
            first if self.files.contains_key(&[module, &[first.to_owned()]].concat()) => (module.to_vec(), segments),
            _ => return None,
        };
        while let [first, tail @ ..] = rest {
            let next = match first.as_str() {
                "super" => at[..at.len().checked_sub(1)?].to_vec(),
                name => [&at[..], &[name.to_owned()]].concat(),
            };
            if !self.files.contains_key(&next) {
                break;
            }
            (at, rest) = (next, tail);
        }
        let source = self.files.get(&at)?;
        match rest.first().and_then(|name| source.exported.get(name)).filter(|_| depth < 8) {
            Some(exported) => self.find(&at, exported, depth + 1).or_else(|| Some(source.path.clone())),
            None => Some(source.path.clone()),
        }
    }
}

/// The words and signs of a source, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => end_of_string(rest),
            'r' if rest.starts_with("r\"") => rest[2..].find('"').map_or(rest.len(), |at| at + 3),
            'r' if rest.starts_with("r#\"") => rest[3..].find("\"#").map_or(rest.len(), |at| at + 5),
            '\'' if rest.starts_with("'\\") => rest[3..].find('\'').map_or(rest.len(), |at| at + 4),
            '\'' if rest.chars().nth(2) == Some('\'') => rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at),
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                tokens.push(rest[..end].to_owned());
                end
            }
            ':' if rest.starts_with("::") => {
                tokens.push("::".to_owned());
                2
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(first.to_string());
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// All paths that the tokens name, and apart from them those of `pub use`.
fn paths(tokens: &[String]) -> (Vec<Segments>, BTreeMap<String, Segments>) {
    let (mut named, mut exported) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while at < tokens.len() {
        let word = tokens[at].as_str();
        let before = at.checked_sub(1).map_or("", |at| tokens[at].as_str());
        match word {
            // Who may see it: not a use of that module.
            "pub" if tokens.get(at + 1).is_some_and(|next| next == "(") => {
                at += tokens[at..].iter().position(|token| token == ")").unwrap();
            }
            "use" => {
                let mut found = Vec::new();
                at = tree(tokens, at + 1, &[], &mut found);
                if before == "pub" {
                    exported.extend(found.into_iter().map(|path| (path.last().unwrap().clone(), path)));
                } else {
                    named.extend(found);
                }
            }
            "crate" | "super" | "self" if before != "::" && tokens.get(at + 1).is_some_and(|next| next == "::") => {
                at = tree(tokens, at, &[], &mut named);
            }
            _ => at += 1,
        }
    }
    (named, exported)
}

/// Adds the paths of a tree such as `a::{b, c::d}` that begins at `at`; returns where it ends.
fn tree(tokens: &[String], mut at: usize, prefix: &[String], found: &mut Vec<Segments>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = tree(tokens, at, &path, found);
                    // `as name`, and the comma.
                    while tokens.get(at).is_some_and(|token| token != "," && token != "}") {
                        at += 1;
                    }
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                }
                return at + 1;
            }
            Some("self") if !path.is_empty() => at += 1,
            Some(word) if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(word.to_owned());
                at += 1;
            }
            // `*`, or the generic arguments of a call.
            _ => break,
        }
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    found.push(path);
    at
}

/// All source files below `directory`.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
