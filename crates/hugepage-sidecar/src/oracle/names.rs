//! Names and paths that the caller inserts into the SQL, validated against injection.

use anyhow::{Result, ensure};

/// The longest name in Oracle 11.2 to 12.1, in bytes; longer ones are legal since 12.2.
const MAX_NAME_BYTES: usize = 30;

/// An unquoted name, in upper case as in the data dictionary: letters, digits, `_`, `$` and `#`, at most 30 bytes (11.2).
pub fn object(name: &str) -> Result<String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || "_$#".contains(character);
    ensure!(
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(legal),
        "\"{}\" is not a valid Oracle name: use a letter, then letters, digits, _, $ and #",
        name.escape_debug()
    );
    ensure!(name.len() <= MAX_NAME_BYTES, "\"{name}\" exceeds {MAX_NAME_BYTES} bytes, the limit of Oracle 11.2");
    Ok(name.to_ascii_uppercase())
}

/// The path of a directory object.
pub fn path(path: &str) -> Result<String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || "/._+-".contains(character);
    ensure!(
        path.starts_with('/') && path.chars().all(legal),
        "\"{}\" is not a valid path: use an absolute path of letters, digits and /._+-",
        path.escape_debug()
    );
    let path = path.trim_end_matches('/');
    let odd = path.split('/').skip(1).any(|part| ["", ".", ".."].contains(&part));
    ensure!(!path.is_empty() && !odd, "\"{path}\" must not contain empty parts, . or ..");
    ensure!(path.len() <= 200, "\"{path}\" exceeds 200 bytes");
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names() {
        for (name, legal) in [
            ("hugepage", "HUGEPAGE"),
            ("C##HUGEPAGE", "C##HUGEPAGE"),
            ("a", "A"),
            ("a234567890123456789012345678_0", "A234567890123456789012345678_0"),
        ] {
            assert_eq!(object(name).unwrap(), legal);
        }
        let long = "a2345678901234567890123456789_1";
        let wrong = ["", "1a", "_a", "a b", "a;", "a'", "a\"b", "a.b", "a--", "a\nb", "ä", long];
        for name in wrong {
            assert!(object(name).is_err(), "{name}");
        }
    }

    #[test]
    fn validate_paths() {
        assert_eq!(path("/var/lib/hugepage-sidecar/").unwrap(), "/var/lib/hugepage-sidecar");
        let long = format!("/{}", "a".repeat(200));
        let wrong =
            ["", "/", "var", "/a'b", "/a b", "/a\"", "/a;", "/a&b", "/a\n", "/a/../b", "/a/./b", "//a", "/a//b", &long];
        for wrong in wrong {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }
}
