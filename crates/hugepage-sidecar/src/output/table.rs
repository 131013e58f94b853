//! Tables for a terminal of 80 columns.

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use hugepage_assess::assessment::Severity;

use super::{escape, say};

/// The width of output in columns, unless it goes to a terminal that reports its width; a serial console does not.
const DEFAULT_WIDTH: u16 = 80;

/// A table without borders; columns from `numbers_from` on are aligned to the right. Print it by `trim_fmt()`.
pub fn table(header: &str, numbers_from: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.split(','))
        .set_content_arrangement(ContentArrangement::Dynamic);
    let width = table
        .width()
        .filter(|&width| width > 0)
        .unwrap_or(DEFAULT_WIDTH);
    table.set_width(width);
    if std::env::var_os("NO_COLOR").is_some() {
        table.force_no_tty();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
        if column.index >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A cell in the colour of its severity.
pub fn colored(text: impl ToString, severity: Severity) -> Cell {
    let cell = Cell::new(text);
    match severity {
        Severity::Ok => cell.fg(Color::Green),
        Severity::Notice => cell,
        Severity::Warning => cell.fg(Color::Yellow),
        Severity::Critical => cell.fg(Color::Red),
    }
}

/// A number or a size, or `?` if it is unknown.
pub fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or("?".to_owned(), |value| value.to_string())
}

/// `text` in lines of 80 columns, the first indented by `first` spaces and the others by `rest`. What is in backticks is not broken.
pub fn wrapped(text: &str, first: usize, rest: usize) -> String {
    const BLANK: &str = "\u{1}"; // No control character is left in what is shown.
    // Names may contain line breaks, which would look like lines of this program.
    let shown =
        escape::line(&text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    let whole = |(at, part): (usize, &str)| {
        if at % 2 == 1 {
            part.replace(' ', BLANK)
        } else {
            part.to_owned()
        }
    };
    let shown = shown
        .split('`')
        .enumerate()
        .map(whole)
        .collect::<Vec<_>>()
        .join("`");
    let first = " ".repeat(first);
    let rest = " ".repeat(rest);
    let options = textwrap::Options::new(usize::from(DEFAULT_WIDTH))
        .initial_indent(&first)
        .subsequent_indent(&rest);
    let options = options
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&shown, options).replace(BLANK, " ")
}

/// Prints a text as [`wrapped`].
pub fn print_wrapped(text: &str, first: usize, rest: usize) {
    say!("{}", wrapped(text, first, rest));
}

/// Prints notes, indented by `first` spaces.
pub fn print_notes(notes: &[String], first: usize) {
    for note in notes {
        print_wrapped(&format!("note: {note}"), first, first + 2);
    }
}

/// An instruction as [`wrapped`]; each of its commands stands alone on a line, as it is to be typed.
pub fn wrapped_instruction(text: &str, first: usize, rest: usize) -> String {
    let shown = escape::line(text);
    let mut lines = Vec::new();
    let mut behind = &*shown;
    loop {
        let found = first_command(behind);
        let said = found
            .map_or(behind, |(before, ..)| before)
            .trim_start_matches([',', '.', ';', ' ']);
        let indent = if lines.is_empty() { first } else { rest };
        lines.extend((!said.is_empty()).then(|| wrapped(said, indent, rest)));
        let Some((_, command, after)) = found else {
            return lines.join("\n");
        };
        lines.push(format!("{}{command}", " ".repeat(rest + 2)));
        behind = after;
    }
}

/// The first command, what is before it and what is behind it.
fn first_command(text: &str) -> Option<(&str, &str, &str)> {
    let start = ["run \"", "Run \"", "with \""]
        .iter()
        .filter_map(|word| Some(text.find(word)? + word.len()))
        .min()?;
    let (command, after) = text[start..].split_once('"')?;
    Some((&text[..start - 1], command, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stands_alone() {
        let command = "mkdir -p /etc/systemd/system/postgresql@15-main.service.d && systemctl daemon-reload, as 'a  b'";
        let text = format!(
            "Free a\"b, stop it with \"{command}\", run \"sysctl -w a=1\" (`b c`) and set \"x\" = 2, as it finds then what it asks for."
        );
        let shown = wrapped_instruction(&text, 2, 4);
        let expected = format!(
            "  Free a\"b, stop it with\n      {command}\n    run\n      sysctl -w a=1\n    (`b c`) and set \"x\" = 2, as it finds then what it asks for."
        );
        assert_eq!(shown, expected);
        assert_eq!(
            wrapped_instruction("Run \"sysctl -w a=1\".", 2, 4),
            "  Run\n      sysctl -w a=1"
        );
        for plain in ["word ".repeat(40), "could not run \"a b".to_owned()] {
            assert_eq!(wrapped_instruction(&plain, 2, 4), wrapped(&plain, 2, 4));
        }
        assert_eq!(
            wrapped_instruction("Set \"a\u{1}b\".", 0, 0),
            "Set \"a\\x01b\"."
        );
        let noted = wrapped(
            &format!(
                "{} `hugepage-sidecar size --sessions 100 --running-only`",
                "word ".repeat(14)
            ),
            0,
            2,
        );
        assert!(
            noted.ends_with("\n  `hugepage-sidecar size --sessions 100 --running-only`"),
            "{noted}"
        );
    }
}
