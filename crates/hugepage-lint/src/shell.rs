//! A shell script as simple commands, as far as it can be understood without running it.

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellWord {
    /// The word without quotes.
    pub text: String,
    /// Whether the shell changes nothing of it: no variable, no command, no pattern.
    pub is_literal: bool,
}

/// A simple command: words between operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The words, the program first.
    pub words: Vec<ShellWord>,
    /// Whether its input or output is a file or another command.
    pub is_redirected: bool,
}

/// The simple commands of `script` in their order; `None` where its quotes do not close or it has a here-document.
pub fn commands(script: &str) -> Option<Vec<ShellCommand>> {
    let mut reader = ShellReader { rest: script.chars().collect(), ..ShellReader::default() };
    while let Some(c) = reader.next() {
        match c {
            ' ' | '\t' | '\r' => reader.end_word(),
            '\n' | ';' | '&' | '`' => reader.end_command(),
            '(' => reader.begin_substitution(),
            ')' => reader.end_substitution(),
            '|' => {
                reader.redirect();
                reader.end_command();
            }
            '<' | '>' => {
                if c == '<' && reader.peek() == Some('<') {
                    return None;
                }
                reader.redirect();
                reader.end_word();
                while matches!(reader.peek(), Some('>' | '&' | '|')) {
                    reader.next();
                }
            }
            '#' if reader.word.is_none() => {
                while reader.peek().is_some_and(|c| c != '\n') {
                    reader.next();
                }
            }
            _ => reader.part_of_word(c)?,
        }
    }
    reader.end_command();
    reader.commands.retain(|command| !command.words.is_empty());
    Some(reader.commands)
}

#[derive(Default)]
struct ShellReader {
    rest: Vec<char>,
    at: usize,
    /// The commands that have ended.
    commands: Vec<ShellCommand>,
    command: ShellCommand,
    word: Option<ShellWord>,
    /// The commands that go on behind the substitutions that are open.
    outer: Vec<(ShellCommand, Option<ShellWord>)>,
}

impl ShellReader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_with(|| ShellWord { text: String::new(), is_literal: true })
    }

    fn end_word(&mut self) {
        self.command.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        self.commands.push(std::mem::take(&mut self.command));
    }

    /// The commands of a substitution are commands, too.
    fn begin_substitution(&mut self) {
        self.outer.push((std::mem::take(&mut self.command), self.word.take()));
    }

    fn end_substitution(&mut self) {
        self.end_command();
        (self.command, self.word) = self.outer.pop().unwrap_or_default();
    }

    fn redirect(&mut self) {
        // The digit of 2> is no word.
        self.word = self.word.take().filter(|word| !word.text.chars().all(|c| c.is_ascii_digit()));
        self.command.is_redirected = true;
    }

    fn part_of_word(&mut self, c: char) -> Option<()> {
        match c {
            '\'' => loop {
                match self.next()? {
                    '\'' => {
                        self.word();
                        return Some(());
                    }
                    c => self.word().text.push(c),
                }
            },
            '"' => loop {
                self.word();
                match self.next()? {
                    '"' => return Some(()),
                    '\\' => match self.next()? {
                        '\n' => {}
                        c @ ('$' | '`' | '"' | '\\') => self.word().text.push(c),
                        c => self.word().text.extend(['\\', c]),
                    },
                    c => {
                        let word = self.word();
                        word.is_literal &= !matches!(c, '$' | '`');
                        word.text.push(c);
                    }
                }
            },
            '\\' => match self.next()? {
                '\n' => {}
                c => self.word().text.push(c),
            },
            '$' | '*' | '?' | '[' | '~' | '{' => {
                let word = self.word();
                word.is_literal = word.text.is_empty() && c == '[';
                word.text.push(c);
            }
            _ => self.word().text.push(c),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Option<Vec<Vec<String>>> {
        let of = |command: ShellCommand| command.words.into_iter().map(|word| word.text).collect();
        Some(commands(script)?.into_iter().map(of).collect())
    }

    #[test]
    fn simple_commands() {
        for (script, expected) in [
            ("exec postgres -c 'a=b c'", vec![vec!["exec", "postgres", "-c", "a=b c"]]),
            ("a && b || c; d | e & f", vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"]]),
            ("a \\\n  b # c\n# d\ne", vec![vec!["a", "b"], vec!["e"]]),
            ("a \"b \\\" $C\" d'e'f", vec![vec!["a", "b \" $C", "def"]]),
            ("pg_dump x > \"/b/$(date +%F).sql\" 2>&1", vec![vec!["pg_dump", "x", "/b/$(date +%F).sql", "1"]]),
            ("A=1 b", vec![vec!["A=1", "b"]]),
            ("a x$(b c)y `d`", vec![vec!["b", "c"], vec!["a", "x$y"], vec!["d"]]),
            ("(a; b)", vec![vec!["a"], vec!["b"]]),
            ("", vec![]),
        ] {
            assert_eq!(words(script).unwrap(), expected, "{script}");
        }
        for script in ["a 'b", "a \"b", "cat <<E\nx\nE", "a \\"] {
            assert_eq!(words(script), None, "{script}");
        }
    }

    #[test]
    fn words_that_the_shell_changes() {
        for (script, expected) in [
            ("postgres", true),
            ("$A", false),
            ("a$(b)", false),
            ("\"${A}\"", false),
            ("'$A'", true),
            ("*.sh", false),
            ("[", true),
        ] {
            let command = commands(script).unwrap().pop().unwrap();
            assert_eq!(command.words[0].is_literal, expected, "{script}");
        }
        assert!(commands("echo a >> b").unwrap()[0].is_redirected);
    }
}
