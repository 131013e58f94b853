"""./dev lab --steps N: the random walks of ./dev foretell on other kernels and machines."""

import re
import time
from datetime import datetime, timezone
from pathlib import Path

from booted import ENVIRONMENT, GUESTS, booted, kernel_of, log_of
from foretell.scores import counts
from harness.guest import GuestFailed, Kernel
from harness.markers import with_row
from machines import Boot

WALKED = (Boot("walk-one-node", nodes=(4096,)), Boot("walk-two-nodes", nodes=(2048, 2048)))
"""With memory for pages of 1 GB."""

SECONDS_A_STEP = 60
SCORE = re.compile(r"^(?P<steps>\d+) steps, \d+ restarts and crashes", re.MULTILINE)
SERVER = re.compile(r", (PostgreSQL \S+):$", re.MULTILINE)


def run_walks(lab: Path, kernels: list[str], steps: int, seed: int, part: str, document: Path | None) -> int:
    """So many steps on each kernel and machine whose name contains `part`, with seeds that follow one another. Writes a row for each
    into the document. The exit status."""
    passed, failed, taken = 0, [], 0
    for name in kernels:
        kernel = kernel_of(lab, name)
        if isinstance(kernel, str):
            print(f"!! {name}: not had: {kernel}", flush=True)
            failed.append(name)
            continue
        print(f"== {name}: {kernel.release}", flush=True)
        for boot in (boot for boot in WALKED if part in boot.name):
            status, scores = walk_in_guest(lab, kernel, boot, steps, seed)
            command = f"./dev lab {name} -k {boot.name} --steps {steps} --seed {seed}"
            seed += 1
            score = SCORE.search(scores)
            print(scores, flush=True)
            if status != 0 or not score:
                failed.append(f"{name} {boot.name}")
                continue
            taken += int(score["steps"])
            passed += 1
            if document:
                document.write_text(with_row(document.read_text(), row(name, kernel, boot, command, scores)))
    print(f"\n{taken} steps, {passed} passed, {len(failed)} failed" + "".join(f"\n    {one}" for one in failed))
    return 1 if failed or not passed else 0


def row(name: str, kernel: Kernel, boot: Boot, command: str, scores: str) -> list[str]:
    """The cells of one walk in tests/tested-on.md, from what ./dev foretell printed."""
    server = SERVER.search(scores)
    return [f"walk, {name}, {boot.name.removeprefix('walk-').replace('-', ' ')}",
            f"Linux {kernel.release}" + (f", {server[1]}" if server else ""), f"{datetime.now(timezone.utc):%Y-%m-%d}",
            f"`{command}`", *counts(scores)]


def walk_in_guest(lab: Path, kernel: Kernel, boot: Boot, steps: int, seed: int) -> tuple[int, str]:
    """The exit status and the output of one run of ./dev foretell's program."""
    command = f"{ENVIRONMENT} PG_HUGEPAGES_PATIENCE=40 python3 /mnt/tests/foretell/run.py --steps {steps} --seed {seed} --no-shrinking"
    why = ""
    for _ in range(GUESTS):
        began = time.monotonic()
        try:
            with booted(lab, kernel, boot) as guest:
                answer = guest.run(command, seconds=steps * SECONDS_A_STEP)
            log_of(lab, kernel, boot).write_text(answer.output)
            print(f"   {boot.name}: ended after {time.monotonic() - began:.0f} s", flush=True)
            return answer.status, answer.output
        except GuestFailed as error:
            why = str(error)
            print(f"   {boot.name}: {why.splitlines()[0]}", flush=True)
    return 1, why
