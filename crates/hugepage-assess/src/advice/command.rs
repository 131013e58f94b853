//! Complete commands for the administrator. Each is of printable US-ASCII without `|` and `"`, and has no two blanks in a row: files
//! for Oracle, lines for monitoring systems, sentences, databases of any encoding and pages of HTML all show it as it is.

use std::borrow::Cow;

use hugepage_kernel::next_boot::TOLD;
use hugepage_kernel::{PageSize, Pages};

/// Sets the pool of `size` to `pages` until the next boot.
pub fn set_pool(size: PageSize, is_default: bool, pages: Pages) -> String {
    if is_default {
        format!("sysctl -w vm.nr_hugepages={pages}")
    } else {
        format!(
            "echo {pages} > /sys/kernel/mm/hugepages/{}/nr_hugepages",
            size.sysfs_name()
        )
    }
}

/// Sorts after the files of distributions and packages, so that its value is the one in effect.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-postgresql-hugepages.conf";

/// Sets the pool of `size` at each boot: in a file of sysctl.d for the default size, on the kernel's command line for others. `file`:
/// what sets it now. `None` for a size of the command line that something sets already: of two counts the first counts; and where root
/// says who sets it.
pub fn set_pool_at_boot(
    size: PageSize,
    is_default: bool,
    pages: Pages,
    file: Option<&str>,
) -> Option<String> {
    // A later file takes precedence, so it has to be changed itself, a package's by a copy in /etc, which hides it.
    let is_later = |file: &&str| {
        file.contains("/sysctl") && file.rsplit('/').next() > SYSCTL_FILE.rsplit('/').next()
    };
    Some(match file.filter(is_later) {
        _ if !is_default || file.is_some_and(|file| file.ends_with(TOLD)) => {
            return file.is_none().then(|| reserve_at_boot(size, pages));
        }
        Some(file) => {
            let pattern = "^[-[:space:]]*vm[./]nr_hugepages[[:space:]]*=.*";
            let (option, copy) = match file
                .rsplit_once("/sysctl.d/")
                .filter(|_| !file.starts_with("/etc/"))
            {
                Some((_, name)) => (
                    "-E",
                    format!(" > {}", quoted(&format!("/etc/sysctl.d/{name}"))),
                ),
                None => ("-i -E", String::new()),
            };
            format!(
                "sed {option} 's#{pattern}#vm.nr_hugepages = {pages}#' {}{copy}",
                quoted(file)
            )
        }
        None => format!("echo 'vm.nr_hugepages = {pages}' > {SYSCTL_FILE}"),
    })
}

/// Adds a reservation to the kernel's command line, with grubby (Red Hat) or update-grub (Debian).
pub fn reserve_at_boot(size: PageSize, pages: Pages) -> String {
    let size = size.kernel_parameter();
    format!(
        "if ! grubby --update-kernel=ALL --args='hugepagesz={size} hugepages={pages}'; then printf \
         'GRUB_CMDLINE_LINUX=\\042$GRUB_CMDLINE_LINUX hugepagesz={size} hugepages={pages}\\042\\n' >> /etc/default/grub && update-grub; fi"
    )
}

/// A word for a shell: as it is where no character has a meaning to it, in quotes otherwise. What some output would change (see
/// above) is in `$'...'`, byte by byte in octal (POSIX 2024, bash, ksh).
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    let has_blanks = word.contains("  ");
    let is_changed =
        |c: char| !(c.is_ascii_graphic() || c == ' ' && !has_blanks) || c == '|' || c == '"';
    if !word.contains(is_changed) {
        return format!("'{}'", word.replace('\'', "'\\''")).into();
    }
    let escaped = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        // All bytes of the character.
        c if is_changed(c) => c
            .to_string()
            .bytes()
            .map(|byte| format!("\\{byte:03o}"))
            .collect(),
        c => c.to_string(),
    };
    format!("$'{}'", word.chars().map(escaped).collect::<String>()).into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Names that files, groups and services may have.
    const WORDS: [&str; 17] = [
        "a b",
        "$(touch /tmp/x)",
        "`id`",
        "it's",
        "",
        "a;b",
        "*",
        "~",
        "\\",
        "a\nb",
        "\x1b[31m'\\",
        "\u{9b}",
        "a|b",
        "Größe €",
        "\u{202e}fdp",
        " a   b ",
        "a \"b\"",
    ];

    /// Whether every output shows the command as it is.
    fn is_shown_as_it_is(command: &str) -> bool {
        command
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic() && !b"|\"".contains(&byte))
            && !command.contains("  ")
    }

    fn said(command: &str) -> String {
        let said = Command::new("bash").args(["-c", command]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    #[test]
    fn a_shell_takes_a_quoted_word_as_one() {
        assert_eq!(
            quoted("/sys/fs/cgroup/a-b.slice/hugetlb.2MB.max"),
            "/sys/fs/cgroup/a-b.slice/hugetlb.2MB.max"
        );
        for word in WORDS {
            let quoted = quoted(word);
            assert!(is_shown_as_it_is(&quoted), "{quoted}");
            assert_eq!(said(&format!("printf %s {quoted}")), word, "{quoted}");
        }
    }

    #[test]
    fn no_output_has_to_change_a_command() {
        let sizes = [2 << 20, 1 << 30].map(|bytes| PageSize::new(bytes).unwrap());
        let mut commands = Vec::new();
        for (size, is_default) in sizes
            .into_iter()
            .flat_map(|size| [(size, true), (size, false)])
        {
            commands.push(set_pool(size, is_default, Pages(7)));
            commands.push(reserve_at_boot(size, Pages(7)));
            for word in WORDS {
                let file = format!("/etc/sysctl.d/99-{word}.conf");
                commands.extend(set_pool_at_boot(size, is_default, Pages(7), Some(&file)));
                commands.extend(set_pool_at_boot(size, is_default, Pages(7), None));
            }
        }
        assert!(commands.iter().any(|command| command.starts_with("sed")));
        for command in commands {
            assert!(is_shown_as_it_is(&command), "{command}");
        }
    }

    #[test]
    fn a_file_of_a_package_is_copied_with_the_new_number() {
        let size = PageSize::new(2 << 20).unwrap();
        let command =
            set_pool_at_boot(size, true, Pages(7), Some("/usr/lib/sysctl.d/99-a.conf")).unwrap();
        let command = command.replace("/usr/lib/sysctl.d/99-a.conf", "/dev/stdin");
        let command = command.replace("/etc/sysctl.d/99-a.conf", "/dev/stdout");
        let lines = "x = 1\\n\\t- \\tvm/nr_hugepages\\t=\\t5\\r\\nvm.nr_hugepages=5\\n";
        assert_eq!(
            said(&format!("printf '{lines}' | {command}")),
            "x = 1\nvm.nr_hugepages = 7\nvm.nr_hugepages = 7\n"
        );
    }

    /// Where grubby is missing or fails, the file of update-grub gets the words.
    #[test]
    fn a_reservation_goes_one_of_two_ways() {
        let command = reserve_at_boot(PageSize::new(1 << 30).unwrap(), Pages(2));
        let command = command.replace("/etc/default/grub", "/dev/stdout");
        let on_host = |grubby| {
            said(&format!(
                "grubby() {{ {grubby}; }}; update-grub() {{ echo updated; }}; {command}"
            ))
        };
        assert_eq!(on_host("echo \"$2\""), "--args=hugepagesz=1G hugepages=2\n");
        assert_eq!(
            on_host("false"),
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=2\"\nupdated\n"
        );
    }
}
