//! `completions`: the file that packages install for a shell, for who installs the program alone.
//!
//! ```text
//! $ hugepage-sidecar completions bash
//! _hugepage__sidecar() {
//!     local i cur prev opts cmd
//!     COMPREPLY=()
//!     if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
//!         cur="$2"
//!     else
//!         cur="${COMP_WORDS[COMP_CWORD]}"
//!     fi
//!     prev="$3"
//! ...
//! ```

use crate::exit::Exit;
use crate::output::say;

/// Prints the file of that shell.
pub fn run(shell: &str) -> Exit {
    let file = match shell {
        "bash" => include_str!("../../../../packaging/completions/hugepage-sidecar.bash"),
        "fish" => include_str!("../../../../packaging/completions/hugepage-sidecar.fish"),
        _ => include_str!("../../../../packaging/completions/_hugepage-sidecar"),
    };
    say!("{}", file.trim_end());
    Exit::Ok
}
