"""What packagers find: one version, one name and address, and files that are theirs to take as they lie there."""

import re
import subprocess

import pytest
from machine import REPOSITORY

SPECS = sorted((REPOSITORY / "packaging/rpm").glob("*.spec"))
NOBODY = "# Who answers\n# NAME <ADDRESS>\n"


def version() -> str:
    return re.search(r'^version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE).group(1)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_spec_has_the_version_and_needs_nothing_from_outside(spec):
    """`rpmspec -P` on the file as it lies there: each macro is rpm's own, given here, or left out where it is not given."""
    text = spec.read_text()
    assert f"%{{!?version:%global version {version().replace('-', '~')}}}\n" in text
    given = set(re.findall(r"%global (\w+) ", text))
    used = set(re.findall(r"%\{(\w+)\}", re.sub(r"%\{\?\w+:[^\n]*\}", "", re.sub(r"^#.*$", "", text, flags=re.M))))
    assert used - given <= {"name", "version", "release", "buildroot", "nil", "_sourcedir"}, used - given


def maintainer(tmp_path, text: str, *words: str, **variables: str) -> str | None:
    (tmp_path / "scripts").mkdir(exist_ok=True)
    (tmp_path / "scripts/maintainer").write_bytes((REPOSITORY / "scripts/maintainer").read_bytes())
    (tmp_path / "MAINTAINERS").write_text(text)
    done = subprocess.run(["bash", tmp_path / "scripts/maintainer", *words], text=True, stdout=subprocess.PIPE,
                          env={"PATH": "/usr/bin:/bin", **variables})
    return done.stdout.strip() if done.returncode == 0 else None


OWN = {"DEBFULLNAME": "A Packager", "DEBEMAIL": "p@example.invalid"}
LINE = "A. Ü. Name <name+pg@example.invalid>"


@pytest.mark.parametrize(("text", "words", "variables", "answer"), [
    (NOBODY, [], {}, None),
    (NOBODY, [], OWN, "A Packager <p@example.invalid>"),
    (NOBODY, [], {"DEBFULLNAME": "A Packager"}, None),
    (NOBODY, ["--released"], OWN, None),
    (f"{NOBODY}{LINE}\nAnother <other@example.invalid>\n", [], {}, LINE),
    (f"{NOBODY}{LINE}\n", [], OWN, "A Packager <p@example.invalid>"),
    (f"{NOBODY}{LINE}\n", ["--released"], OWN, LINE),
    ("Without an address\n", [], {}, None),
    ("Without an at sign <example.invalid>\n", [], {}, None),
    ("", [], {}, None),
])
def test_who_answers(tmp_path, text, words, variables, answer):
    """Whoever builds packages of their own answers for them; for a release it is who MAINTAINERS names, and nobody else."""
    assert maintainer(tmp_path, text, *words, **variables) == answer


@pytest.mark.parametrize("page", ["SECURITY.md", "SUPPORT.md"])
def test_the_pages_lead_to_the_one_place(page):
    text = (REPOSITORY / page).read_text()
    assert "[MAINTAINERS](MAINTAINERS)" in text and "@" not in text


@pytest.mark.parametrize("page", sorted((REPOSITORY / "packaging/man").glob("*.1")), ids=lambda page: page.name)
def test_a_manual_page_has_its_name_and_a_day(page):
    [title] = [line for line in page.read_text().splitlines() if line.startswith(".TH")]
    assert re.fullmatch(rf'\.TH {page.stem} 1 "20\d\d-\d\d-\d\d" "pg_hugepages" "[\w ]+"', title)


def test_packages_of_others_replace_ours():
    """By dpkg's own comparison: a package is newer than one before the release, and older than the first of Debian or apt.postgresql.org."""
    made = subprocess.run(["bash", "-c", r"""for PGDG_SUITE in '' trixie; do
        eval "$(grep -F 'version=$(sed' scripts/package.sh)" && echo "$version"; done"""],
                          cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    ours = version()
    assert made == [f"{ours}-0", f"{ours}-0~trixie1"]
    for one in made:
        for lower, higher in ((f"{ours}~rc1-1", one), (one, f"{ours}-1"), (one, f"{ours}-1.pgdg13+1"), (one, f"{ours}-1~bpo13+1")):
            assert subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher]).returncode == 0, (lower, higher)
