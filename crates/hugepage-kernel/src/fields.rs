//! Lines `NAME: NUMBER` of files that the kernel writes, such as /proc/meminfo and /proc/PID/status (proc(5)).

use memchr::memchr;

/// Name and value of each line, in the order of the file; a line without a colon is none of them.
pub fn fields(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(text).filter_map(|line| {
        // Names are short.
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], &line[colon + 1..]))
    })
}

fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let line;
        (line, text) = match memchr(b'\n', text) {
            Some(end) => (&text[..end], &text[end + 1..]),
            None if text.is_empty() => return None,
            None => (text, &[][..]),
        };
        Some(line)
    })
}

/// What is behind `NAME:` in the first line that begins so.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let behind = |line: &'a [u8]| line.strip_prefix(name.as_bytes())?.strip_prefix(b":");
    str::from_utf8(lines(text.as_bytes()).find_map(behind)?).ok()
}

/// The number that the first word of `text` is; `None` if it is none, or too large.
pub fn first_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let mut number = 0_u64;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                number = number
                    .checked_mul(10)?
                    .checked_add(u64::from(byte - b'0'))?
            }
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
    fn lines_with_a_name() {
        let found = |text: &'static [u8]| fields(text).collect::<Vec<(&[u8], &[u8])>>();
        let text = b"Vm\nVmPTE:\t 48 kB\n\nVmPT\nVmPTX\nHugePages_Free: 1\nHuge\xff: 2\nHuge: 4";
        let expected: [(&[u8], &[u8]); 4] = [
            (b"VmPTE", b"\t 48 kB"),
            (b"HugePages_Free", b" 1"),
            (b"Huge\xff", b" 2"),
            (b"Huge", b" 4"),
        ];
        assert_eq!(found(text), expected);
        for nothing in [&b""[..], b"\n", b"Hug", b"Huge", b"Hug\ne"] {
            assert!(found(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn the_first_value() {
        let text = "Gid\nGids:\t9\nGid:\t104\t105\nGid:\t1\nlast:";
        assert_eq!(
            (
                value(text, "Gid"),
                value(text, "last"),
                value(text, "Groups")
            ),
            (Some("\t104\t105"), Some(""), None)
        );
        assert_eq!(value("", "Gid"), None);
    }

    #[test]
    fn the_first_number() {
        for (text, number) in [
            ("\t     48 kB", 48),
            ("0", 0),
            (" 18446744073709551615\n", u64::MAX),
        ] {
            assert_eq!(first_number(text.as_bytes()), Some(number), "{text}");
        }
        for nothing in ["", " ", " kB", "4x kB", "-4 kB", "18446744073709551616 kB"] {
            assert_eq!(first_number(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
