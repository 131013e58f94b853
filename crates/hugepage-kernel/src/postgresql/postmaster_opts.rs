//! The command line that a postmaster was started with, from `postmaster.opts` in its data directory. `pg_ctl restart`
//! reads it there too (pg_ctl.c, CreateOptsFile in postmaster.c).

/// The letters of PostmasterMain that take a value.
const WITH_VALUE: &str = "BCcDdfhkNprStW";

/// The arguments after the program in the text of `postmaster.opts`: `/bin/postgres "-D" "/data"`.
///
/// The server quotes each argument and escapes nothing. A quote inside an argument is kept; only `" "` in it looks like its end.
pub fn arguments(text: &str) -> Vec<String> {
    let line = text.lines().next().unwrap_or_default();
    let Some((_program, quoted)) = line.split_once(" \"") else {
        return Vec::new();
    };
    quoted
        .strip_suffix('"')
        .unwrap_or(quoted)
        .split("\" \"")
        .map(str::to_owned)
        .collect()
}

/// What the arguments set, names in lower case: `-c name=value`, `--some-name=value`, and the letters that affect
/// shared memory (postmaster.c, `PostmasterMain`). Of several with one name the last counts.
pub fn settings(arguments: &[String]) -> Vec<(String, String)> {
    options(arguments)
        .filter_map(|option| option.setting())
        .collect()
}

/// The arguments without those that set what `is_left_out`.
pub fn without(arguments: &[String], is_left_out: impl Fn(&str) -> bool) -> Vec<String> {
    let kept = options(arguments)
        .filter(|option| !option.setting().is_some_and(|(name, _)| is_left_out(&name)));
    kept.flat_map(|option| option.words.to_vec()).collect()
}

/// The value of a letter that takes one, such as `-D`: the last one given.
pub fn letter(arguments: &[String], wanted: char) -> Option<&str> {
    options(arguments)
        .filter_map(|option| option.given)
        .filter(|(letter, _)| *letter == wanted)
        .last()
        .map(|given| given.1)
}

/// One option: the words of the command line that it takes, and the letter with its value, `-` for `--name=value`.
struct Opt<'a> {
    words: &'a [String],
    given: Option<(char, &'a str)>,
}

impl Opt<'_> {
    /// What it sets.
    fn setting(&self) -> Option<(String, String)> {
        match self.given? {
            ('-' | 'c', text) => assignment(text),
            ('B', value) => Some(("shared_buffers".to_owned(), value.to_owned())),
            ('N', value) => Some(("max_connections".to_owned(), value.to_owned())),
            _ => None,
        }
    }
}

fn options(mut rest: &[String]) -> impl Iterator<Item = Opt<'_>> {
    std::iter::from_fn(move || {
        let (given, length) = first(rest)?;
        let (words, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        Some(Opt { words, given })
    })
}

/// What the first option is, and how many words it takes; letters without a value may precede one that has one.
fn first(arguments: &[String]) -> Option<(Option<(char, &str)>, usize)> {
    let argument = arguments.first()?;
    if let Some(long) = argument.strip_prefix("--") {
        return Some((Some(('-', long)), 1));
    }
    let mut letters = argument.strip_prefix('-').unwrap_or_default().chars();
    let Some(letter) = letters.find(|letter| WITH_VALUE.contains(*letter)) else {
        return Some((None, 1));
    };
    let (value, length) = match letters.as_str() {
        "" => (arguments.get(1).map(String::as_str), 2),
        attached => (Some(attached), 1),
    };
    Some((value.map(|value| (letter, value)), length))
}

/// Whether a postgres program with these arguments serves connections. Others answer a question, repair or initialise (main.c).
pub fn serves(arguments: &[String]) -> bool {
    const OTHERS: [&str; 9] = [
        "--single",
        "--boot",
        "--check",
        "--describe-config",
        "--help",
        "--version",
        "-?",
        "-V",
        "-C",
    ];
    !arguments
        .iter()
        .any(|argument| OTHERS.contains(&argument.as_str()) || argument.starts_with("--fork"))
}

/// `name=value`, where dashes in the name stand for underscores (ParseLongOption).
fn assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((
        name.replace('-', "_").to_ascii_lowercase(),
        value.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_server_writes_it() {
        let text = "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/srv/my data\" \"-c\" \"search_path=\"a b\"\" \"-i\"\n";
        assert_eq!(
            arguments(text),
            ["-D", "/srv/my data", "-c", "search_path=\"a b\"", "-i"]
        );
        assert_eq!(arguments("/bin/postgres\n"), [""; 0]);
        assert_eq!(arguments(""), [""; 0]);
    }

    #[test]
    fn every_way_to_set_something() {
        let text = "/bin/postgres \"-D\" \"/data\" \"-ch=1\" \"-iN\" \"50\" \"--huge-pages=on\" \"-c\" \"Huge_Page_Size=2MB\" \
                    \"-B\" \"16384\" \"-p\" \"5433\" \"--max-connections=7\"\n";
        let found = settings(&arguments(text));
        let expected = [
            ("h", "1"),
            ("max_connections", "50"),
            ("huge_pages", "on"),
            ("huge_page_size", "2MB"),
            ("shared_buffers", "16384"),
            ("max_connections", "7"),
        ];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let rest = without(&arguments(text), |name| {
            name == "max_connections" || name == "huge_page_size"
        });
        assert_eq!(
            rest,
            [
                "-D",
                "/data",
                "-ch=1",
                "--huge-pages=on",
                "-B",
                "16384",
                "-p",
                "5433"
            ]
        );
    }
}
