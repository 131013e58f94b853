"""What scripts/prose takes for a sentence, and for a dead link."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
LONG = "Word" + 40 * " word"
FENCED = f"```\n{LONG}.\n```"


def complaints(page: Path, text: str) -> str:
    """What it prints about a page."""
    page.write_text(text)
    return subprocess.run(["scripts/prose", page], cwd=SOURCES, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def page() -> Iterator[Path]:
    path = SOURCES / "docs/page-of-a-test.md"
    yield path
    path.unlink()


@pytest.mark.parametrize("text,words", [
    (f"{LONG}.", 41), (f"- {LONG}.", 41), (f"1. Short.\n   {LONG}.", 41), (f"Short. {LONG}\nand more.", 43),
    (f"`{LONG}` is code.", 0), (FENCED, 0), (f"| {LONG} |", 0), (f"Text:\n\n    {LONG}", 0), (f"- Text:\n\n      {LONG}", 0),
    (f"1. Text:\n   - more\n\n   Run:\n\n       {LONG}", 0),
    (f"<!-- lab: by a program -->\n{LONG}\n<!-- end of lab -->", 0), (f"{LONG[:-5]}. {LONG[:-5]}.", 0),
])
def test_sentences(page: Path, text: str, words: int) -> None:
    assert (f"{words} words" in complaints(page, text)) if words else (complaints(page, text) == "")


@pytest.mark.parametrize("target,dead", [
    ("terms.md", ""), ("terms.md#terms", ""), ("https://example.org", ""), ("advisor.md#hugepage_preflight", ""),
    ("nowhere.md", "no such file"), ("terms.md#nowhere", "no such title"), ("../README.md", "not in the book"),
])
def test_links(page: Path, target: str, dead: str) -> None:
    assert dead in complaints(page, f"See [this]({target}).") and (dead or complaints(page, f"See [this]({target}).") == "")
