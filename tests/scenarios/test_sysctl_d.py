"""What sysctl.d sets, compared with what the real systemd-sysctl writes: trees of files, each with an empty /proc/sys of its own."""

import re
import subprocess
from pathlib import Path

import pytest

from harness import sidecar
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.no_server]

SYSCTL = Path("/usr/lib/systemd/systemd-sysctl")
DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")
PARAMETERS = ("nr_hugepages", "nr_hugepages_mempolicy", "nr_overcommit_hugepages", "hugetlb_shm_group", "swappiness")

_APPLY = """set -e
for directory in /etc /run /usr/local/lib /usr/lib/sysctl.d; do mount -t tmpfs none $directory; done
for directory in /etc /run /usr/local/lib /usr/lib; do
    [ ! -d "$1$directory" ] || cp -a "$1$directory/." $directory/
done
mount -t tmpfs none /proc/sys
mkdir -p /proc/sys/vm
for name in $2; do : >/proc/sys/vm/$name; done
"$3" 2>/dev/null || true
cat /proc/sys/vm/nr_hugepages
"""

ETC, LATER = "etc/sysctl.d/50-a.conf", "etc/sysctl.d/60-b.conf"
ONE = "vm.nr_hugepages = 7\n"

TREES: dict[str, dict[str, str | Path]] = {
    "nothing": {},
    "a line": {ETC: ONE},
    "names of all forms": {ETC: "/vm//nr_hugepages/ =\t3 \r\n"},
    "a dot too many": {ETC: "vm..nr_hugepages = 3\n"},
    "a component that is a dot": {ETC: "vm/./nr_hugepages = 3\n"},
    "slashes in place of dots": {ETC: "vm/nr_hugepages=3"},
    "the last line": {ETC: ONE + "vm/nr_hugepages = 8\n"},
    "the last file": {ETC: ONE, LATER: "vm.nr_hugepages = 9\n"},
    "the last name, whatever the directory": {"usr/lib/sysctl.d/90-z.conf": "vm.nr_hugepages = 4\n", ETC: ONE},
    "capitals before small letters": {"etc/sysctl.d/Z.conf": "vm.nr_hugepages = 4\n", "etc/sysctl.d/a.conf": ONE},
    "a name in two directories": {"usr/lib/sysctl.d/50-a.conf": "vm.nr_hugepages = 4\n", "usr/local/lib/sysctl.d/50-a.conf": ONE},
    "an empty file above": {"usr/lib/sysctl.d/50-a.conf": ONE, ETC: ""},
    "a mask": {"usr/lib/sysctl.d/50-a.conf": ONE, ETC: Path("/dev/null")},
    "a hidden file": {"etc/sysctl.d/.50-a.conf": ONE},
    "another suffix": {"etc/sysctl.d/50-a.conf.bak": ONE, "etc/sysctl.d/README": ONE},
    "a file that nothing leads to": {"etc/sysctl.conf": ONE},
    "Debian's link": {"etc/sysctl.conf": ONE, "etc/sysctl.d/99-sysctl.conf": Path("../sysctl.conf")},
    "a comment": {ETC: "# vm.nr_hugepages = 1\n ; vm.nr_hugepages = 2\n"},
    "a comment behind it": {ETC: "vm.nr_hugepages = 7 # ours\n"},
    "no value": {ETC: "vm.nr_hugepages =\n"},
    "no sign": {ETC: "vm.nr_hugepages 7\n"},
    "two signs": {ETC: "vm.nr_hugepages = = 7\n"},
    "a failure that is ignored": {ETC: "-vm.nr_hugepages = 7\n"},
    "blanks behind the hyphen": {ETC: "- vm.nr_hugepages = 7\n"},
    "two hyphens": {ETC: "--vm.nr_hugepages = 7\n"},
    "excluded later": {ETC: ONE, LATER: "-vm.nr_hugepages\n"},
    "excluded in another form": {ETC: ONE, LATER: "-vm/nr_hugepages\n"},
    "excluded, and set again": {ETC: ONE + "-vm.nr_hugepages\n", LATER: "vm.nr_hugepages = 8\n"},
    "a pattern is excluded": {ETC: ONE, LATER: "-vm.nr_*\n"},
    "a pattern": {ETC: "vm.nr_* = 5\n"},
    "a pattern beside a line": {ETC: "vm.nr_hugepages* = 5\nvm.nr_hugepages = 7\n-vm.nr_hugepages_mempolicy\n"},
    "a pattern that a line excludes": {ETC: "vm.nr_hugepages* = 5\n-vm.nr_hugepages\n-vm.nr_hugepages_mempolicy\n"},
    "a pattern that is too short": {ETC: "* = 5\nvm* = 6\n"},
    "a pattern of two parts": {ETC: "v?.nr_hugepage[s] = 5\n"},
    "a pattern of others": {ETC: ONE + "vm.s* = 5\n"},
    "a no-break space": {ETC: "vm.nr_hugepages = 7\u00a0\n"},
    "a vertical tab": {ETC: "vm.nr_hugepages = 7\v\n"},
    "a vertical tab before the number": {ETC: "vm.nr_hugepages = \v7\n"},
    "more digits than the kernel takes": {ETC: ONE, LATER: f"vm.nr_hugepages = {'0' * 20}7\n"},
    "Debian's link in another directory": {ETC: ONE, "etc/sysctl.conf": "vm.nr_hugepages = 4\n",
                                           "usr/lib/sysctl.d/99-sysctl.conf": Path("../sysctl.conf")},
    "text behind the number": {ETC: "vm.nr_hugepages = 7pages\n"},
    "a word behind the number": {ETC: "vm.nr_hugepages = 7 pages\n"},
    "hexadecimal and octal": {ETC: "vm.nr_hugepages = 0x10\n", LATER: "vm.nr_hugepages = 010\n"},
    "a sign": {ETC: "vm.nr_hugepages = +7\n"},
    "what is refused hides what is not": {ETC: ONE, LATER: "vm.nr_hugepages = 7;\n"},
    "returns of an old Macintosh": {ETC: "vm.swappiness = 1\rvm.nr_hugepages = 7\rvm.swappiness = 2\r"},
    "names that set no pool": {ETC: "vm.hugetlb_shm_group = 5\nvm.nr_hugepage = 3\nkernel.nr_hugepages = 4\nnr_hugepages = 5\n"},
    "surplus pages": {ETC: ONE + "vm.nr_overcommit_hugepages = 3\n"},
    "by a policy of memory": {ETC: "vm.nr_hugepages_mempolicy = 3\n"},
}

UNKNOWN = {"a pattern", "a pattern of two parts", "surplus pages", "by a policy of memory", "Debian's link in another directory"}
"""Where the product says that it is unknown, with the file."""


def write(tree: Path, files: dict[str, str | Path]) -> None:
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            (tree / name).symlink_to(content)
        else:
            (tree / name).write_bytes(content.encode())


def by_systemd(tree: Path) -> int | None:
    """What it writes to the pool, if the kernel takes it (proc_get_long in kernel/sysctl.c)."""
    command = ["unshare", "--mount", "sh", "-c", _APPLY, "sh", tree, " ".join(PARAMETERS), SYSCTL]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()
    number = re.match(r"\v?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([ \t\n]|$)", text)
    if not number or len(number[1]) > 20:
        return None
    digits = number[1].lower()
    return int(digits, 16) if digits.startswith("0x") else int(digits, 8 if digits.startswith("0") else 10)


def by_sidecar(tree: Path) -> tuple[str, int | None]:
    pool = "sys/kernel/mm/hugepages/hugepages-2048kB/"
    counters = {f"{pool}{name}_hugepages": "0\n" for name in ("nr", "free", "resv", "surplus", "nr_overcommit")}
    write(tree, {"proc/meminfo": "MemTotal: 8388608 kB\nHugepagesize: 2048 kB\n", "proc/cmdline": "ro\n", "proc/uptime": "4000.00 1.00\n",
                 "run/systemd/system/own.conf": "", **counters})
    [pool] = [pool for pool in sidecar.run("--root", tree, "status", "--format", "json").json()["next_boot"] if pool["page_size"] == 2 * MB]
    return pool["state"], pool["nr_hugepages"]


@pytest.mark.parametrize("name", TREES)
def test_as_systemd_does(root, tmp_path, name):
    if not SYSCTL.exists():
        pytest.skip("this host has no systemd-sysctl")
    write(tmp_path, TREES[name])
    written = by_systemd(tmp_path)
    expected = ("unknown", None) if name in UNKNOWN else ("unseen" if written is None else "set", written)
    assert by_sidecar(tmp_path) == expected, written
