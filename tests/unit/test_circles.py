"""No files of one crate name each other in a circle."""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from machine import REPOSITORY

SOURCES = [REPOSITORY / "src", *sorted(REPOSITORY.glob("crates/*/src"))]
NO_CODE = re.compile(r'//.*|"(?:\\.|[^"\\])*"|pub\([^)]*\)')
USE = re.compile(r"^ *(pub )?use ([\w:{},*\s]+);|\b((?:crate|self|super)(?:::\w+)+)", re.MULTILINE)
"""A use with its tree, or a path elsewhere."""


def leaves(tree: str) -> Iterator[str]:
    """The paths of a tree: a::{b, c::d as e} has a::b and a::c::d."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield re.sub(r" as \w+$|::\*$|::self$", "", head)
        return
    depth, part = 0, ""
    for sign in rest[:rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign != "," or depth:
            part += sign
            continue
        if part.strip():
            yield from leaves(head + part.strip())
        part = ""


class Crate:
    """The files of a crate by their modules, the paths that each names, and those that it gives another place by `pub use`."""

    def __init__(self, top: Path) -> None:
        self.top, self.named, self.exported = top, {}, {}
        self.files = {self.module(path): path for path in top.rglob("*.rs")}
        for module, path in self.files.items():
            text = NO_CODE.sub("", path.read_text().split("#[cfg(test)]\nmod ")[0])
            found = [(public, leaf) for public, tree, other in USE.findall(text) for leaf in leaves(tree or other)]
            self.named[module] = [leaf.split("::") for public, leaf in found if not public]
            self.exported[module] = {leaf.split("::")[-1]: leaf.split("::") for public, leaf in found if public}

    def module(self, path: Path) -> tuple[str, ...]:
        names = path.relative_to(self.top).with_suffix("").parts
        return names[:-1] if names[-1] in ("mod", "lib", "main") else names

    def find(self, module: tuple[str, ...], names: list[str]) -> tuple[str, ...] | None:
        """The module that a path leads to; None outside of the crate."""
        at = module if names[0] in ("self", "super") or (*module, names[0]) in self.files else ()
        if names[0] not in ("crate", "self", "super") and (*at, names[0]) not in self.files:
            return None
        for position, name in enumerate(names):
            if name == "super":
                at = at[:-1]
            elif name in ("crate", "self") or (*at, name) in self.files:
                at = at if name in ("crate", "self") else (*at, name)
            else:
                exported = self.exported[at].get(name)
                return (exported and exported != names[position:] and self.find(at, exported)) or at
        return at

    def arrows(self) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
        """Which modules each names. A mod.rs that puts together its own parts has no arrow to them: they may name what the whole shares."""
        arrows = {}
        for module, paths in self.named.items():
            found = {self.find(module, path) for path in paths} - {None, module}
            whole = self.files[module].stem in ("mod", "lib", "main")
            arrows[module] = {other for other in found if not (whole and other[:len(module)] == module)}
        return arrows


@pytest.mark.parametrize("top", SOURCES, ids=lambda top: top.parent.name)
def test_no_circle_of_files(top):
    list(TopologicalSorter(Crate(top).arrows()).static_order())


def test_the_paths_are_found():
    assert sum(map(len, Crate(REPOSITORY / "crates/hugepage-assess/src").arrows().values())) > 100


def test_circles_and_reexports_are_seen(tmp_path):
    for path, text in {
        "lib.rs": "pub mod a;\npub use a::one::One;\n",
        "a/mod.rs": "//! use crate::nothing;\nmod one;\nmod two;\npub use one::One;\n",
        "a/one.rs": 'pub struct One;\nfn f() -> super::two::Two { "crate::a::none"; super::two::Two }\n',
        "a/two.rs": "use crate::a::{One, other::{self}};\npub(in crate::a) struct Two<'a>(&'a One);\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    crate = Crate(tmp_path)
    # `other` is no module, so the name could be an item of a/mod.rs.
    assert crate.arrows() == {(): set(), ("a",): set(), ("a", "one"): {("a", "two")}, ("a", "two"): {("a",), ("a", "one")}}
    with pytest.raises(CycleError):
        list(TopologicalSorter(crate.arrows()).static_order())
