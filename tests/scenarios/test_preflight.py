"""What the next start would need, foretold while the server runs, beside what the kernel maps after a real one."""

import os
import re
import subprocess
from collections.abc import Iterator

import psycopg2
import pytest

from harness.cluster import Cluster, StartFailed, Unsupported
from harness.shared_server import BASE, SharedServer
from harness.smaps import BASE_PAGE, main_mapping
from harness.status import NOT_CHECKED, create_extension
from harness.strace import traced
from harness.units import GB, MB, pages

pytestmark = pytest.mark.own_servers

STATEMENTS = {"shared_preload_libraries": "pg_stat_statements"}

CONFIGURATIONS = [
    {"shared_buffers": "333MB"},
    # Gigantic pages here, where the many pages given back have left memory in one piece.
    {"huge_page_size": "1GB", "shared_buffers": "700MB", "max_connections": 400},
    {**STATEMENTS, "pg_stat_statements.max": 5000},
    {"shared_preload_libraries": "pg_stat_statements, pg_hugepages", "shared_buffers": "200MB"},
    {"huge_pages": True, "shared_buffers": "150MB"},
    {"wal_level": "minimal", "max_wal_senders": 0},
    {"cluster_name": "it's \"odd\" # name", "shared_buffers": "40MB"},
]
"""What reaches the server's program in different ways. How much memory a setting takes is the server's own arithmetic."""


@pytest.fixture
def server(shared_server) -> Iterator[Cluster]:
    """The shared server, in working order again after the test."""
    yield shared_server.server
    shared_server.restore()


def preflight(server: Cluster) -> dict:
    """The row of hugepage_preflight()."""
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    return row


def assert_exact(shared_server: SharedServer, server: Cluster, page_size: int, start=None) -> None:
    """The pages foretold are those mapped after a restart, with a pool of just these; with one less, base pages."""
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    needed = row["pages_needed"]
    assert (row["pages_guaranteed"], row["pages_missing"]) == (0, needed), row
    shared_server.pools[page_size].resize(needed)
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    expected = {"will_start": True, "lands_in": "hugetlb", "page_size": page_size, "pages_needed": needed,
                "pages_guaranteed": needed, "pages_missing": 0, "cause": None, "detail": NOT_CHECKED, "hint": None}
    assert row.items() >= expected.items(), row
    assert needed == pages(row["shared_memory"], page_size)
    server.stop()
    (start or server.start)()
    mapping = main_mapping(server.postmaster)
    assert (mapping.landed_in, mapping.page_size, mapping.length) == ("hugetlb", page_size, needed * page_size)


@pytest.mark.parametrize("settings", CONFIGURATIONS, ids=lambda settings: ",".join(map(str, settings.values())))
def test_pages_foretold_are_the_pages_mapped(shared_server, settings):
    server = shared_server.server
    if "pg_stat_statements" in settings.get("shared_preload_libraries", "") and not server.install.has_extension("pg_stat_statements"):
        raise Unsupported("preflight with pg_stat_statements was not tried: this PostgreSQL has no contrib modules")
    shared_server.empty_pools()
    if main_mapping(server.postmaster).landed_in == "hugetlb":
        # Out of its pages, so that the whole pool is known to be free.
        shared_server.configure()
        server.restart()
    shared_server.configure(**settings)
    size = GB if "huge_page_size" in settings else 2 * MB
    assert_exact(shared_server, server, size)


def test_one_page_less_is_foretold(shared_server, server):
    shared_server.configure(shared_buffers="128MB")
    needed = preflight(server)["pages_needed"]
    shared_server.pools[2 * MB].resize(needed - 1)
    row = preflight(server)
    assert (row["will_start"], row["lands_in"], row["page_size"], row["pages_missing"], row["cause"]) == (
        True, "base", BASE_PAGE, 1, "pool_too_small")
    size = row["shared_memory"]
    server.restart()
    mapping = main_mapping(server.postmaster)
    assert (mapping.landed_in, pages(mapping.length, 2 * MB)) == ("base", needed)
    server.needs_page_sizes()
    assert mapping.length == size


def test_altered_by_alter_system(shared_server, server):
    server.needs_page_sizes()
    server.sql("ALTER SYSTEM SET shared_buffers = '77MB'")
    server.sql("ALTER SYSTEM SET huge_page_size = '2MB'")
    assert_exact(shared_server, server, 2 * MB)


def test_ssl_with_its_certificate_in_the_data_directory(shared_server, server):
    if not re.search("--with-(openssl|ssl=)", server.install.ask("configure")):
        raise Unsupported("preflight with SSL was not tried: this PostgreSQL was built without it")
    subprocess.run(["openssl", "req", "-new", "-x509", "-nodes", "-subj", "/CN=test", "-days", "2", "-out",
                    server.data / "server.crt", "-keyout", server.data / "server.key"], check=True, capture_output=True)
    for name in ("server.crt", "server.key"):
        os.chown(server.data / name, server.data.stat().st_uid, server.data.stat().st_gid)
        (server.data / name).chmod(0o600)
    shared_server.configure(ssl=True, shared_buffers="50MB")
    assert_exact(shared_server, server, 2 * MB)


def test_include_dir(shared_server, server):
    parts = server.data / "conf.d"
    parts.mkdir(exist_ok=True)
    (parts / "10-first.conf").write_text("shared_buffers = 60MB\nmax_connections = 30\n")
    (parts / "20-second.conf").write_text("shared_buffers = 70MB # the last one counts\n")
    (parts / "30-off.conf.disabled").write_text("shared_buffers = 700MB\n")
    main = server.data / "postgresql.conf"
    before = main.read_text()
    try:
        main.write_text(before + "include_dir = 'conf.d'\n")
        assert_exact(shared_server, server, 2 * MB)
    finally:
        main.write_text(before)


@pytest.mark.parametrize("options", ["-c shared_buffers=90MB", "-B 12000 -N 33", "--shared-buffers=91MB --max-connections=44"])
def test_settings_of_the_command_line_stay(shared_server, server, options):
    """pg_ctl restart starts with the options of before, and they win over the files; here the files alone need less."""

    def start():
        server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o", options)

    server.stop()
    start()
    shared_server.configure(shared_buffers="50MB", max_worker_processes=20)
    assert_exact(shared_server, server, 2 * MB, start)


def test_split_configuration_directory(shared_server, reserved_host):
    """As Debian has it: configuration and data in two places."""
    server = reserved_host.cluster(**BASE)
    place = server.root / "etc" / "main"
    place.mkdir(parents=True)
    (place / "conf.d").mkdir()
    for name in ("postgresql.conf", "pg_hba.conf", "pg_ident.conf"):
        (server.data / name).rename(place / name)
    text = (place / "postgresql.conf").read_text().replace("harness.conf", f"{server.data}/harness.conf")
    names = "".join(f"{name} = '{value}'\n" for name, value in {
        "data_directory": server.data, "hba_file": place / "pg_hba.conf", "ident_file": place / "pg_ident.conf",
        "include_dir": "conf.d"}.items())
    (place / "postgresql.conf").write_text(text + names)
    for path in [server.root / "etc", place, *place.iterdir()]:
        os.chown(path, server.data.stat().st_uid, server.data.stat().st_gid)

    def start():
        server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file,
                       "-o", f"-c config_file={place}/postgresql.conf")

    start()
    create_extension(server)
    (place / "conf.d" / "size.conf").write_text("shared_buffers = 111MB\n")
    assert_exact(shared_server, server, 2 * MB, start)
    server.stop()
    shared_server.empty_pools()


# Without quotation marks, which majors put differently.
REFUSED = [
    ({"shared_preload_libraries": "nonesuch"}, "could not access file nonesuch"),
    ({"max_connections": "many"}, "invalid value for parameter max_connections"),
    ({"no_such_setting": 1}, "unrecognized configuration parameter no_such_setting"),
    ({"wal_level": "minimal", "max_wal_senders": 5}, "requires wal_level"),
    ({"huge_pages": True}, "could not map anonymous shared memory: Cannot allocate memory"),
    ({"huge_pages": True, "huge_page_size": "16MB"}, "could not map anonymous shared memory: Invalid argument"),
    ({"huge_pages": True, "shared_memory_type": "sysv"}, "huge pages not supported with the current"),
]


@pytest.mark.parametrize("settings,error", REFUSED, ids=[error.split("(")[0][:40] for _, error in REFUSED])
def test_what_does_not_start_is_foretold(shared_server, server, settings, error):
    shared_server.configure(**settings)
    row = preflight(server)
    assert row["will_start"] is False and row["lands_in"] is None, row
    assert error in row["detail"].replace('"', "")
    server.stop()
    server.log_file.write_text("")
    with pytest.raises(StartFailed) as failure:
        # Before the configuration is read, messages are in the environment's language.
        server.start(through=["env", "LC_ALL=C"])
    for line in row["detail"].splitlines():
        assert line.split(":  ", 1)[-1] in str(failure.value)


def test_unsupported_page_size_falls_back(shared_server, server):
    shared_server.configure(huge_page_size="16MB")
    row = preflight(server)
    assert (row["will_start"], row["lands_in"], row["cause"], row["pages_needed"]) == (
        True, "base", "page_size_unsupported", None)


def test_other_values_are_those_of_a_configuration(shared_server, server):
    server.needs_page_sizes()
    [row] = server.sql("SELECT * FROM hugepage_preflight('200MB', 300, '1GB')")
    shared_server.configure(shared_buffers="200MB", max_connections=300, huge_page_size="1GB")
    assert preflight(server) == row
    assert row["page_tables_base"] == pages(row["shared_memory"], BASE_PAGE) * 8 * 300
    assert row["page_tables_huge"] == 8 * 300


@pytest.mark.parametrize("arguments,message", [
    ("shared_buffers => '12'", "It must be a size such as 8GB, or a number of blocks of 8192 bytes, from 16 to 1073741823."),
    ("shared_buffers => '12XB'", "It must be a size such as 8GB"),
    ("shared_buffers => '8GB -c port=1'", "It must be a size such as 8GB"),
    ("shared_buffers => ''", "It must be a size such as 8GB"),
    ("shared_buffers => '-1'", "It must be a size such as 8GB"),
    ("shared_buffers => '9999999TB'", "It must be a size such as 8GB"),
    ("max_connections => 0", "It must be a number from 1 to 262143."),
    ("max_connections => 262144", "It must be a number from 1 to 262143."),
    ("huge_page_size => '12MB'", "This machine has huge pages of 2MB, 1GB."),
    ("huge_page_size => '0'", "This machine has huge pages of"),
])
def test_bad_arguments(shared_server, arguments, message):
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as error:
        shared_server.server.sql(f"SELECT * FROM hugepage_preflight({arguments})")
    assert arguments.split(" ")[0] in error.value.diag.message_primary
    assert message in error.value.diag.message_detail


def test_largest_values(shared_server):
    """What the server's own bounds allow is for the server to judge, the other settings counted."""
    server = shared_server.server
    [row] = server.sql("SELECT * FROM hugepage_preflight('1073741823', 262000)")
    assert row["will_start"] is False and row["shared_memory"] > 8192 * 1073741823
    assert "MemTotal + SwapTotal" in row["detail"]
    [row] = server.sql("SELECT * FROM hugepage_preflight(max_connections => 262143)")
    assert row["will_start"] is False and '"max_connections"' in row["detail"]


def test_how_often_it_runs_the_program(shared_server, root):
    """Once for the size and once for each setting, in one process after another; a busy machine changes nothing of that."""
    server = shared_server.server
    with traced(server.postmaster, "execve", follow=True) as trace:
        server.sql("SELECT * FROM hugepage_preflight()")
        # 18 has io_method, too.
        runs = 7 if server.install.major >= 18 else 6
        assert len(trace.lines(r'execve\("[^"]*/postgres"')) == runs, trace.lines("execve")
