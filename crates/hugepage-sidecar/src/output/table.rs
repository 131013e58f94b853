//! Tables for a terminal of 80 columns.

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use hugepage_assess::assessment::Severity;

use super::escape;

/// The width of output in columns, unless it goes to a terminal that reports its width; a serial console does not.
const DEFAULT_WIDTH: u16 = 80;

/// A table without borders; columns from `numbers_from` on are aligned to the right. Print it by `trim_fmt()`: cells are
/// filled with blanks to the width of their column.
pub fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).set_content_arrangement(ContentArrangement::Dynamic);
    let width = table.width().filter(|&width| width > 0).unwrap_or(DEFAULT_WIDTH);
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

/// `text` in lines of 80 columns, the first indented by `first` spaces and the others by `rest`.
pub fn wrapped(text: &str, first: usize, rest: usize) -> String {
    // Names may contain line breaks, which would look like lines of this program.
    filled(&escape::line(&text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")), first, rest)
}

/// A text without control characters in lines of 80 columns.
fn filled(text: &str, first: usize, rest: usize) -> String {
    let (first, rest) = (" ".repeat(first), " ".repeat(rest));
    let options = textwrap::Options::new(usize::from(DEFAULT_WIDTH)).initial_indent(&first).subsequent_indent(&rest);
    let options = options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// An instruction as [`wrapped`]; its commands, which are in quotes, stay on one line each.
pub fn wrapped_instruction(text: &str, first: usize, rest: usize) -> String {
    const BLANK: &str = "\u{1}"; // No control character is left in what is shown.
    let shown = escape::line(text);
    let (Some(from), Some(to)) = (shown.find('"'), shown.rfind('"')) else { return wrapped(text, first, rest) };
    let whole = shown[from..to].replace(' ', BLANK);
    let text = format!("{}{whole}{}", &shown[..from], &shown[to..]);
    filled(&text, first, rest).replace(BLANK, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_outside_of_commands() {
        let command =
            "\"mkdir -p /etc/systemd/system/postgresql@15-main.service.d && systemctl daemon-reload, as 'a  b'\"";
        let text =
            format!("Run {command} and restart the server, so that it finds the pages that it asks for at its start.");
        let shown = wrapped_instruction(&text, 2, 4);
        assert!(shown.lines().any(|line| line.contains(command)), "{shown}");
        assert!(shown.lines().filter(|line| !line.contains(command)).all(|line| line.len() <= 80), "{shown}");
        assert!(shown.lines().count() > 2 && shown.starts_with("  Run") && !shown.contains('\u{1}'), "{shown}");
        let plain = "word ".repeat(40);
        assert_eq!(wrapped_instruction(&plain, 2, 4), wrapped(&plain, 2, 4));
        assert_eq!(wrapped_instruction("Set \"a\u{1}b\".", 0, 0), "Set \"a\\x01b\".");
    }
}
