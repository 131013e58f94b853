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
    table.load_preset(presets::NOTHING).set_header(header).set_content_arrangement(ContentArrangement::Dynamic);
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
    let (first, rest) = (" ".repeat(first), " ".repeat(rest));
    let options = textwrap::Options::new(usize::from(DEFAULT_WIDTH)).initial_indent(&first).subsequent_indent(&rest);
    let options = options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation);
    // Names may contain line breaks, which would look like lines of this program.
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    textwrap::fill(&escape::line(&text), options)
}
