//! log.xml of the Automatic Diagnostic Repository: the alert log's messages, each an element `msg` with its time and a
//! `txt`. The file has no root element, may grow while it is read, and may be cut anywhere by its rotation.

use memchr::memmem;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use crate::readers::startup_parser::StartupParser;

/// The first bytes of a message.
const MESSAGE: &[u8] = b"<msg ";

/// Gives the parser all lines of the messages in `bytes`, from the first whole one.
pub fn feed(bytes: &[u8], parser: &mut StartupParser) {
    let mut starts = memmem::find_iter(bytes, MESSAGE).peekable();
    while let Some(start) = starts.next() {
        let end = starts.peek().copied().unwrap_or(bytes.len());
        message(&String::from_utf8_lossy(&bytes[start..end]), parser);
    }
}

/// Reads one message, as far as it is well-formed.
fn message(xml: &str, parser: &mut StartupParser) {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_dangling_amp = true;
    let mut text = String::new();
    let mut inside = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) if tag.name().as_ref() == "msg" => {
                if let Ok(Some(time)) = tag.try_get_attribute("time") {
                    parser.at(&time.value);
                }
            }
            Ok(Event::Start(tag)) if tag.name().as_ref() == "txt" => inside = true,
            Ok(Event::End(tag)) if tag.name().as_ref() == "txt" => {
                text.push('\n');
                inside = false;
            }
            Ok(Event::Text(part)) if inside => text.push_str(&part),
            Ok(Event::CData(part)) if inside => text.push_str(&part),
            Ok(Event::GeneralRef(name)) if inside => match name.resolve_char_ref() {
                Ok(Some(character)) => text.push(character),
                _ => text.push_str(resolve_predefined_entity(&name).unwrap_or_default()),
            },
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => parser.line(line),
            None => parser.cut_line(line),
        }
    }
}
