//! The command line that a postmaster was started with, from `postmaster.opts` in its data directory. `pg_ctl restart`
//! reads it there too (pg_ctl.c, CreateOptsFile in postmaster.c).

/// The letters of PostmasterMain that take a value.
const WITH_VALUE: &str = "BCcDdfhkNprStW";

/// The arguments after the program in the text of `postmaster.opts`: `/bin/postgres "-D" "/data"`.
///
/// The server quotes each argument and escapes nothing. A quote inside an argument is kept; only `" "` inside an
/// argument looks like the end of one.
pub fn arguments(text: &str) -> Vec<String> {
    let line = text.lines().next().unwrap_or_default();
    let Some((_program, quoted)) = line.split_once(" \"") else { return Vec::new() };
    quoted.strip_suffix('"').unwrap_or(quoted).split("\" \"").map(str::to_owned).collect()
}

/// What the arguments set, names in lower case: `-c name=value`, `--some-name=value`, and the letters that affect
/// shared memory (postmaster.c, `PostmasterMain`). Of several with one name the last counts.
pub fn settings(arguments: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if let Some(long) = argument.strip_prefix("--") {
            found.extend(assignment(long));
            continue;
        }
        let Some(letters) = argument.strip_prefix('-') else { continue };
        for (at, letter) in letters.char_indices() {
            if !WITH_VALUE.contains(letter) {
                continue;
            }
            let attached = &letters[at + 1..];
            let value = if attached.is_empty() { arguments.next().map(String::as_str) } else { Some(attached) };
            match (letter, value) {
                ('c', Some(value)) => found.extend(assignment(value)),
                ('B', Some(value)) => found.push(("shared_buffers".to_owned(), value.to_owned())),
                ('N', Some(value)) => found.push(("max_connections".to_owned(), value.to_owned())),
                _ => {}
            }
            break;
        }
    }
    found
}

/// Whether a postgres program with these arguments serves connections. Others answer a question, repair or initialise
/// (main.c).
pub fn serves(arguments: &[String]) -> bool {
    const OTHERS: [&str; 9] =
        ["--single", "--boot", "--check", "--describe-config", "--help", "--version", "-?", "-V", "-C"];
    !arguments.iter().any(|argument| OTHERS.contains(&argument.as_str()) || argument.starts_with("--fork"))
}

/// The value of a letter that takes one, such as `-D`: the last one given.
pub fn letter(arguments: &[String], wanted: char) -> Option<&str> {
    let mut found = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else { continue };
        if let Some(at) = letters.find(|letter| WITH_VALUE.contains(letter)) {
            let attached = &letters[at + 1..];
            let value = if attached.is_empty() { rest.next().map(String::as_str) } else { Some(attached) };
            found = if letters[at..].starts_with(wanted) { value } else { found };
        }
    }
    found
}

/// `name=value`, where dashes in the name stand for underscores (ParseLongOption).
fn assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((name.replace('-', "_").to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_server_writes_it() {
        let text =
            "/usr/lib/postgresql/15/bin/postgres \"-D\" \"/srv/my data\" \"-c\" \"search_path=\"a b\"\" \"-i\"\n";
        assert_eq!(arguments(text), ["-D", "/srv/my data", "-c", "search_path=\"a b\"", "-i"]);
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
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
