"""What the packaged completions offer in bash, asked of bash itself."""

import subprocess

import pytest
from machine import REPOSITORY

ASK = """
. packaging/completions/hugepage-sidecar.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
function=$(complete -p hugepage-sidecar | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("words", "offered"), [
    (["st"], ["status"]),
    (["--ro"], ["--root"]),
    (["size", "--sh"], ["--shared-buffers"]),
    (["status", "--format", "j"], ["json"]),
    (["oracle", "un"], ["uninstall-sql"]),
    (["oracle", "install-sql", "--sc"], ["--schema"]),
])
def test_bash_completes(words, offered):
    """clap's issue 6421: of a name with a hyphen, no option of a subcommand was completed."""
    asked = subprocess.run(["bash", "--norc", "-euc", ASK, "bash", "hugepage-sidecar", *words], cwd=REPOSITORY, check=True,
                           text=True, capture_output=True)
    assert asked.stdout.split() == offered
