"""Each crate that a program links is in the file of licences that travels with it, wherever the program goes."""

import importlib.machinery
import importlib.util
import re
import subprocess

import pytest
from machine import REPOSITORY

LICENCES = REPOSITORY / "packaging/licences"
PROGRAMS = ["pg_hugepages", "hugepage-sidecar"]


def script():
    """scripts/licences as a module."""
    loader = importlib.machinery.SourceFileLoader("licences", str(REPOSITORY / "scripts/licences"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("licences", loader))
    loader.exec_module(module)
    return module


def named(program: str) -> set[tuple[str, str]]:
    text = (LICENCES / f"{program}.copyright").read_text()
    return {tuple(crate.rsplit("-", 1)) for crate in re.findall(r"^Files: vendor/(\S+)/\*$", text, re.MULTILINE)}


def locked() -> set[tuple[str, str]]:
    return set(re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource', (REPOSITORY / "Cargo.lock").read_text()))


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_cargo_links_is_named(program):
    """Asked of cargo here, without the script."""
    words = ["--no-default-features", "--features", "pg18"] if program == "pg_hugepages" else []
    tree = subprocess.run(["cargo", "tree", "--locked", "--package", program, *words, "--edges", "normal,no-proc-macro",
                           "--prefix", "none", "--format", "{p}"], cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE).stdout
    crates = {tuple(crate) for crate in re.findall(r"^(\S+) v(\S+)$", tree, re.MULTILINE)}
    assert len(crates) > 40 and crates <= named(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_named_is_locked_and_has_its_texts(program):
    text = (LICENCES / f"{program}.copyright").read_text()
    assert named(program) <= locked()
    paragraphs = text.strip().split("\n\n")
    used = {name for part in paragraphs if part.startswith("Files:")
            for name in re.search(r"^License: (.*)$", part, re.MULTILINE).group(1).split(" and ")}
    texts = {re.match(r"License: (.*)", part).group(1): part for part in paragraphs if part.startswith("License:")}
    assert used == set(texts) and all(part.count("\n") > 5 for part in texts.values())
    assert all(re.search(r"^Copyright: .*[A-Za-z]", part, re.MULTILINE) for part in paragraphs if part.startswith("Files:"))


@pytest.mark.parametrize(("expression", "licences"), [
    ("MIT", ["MIT"]),
    ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", ["MIT"]),
    ("Unlicense/MIT", ["MIT"]),
    ("(MIT OR Apache-2.0) AND Unicode-3.0", ["MIT", "Unicode-3.0"]),
    ("Apache-2.0", ["Apache-2.0"]),
])
def test_of_alternatives_one_is_taken(expression, licences):
    assert script().chosen(expression) == licences


@pytest.mark.parametrize("expression", ["", "GPL-3.0-only", "MIT AND MPL-2.0", "MIT OR Zlib AND ISC"])
def test_an_unknown_licence_stops_it(expression):
    with pytest.raises(SystemExit):
        script().chosen(expression)


def test_the_sum_is_what_packages_say():
    sums = {program: script().spdx((LICENCES / f"{program}.copyright").read_text()) for program in PROGRAMS}
    assert f"\nLicense:  {sums['hugepage-sidecar']}\n" in (REPOSITORY / "packaging/rpm/hugepage-sidecar.spec").read_text()
    assert f"\nLicense:  {sums['pg_hugepages']}\n" in (REPOSITORY / "packaging/rpm/pg_hugepages.spec").read_text()
    assert f'image.licenses="{sums["pg_hugepages"]}"' in (REPOSITORY / "packaging/image/Dockerfile.in").read_text()
    # Those of what is linked: tests/scenarios/test_image.py.
    metadata = (REPOSITORY / "packaging/cloudnative-pg/metadata.hcl.in").read_text()
    assert set(re.findall(r'"(.*?)"', re.search(r"licenses +=(.*)", metadata).group(1))) <= set(sums["pg_hugepages"].split(" AND "))
    assert script().spdx("License: MIT~2 and Unicode-3.0\n\nLicense: PostgreSQL\n") == "PostgreSQL AND MIT AND Unicode-3.0"


@pytest.mark.parametrize(("file", "words"), [
    ("Makefile", "packaging/licences/$(EXTNAME).copyright '$(IMAGE_DIR)/licenses/$(EXTNAME)/copyright'"),
    ("scripts/tree/package", "cp packaging/licences/pg_hugepages.copyright debian/copyright"),
    ("scripts/tree/package", "cp packaging/licences/hugepage-sidecar.copyright debian/"),
    ("packaging/rpm/hugepage-sidecar.spec", "%license /usr/share/licenses/hugepage-sidecar/copyright"),
    ("packaging/rpm/pg_hugepages.spec", "%license /usr/share/licenses/%{name}/copyright"),
])
def test_packages_carry_it(file, words):
    """Whoever makes packages compares what is in them; this says so before."""
    assert words in (REPOSITORY / file).read_text()


def no_glibc(program) -> int:
    return subprocess.run([REPOSITORY / "scripts/no-glibc", program], stderr=subprocess.DEVNULL).returncode


def test_a_program_with_glibc_in_it_is_not_released(tmp_path):
    source = tmp_path / "own.c"
    source.write_text("int main(void) { return 0; }")
    for name, option in {"static": "-static", "dynamic": "-pie"}.items():
        subprocess.run(["gcc", option, "-o", tmp_path / name, source], check=True)
    (tmp_path / "empty").touch()
    assert no_glibc(tmp_path / "static") == 1
    assert no_glibc(tmp_path / "dynamic") == 0
    assert no_glibc(tmp_path / "empty") == no_glibc(tmp_path / "absent") == 2


@pytest.mark.parametrize("file", ["scripts/package.sh", "scripts/sidecar-packages.sh"])
def test_packages_ask_for_musl(file):
    text = (REPOSITORY / file).read_text()
    assert "$(release_target " in text and 'SIDECAR_TARGET="$target"' in text
