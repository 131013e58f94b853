//! Libraries of `shared_preload_libraries`, which have shared memory of their own.

/// More than any server preloads.
const MAX_LIBRARIES: usize = 100;

/// The names in the text of the setting, without `$libdir/`. The error is why they are not looked for, such as a path.
pub fn names(text: &str) -> Result<Vec<&str>, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for listed in text.split(',').map(str::trim) {
        let name = listed.strip_prefix("$libdir/").unwrap_or(listed);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) || names.len() == MAX_LIBRARIES {
            return Err(format!("shared_preload_libraries names \"{listed}\", which is not run"));
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use hugepage_start::parts::is_known_library;

    use super::*;

    #[test]
    fn names_of_the_servers_own_libraries() {
        assert_eq!(names("").unwrap(), [""; 0]);
        assert_eq!(
            names("pg_stat_statements, $libdir/auto_explain ,x.so").unwrap(),
            ["pg_stat_statements", "auto_explain", "x.so"]
        );
        for text in ["/tmp/evil", "plugins/x", "../x", "$libdir/../x", "a,,b", "\"a\"", "a b", "..", "$libdir/"] {
            assert!(names(text).unwrap_err().contains("not run"), "{text}");
        }
        assert!(is_known_library("pg_prewarm") && is_known_library("auto_explain.so") && !is_known_library("evil"));
    }
}
