//! A server parameter file: the lines of an init.ora in blocks of 512 bytes, each with its own header. Oracle does not
//! document the format, so a file without that header is searched for text all the same.

const BLOCK: usize = 512;
/// The beginning of the header: these two bytes and two zeros, the number of the block, a checksum.
const MAGIC: &[u8] = b"C\"\0\0";
const HEADER: usize = 20;

/// Whether these are the bytes of a server parameter file, and not a text.
pub fn is_spfile(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.iter().take(BLOCK).any(|&byte| byte == 0)
}

/// The text without the headers of the blocks; `None` if assignments, which may be remains, stand behind its end.
pub fn text(bytes: &[u8]) -> Option<String> {
    let blocks = bytes.chunks(BLOCK).map(|block| match block.starts_with(MAGIC) {
        true => block.get(HEADER..).unwrap_or_default(),
        false => block,
    });
    let mut text: Vec<u8> = blocks.flatten().copied().collect();
    let first = text.iter().position(|&byte| byte == b'=')?;
    let end = text[first..].iter().position(|&byte| byte == 0).map_or(text.len(), |length| first + length);
    let is_over = !text[end..].contains(&b'=');
    text.truncate(end);
    text.retain(|byte| matches!(byte, b'\t' | b'\n' | 0x20..=0x7e | 0x80..));
    is_over.then(|| String::from_utf8_lossy(&text).into_owned())
}
