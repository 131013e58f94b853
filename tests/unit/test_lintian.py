"""Which words of lintian fail ./dev package: those of our faults, not those that a new version finds for the same program."""

import subprocess

import pytest
from machine import REPOSITORY


def judged(output: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([REPOSITORY / "scripts/tree/judge-lintian", REPOSITORY / "packaging/lintian-fails"], input=output,
                          text=True, capture_output=True)


@pytest.mark.parametrize("output", [
    "",
    "I: hugepage-sidecar: hardening-no-fortify-functions [usr/bin/hugepage-sidecar]\n",
    "O: hugepage-sidecar: shared-library-lacks-prerequisites [usr/bin/hugepage-sidecar]\n",
    "E: hugepage-sidecar: statically-linked-binary [usr/bin/hugepage-sidecar]\n",
    "E: hugepage-sidecar: shared-library-lacks-prerequisites [usr/bin/hugepage-sidecar]\n",
    "E: hugepage-sidecar: a-word-of-the-next-version [usr/bin/hugepage-sidecar]\n",
    "W: hugepage-sidecar: mismatched-override shared-library-lacks-prerequisites * [usr/share/lintian/overrides/x:3]\n",
    "N: 1 hint overridden (1 error)\n",
])
def test_what_is_no_fault_of_ours_passes(output):
    judgement = judged(output)
    assert judgement.returncode == 0 and "lintian: 0 that fail" in judgement.stdout


@pytest.mark.parametrize("output", [
    "E: postgresql-18-pg-hugepages: dir-or-file-in-opt [opt/]\n",
    "E: postgresql-18-pg-hugepages: unstripped-binary-or-object [usr/lib/postgresql/18/lib/pg_hugepages.so]\n",
    "E: postgresql-18-pg-hugepages: custom-library-search-path RUNPATH /x [usr/lib/postgresql/18/lib/pg_hugepages.so]\n",
    "E: hugepage-sidecar: no-copyright-file\n",
    "E: hugepage-sidecar: bad-distribution-in-changes-file sid\n",
    "W: hugepage-sidecar: maintainer-script-empty [postinst]\n",
    "W: hugepage-sidecar: non-standard-file-perm 0600 != 0644 [usr/share/doc/hugepage-sidecar/sidecar.md]\n",
    "W: hugepage-sidecar: systemd-service-file-refers-to-unusual-wantedby-target x [lib/systemd/system/x]\n",
])
def test_what_is_one_fails(output):
    judgement = judged("E: hugepage-sidecar: statically-linked-binary [usr/bin/hugepage-sidecar]\n" + output)
    assert judgement.returncode == 1 and "lintian: 1 that fail" in judgement.stdout and "1 others" in judgement.stdout
