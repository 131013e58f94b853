//! Calls of the program.

use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a call, with its exit status.
pub struct CallOutput {
    call: String,
    exit: i32,
    pub stdout: String,
    stderr: String,
}

/// Calls the program on the tree `directory`, with nothing of this machine's environment. Every call has `--root`: no test
/// looks at this host, and none can change its pools. `JOURNAL_STREAM`: without it, `watch` tells the time before each message.
pub fn run(directory: &Path, arguments: &[&str]) -> CallOutput {
    call(
        directory,
        directory,
        &[&["--root", "."], arguments].concat(),
    )
}

/// Calls the program beside that tree, with `--snapshot` among the arguments.
pub fn run_elsewhere(directory: &Path, arguments: &[&str]) -> CallOutput {
    assert!(arguments.contains(&"--snapshot"));
    call(directory, directory.parent().unwrap(), arguments)
}

fn call(tree: &Path, directory: &Path, arguments: &[&str]) -> CallOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hugepage-sidecar"));
    command
        .env_clear()
        .envs([("COLUMNS", "80"), ("TZ", "UTC"), ("JOURNAL_STREAM", "0:0")]);
    let output = command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let above = tree.parent().unwrap().to_str().unwrap();
    let text = |bytes: Vec<u8>| {
        without_version(String::from_utf8(bytes).unwrap().replace(above, "[ABOVE]"))
    };
    CallOutput {
        call: arguments.join(" "),
        exit: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A release changes nothing else.
pub fn without_version(text: String) -> String {
    ["hugepage-sidecar {}", "'{}'", "\"{}\"", "|{}|"]
        .iter()
        .fold(text, |text, place| {
            text.replace(
                &place.replace("{}", env!("CARGO_PKG_VERSION")),
                &place.replace("{}", "[VERSION]"),
            )
        })
}

impl CallOutput {
    pub fn exit(&self) -> i32 {
        self.exit
    }

    /// The call, its exit status and its standard error.
    pub fn transcript(&self) -> String {
        let Self {
            call, exit, stderr, ..
        } = self;
        format!("$ hugepage-sidecar {call}\nexit status {exit}\n{stderr}\n")
    }
}
