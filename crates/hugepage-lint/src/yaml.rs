//! YAML with the place of each value in the text, of bounded size and depth. An alias is the node that it names, not a copy,
//! so that a few lines cannot become gigabytes. Merge keys (`<<`) are resolved.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// The deepest nesting that is read, aliases included; manifests have about 20 levels.
const MAX_DEPTH: usize = 100;
/// Values of all documents of a file.
const MAX_NODES: usize = 500_000;

/// A node of a YAML document.
#[derive(Debug)]
pub struct YamlNode {
    /// The content of the node.
    pub value: YamlContent,
    /// The bytes of the node in the text; of a block it ends somewhere behind the last value.
    pub range: Range<usize>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Whether Kubernetes takes a scalar for a string: it is quoted, or neither a number nor a boolean nor null (YAML 1.1).
    pub is_string: bool,
    depth: usize,
}

/// A YAML value with the file that it is in.
#[derive(Clone, Debug)]
pub struct LocatedNode {
    /// The number of the file.
    pub file: usize,
    /// The node of the value.
    pub node: Rc<YamlNode>,
}

impl LocatedNode {
    /// A node of the same file.
    pub fn beside(&self, node: &Rc<YamlNode>) -> Self {
        Self { file: self.file, node: Rc::clone(node) }
    }
}

/// The kinds of values.
#[derive(Debug)]
pub enum YamlContent {
    /// Text, a number, a boolean or null, as it is written.
    Scalar(String),
    /// Keys and values in their order.
    Mapping(Vec<(Rc<YamlNode>, Rc<YamlNode>)>),
    /// Items.
    Sequence(Vec<Rc<YamlNode>>),
}

/// The error of a text that could not be read as YAML.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct YamlError {
    line: usize,
    column: usize,
    reason: String,
}

impl YamlError {
    fn at(span: Span, reason: String) -> Self {
        Self { line: span.start.line(), column: span.start.col() + 1, reason }
    }
}

impl YamlNode {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            YamlContent::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[(Rc<YamlNode>, Rc<YamlNode>)] {
        match &self.value {
            YamlContent::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a sequence; none for anything else.
    pub fn items(&self) -> &[Rc<YamlNode>] {
        match &self.value {
            YamlContent::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Rc<YamlNode>> {
        self.entries().iter().find(|(found, _)| found.text() == Some(key)).map(|(_, value)| value)
    }

    /// The value at the end of a path of keys.
    pub fn at<'a>(self: &'a Rc<Self>, path: &[&str]) -> Option<&'a Rc<Self>> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The node and all below it, each once, however many aliases lead to it.
    pub fn all_below(self: &Rc<Self>) -> Vec<Rc<Self>> {
        let (mut seen, mut all, mut open) = (HashSet::new(), Vec::new(), vec![Rc::clone(self)]);
        while let Some(node) = open.pop() {
            if seen.insert(Rc::as_ptr(&node)) {
                open.extend(node.entries().iter().flat_map(|(key, value)| [Rc::clone(key), Rc::clone(value)]));
                open.extend(node.items().iter().cloned());
                all.push(node);
            }
        }
        all
    }

    /// The text at the end of a path of keys.
    pub fn text_at<'a>(self: &'a Rc<Self>, path: &[&str]) -> Option<&'a str> {
        self.at(path)?.text()
    }
}

/// The documents of `text`; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Rc<YamlNode>>, YamlError> {
    let offsets = ByteOffsets::new(text);
    let mut builder = DocumentBuilder::default();
    let mut documents = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            reason: error.info().to_owned(),
        })?;
        let range = offsets.at(span.start.index())..offsets.at(span.end.index());
        match event {
            Event::DocumentStart(_) => builder.anchors.clear(),
            Event::Scalar(value, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*value, "" | "~" | "null");
                let is_string = style != ScalarStyle::Plain || !(is_null || is_number_or_boolean(&value));
                let text = if is_null { String::new() } else { value.into_owned() };
                builder.add(YamlContent::Scalar(text), range, span, anchor, is_string)?;
            }
            Event::Alias(anchor) => {
                let Some(node) = builder.anchors.get(&anchor).cloned() else {
                    return Err(YamlError::at(span, "an alias names a value that it is a part of".to_owned()));
                };
                builder.place(node, span)?;
            }
            Event::MappingStart(anchor, _) | Event::SequenceStart(anchor, _) => {
                if builder.open.len() >= MAX_DEPTH {
                    return Err(YamlError::at(span, format!("more than {MAX_DEPTH} levels")));
                }
                builder.open.push(OpenNode { nodes: Vec::new(), span, start: range.start, anchor });
            }
            Event::MappingEnd => {
                let Some(open) = builder.open.pop() else { continue };
                let mut nodes = open.nodes.into_iter();
                let mut entries = Vec::new();
                while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
                    entries.push((key, value));
                }
                builder.merge(&mut entries)?;
                builder.add(YamlContent::Mapping(entries), open.start..range.end, open.span, open.anchor, false)?;
            }
            Event::SequenceEnd => {
                let Some(open) = builder.open.pop() else { continue };
                builder.add(YamlContent::Sequence(open.nodes), open.start..range.end, open.span, open.anchor, false)?;
            }
            Event::DocumentEnd => {
                let document = builder.root.take();
                documents.extend(document.filter(|node| node.text() != Some("")));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
    }
    Ok(documents)
}

/// Whether a plain scalar is a number or a boolean in YAML 1.1, which Kubernetes reads.
fn is_number_or_boolean(text: &str) -> bool {
    const BOOLEANS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "y", "n"];
    let number = text.trim_start_matches(['-', '+']).replace('_', "");
    let is_other_base = ["0x", "0o", "0b"].iter().any(|prefix| number.starts_with(prefix));
    BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(text))
        || (number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && (is_other_base || number.parse::<f64>().is_ok()))
}

/// A mapping or sequence whose end was not yet read.
struct OpenNode {
    nodes: Vec<Rc<YamlNode>>,
    span: Span,
    start: usize,
    anchor: usize,
}

#[derive(Default)]
struct DocumentBuilder {
    open: Vec<OpenNode>,
    anchors: HashMap<usize, Rc<YamlNode>>,
    root: Option<Rc<YamlNode>>,
    count: usize,
}

impl DocumentBuilder {
    /// Refuses a key that is there twice, and adds the entries of merged mappings whose keys are not there.
    fn merge(&mut self, entries: &mut Vec<(Rc<YamlNode>, Rc<YamlNode>)>) -> Result<(), YamlError> {
        let mut keys = HashSet::new();
        for (key, _) in entries.iter().filter(|(key, _)| key.text() != Some("<<")) {
            if key.text().is_some_and(|text| !keys.insert(text.to_owned())) {
                let reason = format!("the key \"{}\" is there twice", key.text().unwrap_or_default());
                return Err(YamlError { line: key.line, column: key.column, reason });
            }
        }
        let merges = entries.iter().filter(|(key, _)| key.text() == Some("<<"));
        let merged = merges.flat_map(|(_, value)| match &value.value {
            YamlContent::Sequence(items) => items.clone(),
            _ => vec![Rc::clone(value)],
        });
        for mapping in merged.collect::<Vec<_>>() {
            for (key, value) in mapping.entries().iter().filter(|(key, _)| key.text() != Some("<<")) {
                self.count += 1;
                if self.count > MAX_NODES {
                    let reason = format!("more than {MAX_NODES} values by merge keys");
                    return Err(YamlError { line: key.line, column: key.column, reason });
                }
                if key.text().is_some_and(|text| keys.insert(text.to_owned())) {
                    entries.push((Rc::clone(key), Rc::clone(value)));
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        value: YamlContent,
        range: Range<usize>,
        span: Span,
        anchor: usize,
        is_string: bool,
    ) -> Result<(), YamlError> {
        let below = match &value {
            YamlContent::Scalar(_) => None,
            YamlContent::Mapping(entries) => entries.iter().flat_map(|(key, value)| [key.depth, value.depth]).max(),
            YamlContent::Sequence(items) => items.iter().map(|item| item.depth).max(),
        };
        let depth = below.map_or(0, |below| below + 1);
        if depth > MAX_DEPTH {
            return Err(YamlError::at(span, format!("more than {MAX_DEPTH} levels by aliases")));
        }
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let node = Rc::new(YamlNode { value, range, line, column, is_string, depth });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        self.place(node, span)
    }

    fn place(&mut self, node: Rc<YamlNode>, span: Span) -> Result<(), YamlError> {
        self.count += 1;
        if self.count > MAX_NODES {
            return Err(YamlError::at(span, format!("more than {MAX_NODES} values")));
        }
        match self.open.last_mut() {
            Some(open) => open.nodes.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}

/// The parser counts characters, and a text is cut at bytes.
struct ByteOffsets {
    /// `None` where each character is one byte.
    of_characters: Option<Vec<usize>>,
    end: usize,
}

impl ByteOffsets {
    fn new(text: &str) -> Self {
        let of_characters = (!text.is_ascii()).then(|| text.char_indices().map(|(offset, _)| offset).collect());
        Self { of_characters, end: text.len() }
    }

    fn at(&self, index: usize) -> usize {
        match &self.of_characters {
            Some(offsets) => offsets.get(index).copied().unwrap_or(self.end),
            None => index.min(self.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_their_places() {
        let text = "# ü\na: 1\nb:\n  - &x {c: 'dé', d: \"e\"}\n  - *x\n---\n---\n- z\n";
        let documents = documents(text).unwrap();
        assert_eq!(documents.len(), 2);
        let b = documents[0].get("b").unwrap().items();
        assert!(Rc::ptr_eq(&b[0], &b[1]));
        let c = b[0].get("c").unwrap();
        assert_eq!((c.text(), &text[c.range.clone()], c.line), (Some("dé"), "'dé'", 4));
        assert_eq!(documents[0].text_at(&["a"]), Some("1"));
        let items = documents[1].items();
        assert_eq!((items[0].line, items[0].column), (8, 3));
    }

    #[test]
    fn merge_keys() {
        let text = "base: &b {a: 1, b: 2}\nmore: &m {<<: *b, c: 3}\none:\n  <<: *m\n  b: 9\ntwo: {<<: [*b, {d: 4}]}\n";
        let document = documents(text).unwrap().remove(0);
        let value = |path: &[&str]| document.text_at(path).map(str::to_owned);
        let one = ["a", "b", "c"].map(|key| value(&["one", key]).unwrap());
        assert_eq!(one, ["1", "9", "3"]);
        assert_eq!((value(&["two", "a"]), value(&["two", "d"])), (Some("1".into()), Some("4".into())));
        let many: String = (0..1000).map(|n| format!("  k{n}: 1\n")).collect();
        let bomb: String = (0..1000).map(|n| format!("m{n}: {{<<: *b}}\n")).collect();
        assert!(documents(&format!("b: &b\n{many}{bomb}")).unwrap_err().to_string().contains("merge"));
    }

    #[test]
    fn scalars_that_are_strings() {
        for (text, expected) in [
            ("200", false),
            ("\"200\"", true),
            ("1GB", true),
            ("on", false),
            ("'off'", true),
            ("0x10", false),
            ("1e3", false),
            ("-c", true),
            ("1.2.3", true),
            ("~", false),
        ] {
            assert_eq!(documents(&format!("a: {text}")).unwrap()[0].get("a").unwrap().is_string, expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (text, place) in [
            ("a: [1\nb: 2\n", "line 2"),
            ("a: *none\n", "line 1, column 4"),
            ("a: &a [*a]\n", "line 1, column 8"),
            ("a:\n\t- b\n", "line 2"),
            ("a: b: c\n", "line 1"),
            ("a: {b: 1, c: 2, b: 3}\n", "line 1, column 17"),
        ] {
            let error = documents(text).unwrap_err().to_string();
            assert!(error.contains(place), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_is_read_has_an_end() {
        // Each of 50 lines has ten times the one before.
        let bomb: String = (1..50).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(10))).collect();
        let bomb = format!("a0: &a0 [x]\n{bomb}");
        assert_eq!(documents(&bomb).unwrap()[0].entries().len(), 50);
        assert_eq!(documents(&bomb).unwrap()[0].all_below().len(), 1 + 50 * 2 + 1);
        let chain: String = (1..200_000).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)).collect();
        assert!(documents(&format!("a0: &a0 [x]\n{chain}")).unwrap_err().to_string().contains("levels"));
        assert!(documents(&"[".repeat(100_000)).is_err());
        let deep: String = (0..2000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(documents(&deep).unwrap_err().to_string().contains("levels"));
        assert!(documents(&"- x\n".repeat(MAX_NODES + 1)).unwrap_err().to_string().contains("values"));
    }
}
