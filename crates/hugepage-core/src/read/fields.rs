//! Lines `NAME: NUMBER` of files that the kernel writes, such as /proc/meminfo and /proc/PID/status (proc(5)). Monitors read
//! thousands of them, so that what nobody asked for is passed over by its first bytes.

use memchr::memchr_iter;

/// Name and value of each line whose first four bytes are wanted, in the order of the file; a line without a colon is
/// none of them.
pub fn fields(text: &[u8], wanted: impl Fn(&[u8; 4]) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut start = 0;
    memchr_iter(b'\n', text).chain([text.len()]).filter_map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        if !line.first_chunk().is_some_and(&wanted) {
            return None;
        }
        // Names are short.
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], &line[colon + 1..]))
    })
}

/// The number that the first word of `text` is; `None` if it is none, or too large.
pub fn first_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let mut number = 0_u64;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?,
            _ if index > 0 && byte.is_ascii_whitespace() => return Some(number),
            _ => return None,
        }
    }
    (!text.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_wanted() {
        let found = |text: &'static [u8]| {
            fields(text, |start| matches!(start, b"VmPT" | b"Huge")).collect::<Vec<(&[u8], &[u8])>>()
        };
        let text = b"Vm\nVmPTE:\t 48 kB\n\nVmPT\nVmPTX\nHugePages_Free: 1\nHuge\xff: 2\nVmSwap: 3\nHuge: 4";
        let expected: [(&[u8], &[u8]); 4] =
            [(b"VmPTE", b"\t 48 kB"), (b"HugePages_Free", b" 1"), (b"Huge\xff", b" 2"), (b"Huge", b" 4")];
        assert_eq!(found(text), expected);
        for nothing in [&b""[..], b"\n", b"Hug", b"Huge", b"Hug\ne:"] {
            assert!(found(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn the_first_number() {
        for (text, number) in [("\t     48 kB", 48), ("0", 0), (" 18446744073709551615\n", u64::MAX)] {
            assert_eq!(first_number(text.as_bytes()), Some(number), "{text}");
        }
        for nothing in ["", " ", " kB", "4x kB", "-4 kB", "18446744073709551616 kB"] {
            assert_eq!(first_number(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
