//! Initialisation parameters: from an init.ora, from an spfile, or as an alert log lists them. The few that affect
//! memory are read by name. Oracle decides whether a value is valid.

use hugepage_assess::model::UseLargePages;
use hugepage_facts::{Parameter, Parameters};
use hugepage_kernel::{Bytes, InstanceFiles, Notes, limit};

use crate::readers::words::{is_name, whole_size};

/// The largest number of files that are read.
const MAX_FILES: usize = 64;
/// The largest number of parameters that are kept. Oracle has about 500, and about 5000 with the hidden ones.
const MAX_PARAMETERS: usize = 10_000;
/// The longest name of a parameter that is kept.
const MAX_NAME_BYTES: usize = 128;
/// A server parameter file has the lines of an init.ora in blocks of 512 bytes, each with its own header. Oracle does not document
/// the format, so a file without that header is searched for text all the same.
const SPFILE_BLOCK: usize = 512;
/// The beginning of the header: these two bytes and two zeros, the number of the block, a checksum.
const SPFILE_MAGIC: &[u8] = b"C\"\0\0";
const SPFILE_HEADER: usize = 20;

/// Sizes of a start's memory.
const SIZES: [&str; 6] = [
    "sga_max_size",
    "sga_target",
    "memory_target",
    "memory_max_target",
    "memory_size",
    "memory_max_size",
];

/// Whether a parameter decides on the memory that a start asks for, or on its pages.
pub(super) fn is_of_memory(name: &str) -> bool {
    SIZES.contains(&name) || is_pool(name) || ["use_large_pages", "lock_sga"].contains(&name)
}

/// Whether a parameter is the size of a part of the SGA. The flash cache is a file.
fn is_pool(name: &str) -> bool {
    const ENDS: [&str; 3] = ["_cache_size", "_pool_size", "inmemory_size"];
    ENDS.iter().any(|end| name.ends_with(end))
        && !name.starts_with('_')
        && name != "db_flash_cache_size"
}

/// The parameters of the instance `sid` in the init.ora or spfile at `path`, with the files that it names (IFILE,
/// and SPFILE unless that is in ASM). What cannot be read is a note.
pub fn read(files: &InstanceFiles, path: &str, sid: &str, notes: &mut Notes) -> Parameters {
    let mut all = Parameters::default();
    if add_file(&mut all, files, path, &mut Vec::new(), notes) {
        of_instance(all, sid)
    } else {
        Parameters::default()
    }
}

/// A size, `3G`.
pub fn size(all: &Parameters, name: &str) -> Option<Bytes> {
    whole_size(all.get(name)?)
}

/// What /dev/shm has to hold at a start: MEMORY_MAX_TARGET, or MEMORY_TARGET if that is larger. `None` if neither is set: with either
/// Automatic Memory Management puts the SGA into files there, which rules out huge pages.
pub fn memory_target(all: &Parameters) -> Option<Bytes> {
    size(all, "memory_max_target")
        .max(size(all, "memory_target"))
        .filter(|size| size.0 > 0)
}

/// The size of shared memory at a start: SGA_MAX_SIZE, or SGA_TARGET if that is larger. `None` if neither is set.
pub fn sga_max_size(all: &Parameters) -> Option<Bytes> {
    size(all, "sga_max_size")
        .max(size(all, "sga_target"))
        .filter(|size| size.0 > 0)
}

/// Why the need of a start is unknown, though it was read. `sga`: the size of shared memory.
pub fn unclear(all: &Parameters, sga: Option<Bytes>) -> Option<String> {
    let is_odd = |one: &&Parameter| match &*one.name {
        "use_large_pages" => UseLargePages::parse(&one.value).is_none(),
        name => (SIZES.contains(&name) || is_pool(name)) && whole_size(&one.value).is_none(),
    };
    if let Some(Parameter { name, .. }) = all.0.iter().find(is_odd) {
        return Some(format!(
            "the value of {name} in its parameters is not understood"
        ));
    }
    let is_larger = memory_target(all).is_none() && sga.is_some_and(|sga| pools(all) > sga);
    is_larger.then(|| "its pools are larger than its SGA_MAX_SIZE and SGA_TARGET".into())
}

/// The sum of the sizes of the parts of the SGA.
pub fn pools(all: &Parameters) -> Bytes {
    let pools = all.0.iter().filter(|one| is_pool(&one.name));
    pools.filter_map(|one| whole_size(&one.value)).sum()
}

/// Adds a line of an alert log's list; false if the line is something else.
pub(super) fn add_line(all: &mut Parameters, line: &str) -> bool {
    match assignment(line) {
        Some((name, value)) if is_name(name, MAX_NAME_BYTES) => {
            add(all, "", name, value);
            true
        }
        _ => false,
    }
}

fn add(all: &mut Parameters, sid: &str, name: &str, value: &str) {
    if all.0.len() < MAX_PARAMETERS {
        all.0.push(Parameter {
            sid: sid.to_owned(),
            name: name.to_ascii_lowercase(),
            value: unquoted(value).to_owned(),
        });
    }
}

fn add_text(all: &mut Parameters, text: &str) {
    for (name, value) in text
        .lines()
        .filter_map(|line| assignment(without_comment(line)))
    {
        let (sid, name) = name.rsplit_once('.').unwrap_or(("", name));
        if is_name(name, MAX_NAME_BYTES) {
            add(all, sid.trim(), name, value);
        }
    }
}

/// Adds a file, with the files that it names in their places, each once. `read`: the files so far. False if one can't be read.
fn add_file(
    all: &mut Parameters,
    files: &InstanceFiles,
    path: &str,
    read: &mut Vec<String>,
    notes: &mut Notes,
) -> bool {
    if read.len() >= MAX_FILES || read.iter().any(|known| known == path) {
        return true;
    }
    read.push(path.to_owned());
    let bytes = if path.starts_with('/') {
        notes.keep(files.read(path, limit::CONFIGURATION))
    } else {
        None
    };
    let Some(text) = bytes.as_deref().and_then(text_of) else {
        notes.add(format!(
            "the parameter file \"{path}\" is not read, so what the next start asks for is unknown"
        ));
        return false;
    };
    text.lines().all(|line| {
        let before = all.0.len();
        add_text(all, line);
        // A line may have several: `PROCESSES = 100 CPU_COUNT = 1`.
        let value = assignment(without_comment(line)).map_or("", |(_, value)| value);
        if !value.contains(['\'', '"', '('])
            && value
                .split_once(' ')
                .is_some_and(|(_, rest)| rest.contains('='))
        {
            notes.add(format!(
                "the parameter file \"{path}\" has several parameters in one line"
            ));
            return false;
        }
        let named = all
            .0
            .get(before)
            .filter(|found| matches!(&*found.name, "ifile" | "spfile"));
        let Some(file) = named.map(|found| found.value.clone()) else {
            return true;
        };
        if file.starts_with('+') {
            notes.add(format!(
                "the parameter file \"{file}\" is in ASM, where it could not be read"
            ));
        }
        file.starts_with('+') || add_file(all, files, &file, read, notes)
    })
}

/// The parameters for this instance. Its own come after those for all instances, so that they override them.
fn of_instance(all: Parameters, sid: &str) -> Parameters {
    let mut all = all.0;
    all.retain(|one| [sid, "", "*"].contains(&&*one.sid));
    all.sort_by_key(|one| one.sid == sid);
    Parameters(all)
}

/// The text of an init.ora or of an spfile; `None` if behind its end assignments stand, which may be remains.
fn text_of(bytes: &[u8]) -> Option<String> {
    let is_spfile =
        bytes.starts_with(SPFILE_MAGIC) || bytes.iter().take(SPFILE_BLOCK).any(|&byte| byte == 0);
    if !is_spfile {
        return Some(String::from_utf8_lossy(bytes).into_owned());
    }
    let blocks = bytes.chunks(SPFILE_BLOCK).map(|block| {
        if block.starts_with(SPFILE_MAGIC) {
            block.get(SPFILE_HEADER..).unwrap_or_default()
        } else {
            block
        }
    });
    let mut text: Vec<u8> = blocks.flatten().copied().collect();
    let first = text.iter().position(|&byte| byte == b'=')?;
    let end = text[first..]
        .iter()
        .position(|&byte| byte == 0)
        .map_or(text.len(), |length| first + length);
    let is_over = !text[end..].contains(&b'=');
    text.truncate(end);
    text.retain(|byte| matches!(byte, b'\t' | b'\n' | 0x20..=0x7e | 0x80..));
    is_over.then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Splits `name = value` into both, trimmed; `None` if the line is no assignment.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let value = value.trim();
    (!name.is_empty()).then_some((name, value))
}

/// The line up to a `#` outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let end = line.char_indices().find(|&(_, c)| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        quote.is_none() && c == '#'
    });
    end.map_or(line, |(end, _)| &line[..end])
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, sid: &str) -> Parameters {
        let mut all = Parameters::default();
        add_text(&mut all, text);
        of_instance(all, sid)
    }

    #[test]
    fn an_init_ora() {
        let text = "# comment\n\
                    *.sga_target=3G\n\
                    TEST1.sga_target = 4g   # for this one\n\
                    TEST2.sga_target=8G\n\
                    SGA_MAX_SIZE=3221225472\n\
                    *.db_name='test # no comment'\n\
                    *.use_large_pages=\"only\"\n\
                    *.pre_page_sga=TRUE\n\
                    *.control_files='/a/1.ctl','/a/2.ctl'\n\
                    nonsense\n= 5\n*.=7\nmemory_target=0\n";
        let one = parse(text, "TEST1");
        assert_eq!(size(&one, "sga_target"), Some(Bytes(4 << 30)));
        assert_eq!(sga_max_size(&one), Some(Bytes(4 << 30)));
        assert_eq!(
            (one.get("db_name"), one.get("use_large_pages")),
            (Some("test # no comment"), Some("only"))
        );
        assert!(memory_target(&one).is_none());
        let third = parse(text, "TEST3");
        assert_eq!(
            (size(&third, "sga_target"), sga_max_size(&third)),
            (Some(Bytes(3 << 30)), Some(Bytes(3 << 30)))
        );
        assert!(memory_target(&parse("memory_max_target=2G", "x")).is_some());
        assert!(parse("\0\u{1}garbage", "x").is_empty());
    }

    /// A line that one block ends in goes on in the next.
    #[test]
    fn an_spfile_across_its_seams() {
        let mut text = String::new();
        for number in 0..40 {
            text.push_str(&format!("*._parameter_{number}={number}\n"));
        }
        text.push_str("*.sga_target=12345M\nTEST1.sga_max_size=5G\n");
        for shift in 0..40 {
            let text = format!("{}\n{text}", "#".repeat(shift));
            let mut file = block(1, b"");
            for (number, part) in (2..).zip(text.as_bytes().chunks(BLOCK_TEXT)) {
                file.extend(block(number, part));
            }
            let found = parse(&text_of(&file).unwrap(), "TEST1");
            assert_eq!(
                size(&found, "sga_target"),
                Some(Bytes(12345 << 20)),
                "{shift}"
            );
            assert_eq!(
                size(&found, "sga_max_size"),
                Some(Bytes(5 << 30)),
                "{shift}"
            );
            assert_eq!(found.get("_parameter_39"), Some("39"), "{shift}");
        }
    }

    /// A shorter text over a longer one.
    #[test]
    fn an_spfile_with_remains() {
        let of = |parts: &[&[u8]]| {
            let blocks = (2..)
                .zip(parts)
                .flat_map(|(number, part)| block(number, part));
            text_of(&block(1, b"").into_iter().chain(blocks).collect::<Vec<_>>())
        };
        assert!(of(&[b"*.sga_target=8G\n"]).is_some());
        assert_eq!(of(&[b"*.sga_target=8G\n\0\0*.sga_max_size=64G\n"]), None);
        assert_eq!(of(&[b"*.sga_target=8G\n", b"*.sga_max_size=64G\n"]), None);
    }

    const BLOCK_TEXT: usize = 512 - 20;

    fn block(number: u32, text: &[u8]) -> Vec<u8> {
        let mut block = b"C\"\0\0".to_vec();
        block.extend(number.to_le_bytes());
        block.extend([0, 0, 0, 0, 0, 0, 1, 4, b'x', b'=', 0, 0]);
        block.extend(text);
        block.resize(512, 0);
        block
    }
}
