//! Tables for a terminal of 80 columns.

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use hugepage_core::Bytes;
use hugepage_core::assess::Severity;

/// How wide output is that goes to no terminal, or to one that reports no width, as a serial console does.
const WIDTH: u16 = 80;

/// A table without lines, its header above, text left and numbers right. Print it by `trim_fmt()`: cells are filled up
/// with blanks to the width of their column.
pub fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header).set_content_arrangement(ContentArrangement::Dynamic);
    let width = table.width().filter(|&width| width > 0).unwrap_or(WIDTH);
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

/// A text in the colour of its gravity.
pub fn graded(text: impl ToString, severity: Severity) -> Cell {
    let cell = Cell::new(text);
    match severity {
        Severity::Ok => cell.fg(Color::Green),
        Severity::Notice => cell,
        Severity::Warning => cell.fg(Color::Yellow),
        Severity::Critical => cell.fg(Color::Red),
    }
}

/// A number, or what stands for one that is not known.
pub fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or("?".to_owned(), |value| value.to_string())
}

/// A size, or what stands for one that is not known.
pub fn size(bytes: Option<u64>) -> String {
    or_unknown(bytes.map(Bytes))
}

/// `text` in lines of the width, the first behind `first` spaces and the others behind `rest`.
pub fn wrapped(text: &str, first: usize, rest: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), " ".repeat(first));
    let mut is_empty = true;
    for word in text.split_ascii_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > usize::from(WIDTH) {
            lines.push(std::mem::replace(&mut line, " ".repeat(rest)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.join("\n")
}
