"""`./dev bench` beside extensions of other projects: one that works is measured, any other is a line with the reason."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install, StartFailed

import backends
import build
import peers

PRELOADED_ALONE = """
#include "postgres.h"
#include "fmgr.h"
#include "miscadmin.h"
PG_MODULE_MAGIC;
void _PG_init(void)
{
    if (!process_shared_preload_libraries_in_progress)
        ereport(ERROR, (errmsg("dummy_preload has to be preloaded")));
}
PG_FUNCTION_INFO_V1(dummy);
Datum dummy(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT64(1);
}
"""
IN_C = "CREATE FUNCTION {0}() RETURNS bigint LANGUAGE c AS '$libdir/dummy_preload', 'dummy'"
SCRIPTS = {
    # Before the one that is preloaded: each is tried beside those that work.
    "dummy_not_preloaded": IN_C.format("dummy_not_preloaded"),
    "dummy_right": "CREATE FUNCTION dummy_right() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
    "dummy_preload": IN_C.format("dummy_preload"),
    "dummy_no_library": "CREATE FUNCTION dummy_no_library() RETURNS bigint LANGUAGE c AS '$libdir/dummy_no_library', 'dummy'",
    "dummy_preload_nothing": "SELECT 1",
    "dummy_raises": "DO $$ BEGIN RAISE EXCEPTION 'not on this host'; END $$",
    "dummy_other_function": "SELECT 1",
    "dummy_later": "CREATE FUNCTION dummy_later() RETURNS bigint LANGUAGE plpgsql AS "
                   "$$ BEGIN ASSERT current_setting('shared_buffers') = '16MB', 'too large'; RETURN 1; END $$",
    "dummy_tired": "CREATE SEQUENCE calls; CREATE FUNCTION dummy_tired() RETURNS bigint LANGUAGE plpgsql AS "
                   "$$ BEGIN ASSERT nextval('calls') < 10, 'tired'; RETURN 1; END $$",
}
"""Extensions by name, each with its script. The last two fail in the measured server: at once, and after some calls."""

PRELOADED = ("dummy_preload", "dummy_preload_nothing")
DUMMIES = tuple(peers.Peer(name, f"SELECT count(*) FROM {name}()", preload=name in PRELOADED)
                for name in (*SCRIPTS, "dummy_absent"))


@pytest.fixture(scope="module")
def prefix() -> Iterator[Install]:
    """A private copy of the installation: PostgreSQL finds its files from where its programs lie."""
    install = Install.find()
    root = Path(tempfile.mkdtemp(prefix="pg_hugepages-prefix-"))
    try:
        root.chmod(0o755)
        bindir, library, share = (Path(f"{root}{install.ask(what)}") for what in ("bindir", "pkglibdir", "sharedir"))
        shutil.copytree(install.bindir, bindir)
        link_all(Path(install.ask("pkglibdir")), library)
        link_all(Path(install.ask("sharedir")), share)
        (share / "extension").unlink()
        link_all(Path(install.ask("sharedir"), "extension"), share / "extension")
        includes = Path(f"{root}{install.ask('includedir-server')}")
        includes.parent.mkdir(parents=True)
        includes.symlink_to(install.ask("includedir-server"))
        private = Install(bindir / "pg_config")
        assert Path(private.ask("sharedir")) == share and Path(private.ask("pkglibdir")) == library
        for name, script in SCRIPTS.items():
            (share / "extension" / f"{name}.control").write_text("default_version = '1'\n")
            (share / "extension" / f"{name}--1.sql").write_text(f"{script};\n")
        source = root / "dummy.c"
        source.write_text(PRELOADED_ALONE)
        build.compile_c("-fPIC", "-shared", f"-I{install.ask('includedir-server')}", "-o", library / "dummy_preload.so", source)
        yield private
    finally:
        shutil.rmtree(root)


def link_all(source: Path, directory: Path) -> None:
    """A directory with a link to each file of another."""
    directory.mkdir(parents=True)
    for file in source.iterdir():
        (directory / file.name).symlink_to(file)


@pytest.fixture
def dummies(monkeypatch, prefix) -> Install:
    """The dummies are the bench's peers, and nothing is installed for them."""
    monkeypatch.setenv("PG_CONFIG", str(prefix.pg_config))
    monkeypatch.setattr(peers, "PEERS", DUMMIES)
    monkeypatch.setattr(peers, "install_packages", lambda *packages: None)
    return prefix


def test_what_is_said_of_each(dummies):
    """Those that work, and of each other one the server's own words."""
    before = list(Cluster.roots)
    there, missing = peers.present(dummies)
    assert [peer.extension for peer in there] == ["dummy_right", "dummy_preload", "dummy_later", "dummy_tired"]
    reasons = {"dummy_not_preloaded": "dummy_preload has to be preloaded",
               "dummy_no_library": 'could not access file "$libdir/dummy_no_library"',
               "dummy_preload_nothing": 'could not access file "dummy_preload_nothing"',
               "dummy_raises": "not on this host",
               "dummy_other_function": "function dummy_other_function() does not exist",
               "dummy_absent": "not installed"}
    assert missing.keys() == reasons.keys()
    for name, words in reasons.items():
        assert words in missing[name] and "\n" not in missing[name], missing
    assert not any(root.exists() for root in Cluster.roots if root not in before)


def test_the_reason_of_a_failed_start():
    """The log has what ended earlier sessions, too."""
    log = "1 UTC [1] FATAL:  terminating connection\n2 UTC [2] FATAL:  no such library\n2 UTC [2] LOG:  shut down\n"
    assert peers.reason(StartFailed(log)) == "no such library"
    assert peers.reason(StartFailed("")) == "StartFailed"


def test_the_table(dummies, root):
    """Each peer has a row of times, or a line with the reason, also those that fail in the measured server alone."""
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        build.build(dummies, Path(work))
        results = list(backends.rows_of(Path(work), quick=True, sessions=(2,)))
    assert [result.get("skipped") for result in results] == [None, None]
    lines = backends.table(results).splitlines()
    for peer in DUMMIES:
        timed = [line for line in lines if line.split()[0] == peer.extension]
        named = [line for line in lines if line.startswith(f"{peer.extension}: not measured, ")]
        works = peer.extension in ("dummy_right", "dummy_preload")
        assert (len(timed), len(named)) == ((1, 0) if works else (0, 1)), lines
    assert max(map(len, lines)) <= 80


def test_a_cell_of_a_peer_that_failed_once():
    """A peer that failed in one server keeps its times in the others."""
    def result(sessions, missing, **times):
        return {"pages": "base", "sessions": sessions, "microseconds": 1.0, "of_bare": 1.0, "times": times, "missing": missing}
    table = backends.table([result(10, {}, other=5.0), result(500, {"other": "too many"})]).splitlines()
    assert [line.split() for line in table if "other" in line][1:] == [["other", "5.00", "-"], "other: not measured, too many".split()]


def test_real_ones(monkeypatch):
    """Whichever of the real peers are installed, each is told of once."""
    monkeypatch.setattr(peers, "install_packages", lambda *packages: None)
    install = Install.find()
    there, missing = peers.present(install)
    assert sorted([*(peer.extension for peer in there), *missing]) == sorted(peer.extension for peer in peers.PEERS)
    assert all(missing[peer.extension].startswith("not installed") for peer in peers.PEERS if not peer.is_installed(install))
