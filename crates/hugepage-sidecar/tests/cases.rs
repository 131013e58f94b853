//! Public cases: what reports of others say of huge pages, and what the product answers. `./dev cases` prints a line for each
//! question. tests/cases/README.md has the format.

#![allow(clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use hugepage_kernel::next_boot::{NextBoot, PoolAtBoot};
use hugepage_kernel::{PageSize, Root};

/// A heading of case.md with the lines below it.
#[derive(Clone, Debug)]
struct Question {
    kind: QuestionKind,
    /// `exit: 2`, `contains: TEXT`, `2M: 480`.
    expected: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum QuestionKind {
    /// The output of a command line in the case's directory.
    Output(String),
    /// What the pools of a tree have after the next boot.
    NextBoot(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    Honest,
    Wrong,
}

fn questions(text: &str) -> Vec<Question> {
    let sections = text.split("\n## ").skip(1);
    sections
        .filter_map(|section| {
            let (heading, body) = section.split_once('\n')?;
            let kind = match (
                heading.strip_prefix("Output of `"),
                heading.strip_prefix("Next boot"),
            ) {
                (Some(command), _) => QuestionKind::Output(command.strip_suffix('`')?.to_owned()),
                (_, Some("")) => QuestionKind::NextBoot("tree".to_owned()),
                (_, Some(tree)) => QuestionKind::NextBoot(tree.strip_prefix(" of ")?.to_owned()),
                _ => return None,
            };
            let lines = body
                .lines()
                .filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
            let expected = lines
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            Some(Question { kind, expected })
        })
        .collect()
}

impl Question {
    fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.expected
            .iter()
            .filter(move |(found, _)| found == key)
            .map(|(_, value)| value.as_str())
    }

    /// Whether `said` is one of the alternatives, or there are none.
    fn allows(&self, key: &str, said: &str) -> bool {
        let mut values = self.values(key).peekable();
        values.peek().is_none()
            || values.any(|value| alternatives(value).any(|value| value == said))
    }

    /// The answer in a few words, and what it is worth.
    fn answer(&self, case: &Path) -> (String, Verdict) {
        match &self.kind {
            QuestionKind::Output(command) => self.answer_of_command(case, command),
            QuestionKind::NextBoot(tree) => self.answer_of_boot(&case.join(tree)),
        }
    }

    fn answer_of_command(&self, case: &Path, command: &str) -> (String, Verdict) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
        let output = program
            .current_dir(case)
            .args(command.split(' '))
            .output()
            .unwrap();
        let status = output
            .status
            .code()
            .map_or("a signal".to_owned(), |status| status.to_string());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let has = |value: &str| {
            alternatives(value).any(|value| text.to_lowercase().contains(&value.to_lowercase()))
        };
        let lacks_all = !self.values("lacks").any(has);
        let verdict = match lacks_all {
            true if self.allows("exit", &status) && self.values("contains").all(has) => {
                Verdict::Right
            }
            true if self.values("honest").next().is_some() && self.allows("honest", &status) => {
                Verdict::Honest
            }
            _ => Verdict::Wrong,
        };
        (
            format!(
                "exit {status}: {}",
                text.chars().take(160).collect::<String>()
            ),
            verdict,
        )
    }

    fn answer_of_boot(&self, tree: &Path) -> (String, Verdict) {
        let host = running(tree);
        let boot = NextBoot::read(&Root::at(host.path()));
        let (mut answer, mut verdict) = (String::new(), Verdict::Right);
        for (what, value) in self.expected.iter().filter(|(what, _)| what != "honest") {
            let said = match PageSize::of_kernel_text(what).map(|size| boot.pool(size)) {
                Some(PoolAtBoot::Set(pages, _) | PoolAtBoot::Told(pages, _)) => pages.to_string(),
                Some(PoolAtBoot::Remembered(pages) | PoolAtBoot::Made { pages, .. }) => {
                    pages.to_string()
                }
                Some(PoolAtBoot::Unset) => "unset".to_owned(),
                Some(PoolAtBoot::Unseen { .. }) => "unseen".to_owned(),
                Some(PoolAtBoot::Unknown(_) | PoolAtBoot::OfHost) => "unknown".to_owned(),
                None => format!("no size {what}"),
            };
            let _ = write!(answer, "{what}: {said} ");
            verdict = match verdict {
                _ if alternatives(value).any(|value| value == said) => verdict,
                Verdict::Wrong => verdict,
                _ if self.values("honest").any(|honest| honest == said) => Verdict::Honest,
                _ => Verdict::Wrong,
            };
        }
        (answer.trim_end().to_owned(), verdict)
    }
}

/// A copy of the tree as the host was that runs systemd and has booted after the last change of its files.
fn running(tree: &Path) -> tempfile::TempDir {
    let host = aged(tree);
    fs::create_dir_all(host.path().join("run/systemd/system")).unwrap();
    fs::write(host.path().join("proc/uptime"), "3600.00 3600.00\n").unwrap();
    host
}

/// A copy of what was checked out, without the times of that: each file is old, and was seen now.
fn aged(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    lay(directory, copy.path());
    lay_variants(copy.path());
    let age = [
        "-not",
        "-path",
        "*/proc/uptime",
        "-exec",
        "touch",
        "-hd",
        "@86400",
        "{}",
        "+",
    ];
    assert!(
        Command::new("find")
            .arg(copy.path())
            .args(age)
            .status()
            .unwrap()
            .success(),
        "{}",
        directory.display()
    );
    copy
}

/// Copies what is in a directory into another one, over what is there.
fn lay(directory: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-rP")
        .arg(directory.join("."))
        .arg(to)
        .status()
        .unwrap();
    assert!(copied.success(), "{}", directory.display());
}

/// Makes each `TREE+NAME` of a case whole: `TREE` with the variant's files over it.
fn lay_variants(case: &Path) {
    for entry in fs::read_dir(case).unwrap() {
        let variant = entry.unwrap().file_name().into_string().unwrap();
        if let Some((tree, _)) = variant.split_once('+') {
            let whole = tempfile::tempdir().unwrap();
            lay(&case.join(tree), whole.path());
            lay(&case.join(&variant), whole.path());
            lay(whole.path(), &case.join(&variant));
        }
    }
}

/// `2 | 3`.
fn alternatives(value: &str) -> impl Iterator<Item = &str> {
    value.split(" | ")
}

/// A case: its text, and the directory of its trees.
struct Case {
    name: String,
    text: String,
    directory: PathBuf,
    /// Where it is for as long as it is asked.
    _place: Option<tempfile::TempDir>,
}

impl Case {
    /// The case at `path`, a directory with case.md, or NAME.md beside the directory NAME or NAME.tar.xz; `None` if it is none.
    fn at(path: &Path) -> Option<Self> {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let beside = path.with_extension("");
        let (file, directory) = match path.extension() {
            Some(extension) if extension == "md" => (path.to_owned(), beside),
            _ => (path.join("case.md"), path.to_owned()),
        };
        let text = fs::read_to_string(file)
            .ok()
            .filter(|text| text.contains("\n## Right answer\n"))?;
        let archive = path.with_extension("tar.xz");
        if !archive.is_file() || directory.is_dir() {
            let place = directory.is_dir().then(|| aged(&directory));
            let directory = place
                .as_ref()
                .map_or(directory, |place| place.path().to_owned());
            return Some(Self {
                name,
                text,
                directory,
                _place: place,
            });
        }
        let unpacked = tempfile::tempdir().unwrap();
        // Its times count: a tree was seen when its /proc/uptime was written.
        let status = Command::new("tar")
            .arg("-xJf")
            .arg(&archive)
            .arg("-C")
            .arg(unpacked.path())
            .status();
        assert!(status.unwrap().success(), "{}", archive.display());
        Some(Self {
            name,
            text,
            directory: unpacked.path().to_owned(),
            _place: Some(unpacked),
        })
    }

    /// All in a directory, by name.
    fn all(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let mut cases: Vec<_> = entries
            .filter_map(|entry| Self::at(&entry.unwrap().path()))
            .collect();
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        assert!(!cases.is_empty(), "no cases in {}", directory.display());
        cases
    }
}

/// Asks every question of the cases in a directory and prints the answers; adds to the `counts` of verdicts, and returns the cases
/// with a wrong one. All of `own` have questions and trees.
fn ask(directory: &Path, own: bool, counts: &mut [u32; 3]) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in Case::all(directory) {
        let (name, questions) = (&case.name, questions(&case.text));
        if questions.is_empty() {
            assert!(!own, "{name} expects nothing");
            println!("none    {name}: it has no question that a tree answers");
        }
        for question in questions {
            let (of, tree) = match &question.kind {
                QuestionKind::Output(command) => (
                    command.clone(),
                    command
                        .split(' ')
                        .skip_while(|word| !["--root", "--snapshot"].contains(word))
                        .nth(1),
                ),
                QuestionKind::NextBoot(tree) => {
                    (format!("next boot of {tree}"), Some(tree.as_str()))
                }
            };
            if tree.is_some_and(|tree| !case.directory.join(tree).exists()) {
                assert!(!own, "{name} has no input for {of}");
                println!("none    {name}: {of}: its input is not there");
                continue;
            }
            let (answer, verdict) = question.answer(&case.directory);
            let expected: Vec<_> = question
                .expected
                .iter()
                .map(|(key, value)| format!("{key}: {value}"))
                .collect();
            let word = format!("{verdict:?}").to_lowercase();
            println!(
                "{word:6}  {name}: {of}: {answer}; expected {}",
                expected.join("; ")
            );
            counts[verdict as usize] += 1;
            wrong.extend((verdict == Verdict::Wrong).then(|| name.clone()));
        }
    }
    wrong
}

#[test]
fn every_case() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let given = env::var_os("HUGEPAGE_CASES")
        .filter(|given| !given.is_empty())
        .map(PathBuf::from);
    let mut counts = [0; 3];
    let mut wrong_cases = ask(&own, true, &mut counts);
    wrong_cases.extend(
        given
            .iter()
            .flat_map(|directory| ask(directory, false, &mut counts)),
    );
    let [right, honest, wrong] = counts;
    println!("{right} right, {honest} honest, {wrong} wrong");
    wrong_cases.dedup();
    assert_eq!(wrong_cases, Vec::<String>::new(), "wrong answers");
}
