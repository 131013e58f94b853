//! Makes Rust of two lists when the crate is compiled, so that the programs need no parser of them: JSON of the table of kernel
//! advisories, and constants of the columns, whose names the compiler then checks.

#![allow(
    clippy::disallowed_methods,
    reason = "the lists are read when the crate is compiled"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const ADVISORIES: &str = "src/assessment/kernel-advisories.toml";
const COLUMNS: &str = "columns.txt";

fn main() {
    write("kernel-advisories.json", &advisories(&read(ADVISORIES)));
    write("columns.rs", &Declarations::parse(&read(COLUMNS)).rust());
}

fn read(path: &str) -> String {
    println!("cargo::rerun-if-changed={path}");
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn write(name: &str, text: &str) {
    let directory = env::var("OUT_DIR").unwrap_or_else(|error| panic!("OUT_DIR: {error}"));
    fs::write(Path::new(&directory).join(name), text).unwrap_or_else(|error| panic!("{error}"));
}

fn advisories(text: &str) -> String {
    let table: toml::Table = text
        .parse()
        .unwrap_or_else(|error| panic!("{ADVISORIES}: {error}"));
    serde_json::to_string(&table).unwrap_or_else(|error| panic!("{ADVISORIES}: {error}"))
}

/// One line: a column, or a metric.
#[derive(Clone)]
struct Line<'a> {
    name: &'a str,
    /// The column that a metric shows; the name of another one.
    shows: &'a str,
    kind: &'a str,
    meaning: &'a str,
}

struct Section<'a> {
    name: &'a str,
    /// What stands behind the name.
    about: &'a str,
    lines: Vec<Line<'a>>,
}

#[derive(Default)]
struct Declarations<'a> {
    sections: Vec<Section<'a>>,
    /// The words of which a column has one.
    words: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Declarations<'a> {
    fn parse(text: &'a str) -> Self {
        let mut all = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let fail = |why: &str| -> ! { panic!("{COLUMNS}:{number}: {why}: {line}") };
            if line.is_empty() || line.starts_with('#') {
            } else if let Some(heading) = line.strip_prefix('[') {
                let (name, about) = heading
                    .split_once(']')
                    .unwrap_or_else(|| fail("no bracket"));
                let lines = Vec::new();
                let about = about.trim();
                all.sections.push(Section { name, about, lines });
            } else if let Some((name, words)) = line.split_once(": ").filter(|_| all.is_of("words"))
            {
                all.words.insert(name, words.split(", ").collect());
            } else {
                let line = all.line(line).unwrap_or_else(|why| fail(&why));
                let section = all
                    .sections
                    .last_mut()
                    .unwrap_or_else(|| fail("no section"));
                if section.lines.iter().any(|known| known.name == line.name) {
                    fail("the section has the column already");
                }
                section.lines.push(line);
            }
        }
        all
    }

    /// Whether the section that is read is one of these.
    fn is_of(&self, kind: &str) -> bool {
        let last = self.sections.last();
        last.is_some_and(|section| section.name.split(' ').next() == Some(kind))
    }

    fn line(&self, line: &'a str) -> Result<Line<'a>, String> {
        let words: Vec<_> = line.splitn(3, ' ').collect();
        match *words {
            [name] => self.declared(name),
            [name, shows] if self.is_of("metrics") => Ok(Line {
                name,
                ..self.declared(shows)?
            }),
            [name, kind, meaning] => Ok(Line {
                name,
                shows: name,
                kind,
                meaning,
            }),
            _ => Err("a column has a name, a type and a meaning".to_owned()),
        }
    }

    /// The column of that name as the first section declares it, or with a point in the name the section before it.
    fn declared(&self, name: &'a str) -> Result<Line<'a>, String> {
        let (of, name) = name
            .split_once('.')
            .map_or((None, name), |(of, name)| (Some(of), name));
        let mut sections = self.sections.iter();
        let found = sections
            .by_ref()
            .filter(|section| of.is_none_or(|of| of == section.name))
            .flat_map(|section| &section.lines)
            .find(|line| line.name == name);
        found
            .cloned()
            .ok_or(format!("no section above declares {name}"))
    }

    fn rust(&self) -> String {
        let mut rust = String::new();
        for section in self
            .sections
            .iter()
            .filter(|section| section.name != "words")
        {
            let (about, constant) = (section.name, section.name.replace(' ', "_").to_uppercase());
            let _ = write!(
                rust,
                "/// The section {about} of columns.txt.\npub const {constant}: &[Column] = &["
            );
            for line in &section.lines {
                rust += &self.column(line);
            }
            rust += "];\n";
        }
        rust + &self.files() + &self.names()
    }

    /// The files for Oracle, with their views and what a row is; the first section has what each of them begins with.
    fn files(&self) -> String {
        let mut rust = "/// Name, view, meaning of a row, and columns of each file for Oracle.\n\
                        pub const FILES: &[(&str, &str, &str, &[Column])] = &["
            .to_owned();
        for section in &self.sections {
            let file = section.name.strip_prefix("oracle ");
            let Some((file, (view, about))) = file.zip(section.about.split_once(' ')) else {
                continue;
            };
            let constant = file.to_uppercase();
            let _ = write!(rust, "({file:?}, {view:?}, {about:?}, ORACLE_{constant}),");
        }
        rust + "];\n"
    }

    /// A constant for each name that a row may have.
    fn names(&self) -> String {
        let lines = self.sections.iter().flat_map(|section| &section.lines);
        let names: BTreeSet<_> = lines.map(|line| line.name).collect();
        let mut rust = "/// Each name that columns.txt declares.\n\
                        #[allow(missing_docs, non_upper_case_globals)]\npub mod declared {"
            .to_owned();
        for name in names {
            let _ = write!(rust, "pub const {name}: &str = {name:?};");
        }
        rust + "}\n"
    }

    fn column(&self, line: &Line<'_>) -> String {
        let (kind, width) = line
            .kind
            .trim_end_matches(')')
            .split_once('(')
            .unwrap_or((line.kind, "0"));
        let (first, rest) = kind.split_at(1);
        let kind = first.to_uppercase() + rest;
        let kind = match &*kind {
            "Text" | "Word" | "Prose" | "Instruction" | "Command" => format!("{kind}({width})"),
            _ => kind,
        };
        let words = self.words.get(line.shows).map_or(&[][..], Vec::as_slice);
        format!(
            "Column {{ name: {:?}, metric: {:?}, kind: ColumnType::{kind}, meaning: {:?}, words: &{words:?} }},",
            line.shows, line.name, line.meaning
        )
    }
}
