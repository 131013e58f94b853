"""What kernels make of their command lines: the table command-lines.tsv, booted again.

The table has a row for each list of words, and a column for each kernel. A cell is the default page size and the pages of 2 MB and of
1 GB after the boot. A test of hugepage-kernel compares it with the parser of the next boot's command line.

    PYTHONPATH=tests:tests/lab python3 tests/lab/command_lines.py KERNEL INITRAMFS

fills the column of a kernel, and prints what is new. Any initramfs of the lab will do.
"""

import subprocess
import sys
from pathlib import Path

from booted import GUESTS
from harness.guest import AMD64, CPU

TABLE = Path(__file__).with_name("command-lines.tsv")
SIZES = {"2048": "2M", "1048576": "1G"}
SECONDS_TO_BOOT = 120


def pools_after(kernel: Path, initramfs: Path, words: str) -> tuple[str, str]:
    """The kernel's release, and the cell of a guest with two nodes of 3 GB that is booted with these words."""
    command = [*AMD64.qemu, "-accel", "tcg,thread=multi", "-cpu", CPU, "-m", "6144", "-smp", "2,sockets=2",
               "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
               "-kernel", str(kernel), "-initrd", str(initramfs),
               "-append", f"console={AMD64.console} panic=-1 loglevel=1 rdinit=/pools {words}"]
    for node in range(2):
        command += ["-object", f"memory-backend-ram,id=node{node},size=3072M", "-numa", f"node,memdev=node{node},cpus={node}"]
    for _ in range(GUESTS):
        printed = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=SECONDS_TO_BOOT,
                                 check=False).stdout.decode(errors="replace")
        pools, default, release = dict.fromkeys(SIZES.values(), "-"), "-", ""
        for fields in map(str.split, printed.splitlines()):
            match fields:
                case ["POOL", kb, pages, *is_default]:
                    pools[SIZES[kb]] = pages
                    default = SIZES[kb] if is_default else default
                case ["POOLS", name]:
                    release = name
        if release:
            return release, " ".join([default, *pools.values()])
    raise RuntimeError(f"the guest with '{words}' did not print its pools:\n{printed[-2000:]}")


def read_table(path: Path = TABLE) -> tuple[list[str], dict[str, list[str]]]:
    """The releases of the columns, and the cells by words; empty where a kernel has not been booted with them."""
    head, *rows = (line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#"))
    return head[1:], {words: cells + [""] * (len(head) - 1 - len(cells)) for words, *cells in rows}


def pools_of_every_command_line(kernel: Path, initramfs: Path) -> tuple[str, int, list[str]]:
    """The release of a kernel, how many command lines were booted, and for each that the table does not have so what it is."""
    releases, rows = read_table()
    found, release = [], ""
    for words, cells in rows.items():
        release, cell = pools_after(kernel, initramfs, words)
        # Another build has the rules of the nearest release before it in the table.
        before = [known for known in releases if _number(known) <= _number(release)]
        expected = cells[releases.index(max(before, key=_number))] if before else ""
        if cell != expected:
            found.append(f"'{words}': {cell}, not {expected or 'known'}")
    return release, len(rows), found


def _number(release: str) -> list[int]:
    return [int(number) for number in release.split(".")[:2]]


def fill(kernel: Path, initramfs: Path) -> None:
    """Add what this kernel makes of each line to the table."""
    releases, rows = read_table()
    comments = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
    for words, cells in rows.items():
        release, cell = pools_after(kernel, initramfs, words)
        if release not in releases:
            releases.append(release)
            for row in rows.values():
                row.append("")
        column = releases.index(release)
        if cells[column] != cell:
            print(f"{words}\t{cells[column]}\t{cell}", flush=True)
        cells[column] = cell
        lines = ["\t".join(["words", *releases]), *("\t".join([words, *cells]) for words, cells in rows.items())]
        TABLE.write_text("\n".join([*comments, *lines]) + "\n")


if __name__ == "__main__":
    fill(Path(sys.argv[1]), Path(sys.argv[2]))
