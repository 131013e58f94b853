"""hugepage_fix(target): the text is run as it is, and the server lands in huge pages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import psycopg2
import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.kernel import meminfo
from harness.processes import CommandFailed, run
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import GB, MB

OPERATORS = ("cloudnativepg", "pgo", "zalando")
TARGETS = ("sysctl", "systemd", "grub", "postgresql", "ansible", "kubernetes", *OPERATORS)
# The parts of the operators' definitions that are used, each with its source.
CUSTOM_RESOURCES = Path(__file__).parents[1] / "harness" / "custom_resources"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pg_hugepages"


def fix(server: Cluster, target: str) -> str:
    return "".join(row["line"] + "\n" for row in server.sql("SELECT hugepage_fix(%s) AS line", target))


def needs(program: str) -> str:
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        pytest.skip(f"what hugepage_fix prints was not given to {program}: install it")
    return found


@pytest.fixture
def short(new_cluster, pool) -> tuple:
    """A server in base pages because there is no pool, and the pool."""
    borrowed = pool(2 * MB, 0)
    server = create_extension(new_cluster().start())
    [row] = server.sql("SELECT recommended_nr_hugepages AS pages, landed_in FROM hugepage_status")
    assert row["landed_in"] == "base"
    return server, borrowed, row["pages"]


def assert_lands(server: Cluster) -> None:
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"


def test_sysctl(short, tmp_path):
    server, borrowed, wanted = short
    file = tmp_path / "90-postgresql-hugepages.conf"
    file.write_text(fix(server, "sysctl"))
    run(needs("sysctl"), "-p", str(file))
    assert borrowed.persistent() == wanted
    assert_lands(server)


def service(text: str, tmp_path: Path) -> Path:
    unit = tmp_path / "postgresql-hugepages.service"
    unit.write_text(text)
    return unit


def exec_start(text: str) -> tuple[list[str], dict[str, str]]:
    """The command of a unit and its environment, unescaped as systemd.service(5) says."""
    joined = text.replace("\\\n", " ")
    lines = dict(line.split("=", 1) for line in joined.splitlines() if line.startswith("ExecStart="))
    environment = dict(line.removeprefix("Environment=").split("=", 1)
                       for line in joined.splitlines() if line.startswith("Environment="))
    program, options, _, script = lines["ExecStart"].split(" ", 3)
    assert script.startswith("'") and script.endswith("'")
    return [program, options, "-c", script[1:-1].replace("$$", "$")], environment


@pytest.mark.parametrize("page_size", [2 * MB, GB], ids=["2MB", "1GB"])
def test_systemd(new_cluster, pool, tmp_path, page_size):
    borrowed = pool(page_size, 0)
    server = create_extension(new_cluster(huge_page_size=f"{page_size // MB}MB").start())
    text = fix(server, "systemd")
    subprocess.run([needs("systemd-analyze"), "verify", service(text, tmp_path)], check=True, capture_output=True)
    command, environment = exec_start(text)
    assert command[:3] == ["/bin/sh", "-eu", "-c"]
    if page_size == GB:
        # Whether the kernel finds a gigabyte in one piece is its luck; both ends are loud.
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        given = borrowed.persistent() >= int(environment["PAGES"])
        assert (done.returncode == 0) == given, done
        return
    for _ in range(2):
        subprocess.run(command, env=environment, check=True, capture_output=True)
        assert borrowed.persistent() == int(environment["PAGES"])
    # Never fewer than there are.
    borrowed.resize(borrowed.persistent() + 7)
    before = borrowed.persistent()
    subprocess.run(command, env=environment, check=True)
    assert borrowed.persistent() == before
    assert_lands(server)


@pytest.mark.parametrize("nr,reason", [("/dev/null", "only 0 of"), ("free_hugepages", "Permission denied")],
                         ids=["nothing given", "refused"])
def test_systemd_fails_loudly(short, tmp_path, nr, reason):
    """A pool that takes the number and keeps none of it, and one that can't be written."""
    server, borrowed, _ = short
    before = borrowed.numbers()
    command, environment = exec_start(fix(server, "systemd"))
    fake = tmp_path / "pool"
    fake.mkdir()
    (fake / "nr_hugepages").symlink_to(borrowed.directory / nr)
    (fake / "surplus_hugepages").write_text("0\n")
    done = subprocess.run(command, env={**environment, "POOL": str(fake)}, capture_output=True, text=True)
    assert done.returncode != 0 and reason in done.stderr, done
    assert borrowed.numbers() == before


def test_grub(short, tmp_path):
    """grub-mkconfig reads the file as a shell does."""
    server, borrowed, wanted = short
    file = tmp_path / "postgresql-hugepages.cfg"
    file.write_text(fix(server, "grub"))
    line = run("sh", "-c", f"GRUB_CMDLINE_LINUX='quiet'; . {file}; echo \"$GRUB_CMDLINE_LINUX\"").strip()
    assert line == f"quiet hugepagesz=2M hugepages={wanted}"


def test_postgresql(new_cluster, pool):
    borrowed = pool(2 * MB, 200)
    server = create_extension(new_cluster(shared_memory_type="sysv", huge_page_size="16MB").start())
    for _ in range(3):
        text = fix(server, "postgresql")
        script = server.root / "fix.sql"
        script.write_text(text)
        server.command("psql", "-X", "-v", "ON_ERROR_STOP=1", "-h", server.root, "-U", "postgres", "-f", script, "postgres")
        server.conf(shared_memory_type=None, huge_page_size=None)
        server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"
    assert borrowed.numbers().available >= 0


@pytest.mark.any_major
def test_ansible(short, tmp_path):
    server, borrowed, wanted = short
    program = needs("ansible-playbook")
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(fix(server, "ansible"))
    file = tmp_path / "sysctl.conf"
    become = ["-e", "ansible_become=false", "-e", f"file={file}", "-e", "ansible_python_interpreter=/usr/bin/python3"]
    environment = {**os.environ, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "ANSIBLE_LOCALHOST_WARNING": "false"}
    command = [program, "-i", "localhost,", "-c", "local", *become, str(playbook)]
    run(program, "--syntax-check", "-i", "localhost,", str(playbook), env=environment)
    for changed in (2, 0):
        recap = dict(re.findall(r"(\w+)=(\d+)", run(*command, env=environment).rpartition("PLAY RECAP")[2]))
        assert (recap["changed"], recap["failed"]) == (str(changed), "0")
    assert file.read_text() == f"vm.nr_hugepages = {wanted}\n"
    assert borrowed.persistent() == wanted
    assert_lands(server)


@pytest.mark.any_major
def test_ansible_for_gigantic_pages(new_cluster, tmp_path):
    server = create_extension(new_cluster(huge_page_size="1GB").start())
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(fix(server, "ansible"))
    assert "/etc/tmpfiles.d/" in playbook.read_text() and "hugepages-1048576kB" in playbook.read_text()
    run(needs("ansible-playbook"), "--syntax-check", "-i", "localhost,", str(playbook),
        env={**os.environ, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"})


@pytest.fixture(scope="session")
def kubernetes_validate() -> list[str]:
    """The Python of an environment of its own, and there the validator that carries Kubernetes' own schemas. The first line of
    a program names the place where the environment was made, from where the cache may have moved."""
    place = CACHE / "kubernetes-validate"
    program = place / "bin" / "kubernetes-validate"
    if not program.exists():
        try:
            run("/usr/bin/python3", "-m", "venv", str(place))
            run(str(place / "bin" / "pip"), "install", "-q", "kubernetes-validate")
        except CommandFailed as error:
            pytest.fail(f"kubernetes-validate cannot be had: {error}")
    return [str(place / "bin" / "python"), str(program)]


@pytest.mark.any_major
@pytest.mark.parametrize("page_size,resource", [("2MB", "hugepages-2Mi"), ("1GB", "hugepages-1Gi")])
def test_kubernetes(new_cluster, kubernetes_validate, tmp_path, page_size, resource):
    server = create_extension(new_cluster(huge_page_size=page_size).start())
    manifest = tmp_path / "pod.yml"
    manifest.write_text(fix(server, "kubernetes"))
    run(*kubernetes_validate, "--strict", str(manifest))
    [row] = server.sql("SELECT pages_needed AS pages FROM hugepage_status")
    size = 2 if page_size == "2MB" else 1024
    assert manifest.read_text().count(f"{resource}: {row['pages'] * size}Mi") == 2
    broken = tmp_path / "broken.yml"
    broken.write_text(manifest.read_text().replace("containers:", "container:"))
    with pytest.raises(CommandFailed):
        run(*kubernetes_validate, "--strict", str(broken))


VALIDATE = """
import json, sys
import jsonschema, yaml
jsonschema.validate(yaml.safe_load(open(sys.argv[2])), json.load(open(sys.argv[1])))
"""


@pytest.mark.any_major
@pytest.mark.parametrize("page_size,resource", [("2MB", "hugepages-2Mi"), ("1GB", "hugepages-1Gi")])
def test_operators(new_cluster, kubernetes_validate, tmp_path, page_size, resource):
    """The manifest fits the operator's definition, and lint finds that its pages hold this server's shared memory."""
    server = create_extension(new_cluster(huge_page_size=page_size).start())
    [row] = server.sql("SELECT pages_needed AS pages FROM hugepage_status")
    validate = [kubernetes_validate[0], "-c", VALIDATE]
    for target in OPERATORS:
        schema, manifest = str(CUSTOM_RESOURCES / f"{target}.json"), tmp_path / f"{target}.yml"
        manifest.write_text(fix(server, target))
        run(*validate, schema, str(manifest))
        catalog = tmp_path / "catalog.yml"
        major = server.install.major
        catalog.write_text("kind: ClusterImageCatalog\nmetadata: {name: postgresql}\nspec:\n  images: "
                           f"[{{major: {major}, image: 'cloudnative-pg/postgresql:{major}'}}]\n")
        lint = sidecar.run("lint", "--format", "json", str(manifest), str(catalog), "--postgres", str(server.install.bindir))
        [judged] = lint.json()["postgresql"]
        assert judged["form"] == target and judged["verdict"] in ("ok", "notice", "unknown"), judged
        if target == "zalando" or (target == "pgo" and judged["pages_limit"] is None):
            # Its image sizes itself; the operator is known up to some major.
            assert judged["verdict"] == "unknown"
        else:
            assert judged["pages_limit"] >= row["pages"] and judged["outlook"] in ("hugetlb", "unknown"), judged
        assert manifest.read_text().count(f"{resource}:") == 2
        for misspelt in ("resources:", "limits:", "version:", "major:", "postgresVersion:"):
            if misspelt not in manifest.read_text():
                continue
            broken = tmp_path / "broken.yml"
            broken.write_text(manifest.read_text().replace(misspelt, f"x{misspelt}"))
            with pytest.raises(CommandFailed):
                run(*validate, schema, str(broken))


def test_unknown_target(new_cluster):
    server = create_extension(new_cluster().start())
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as error:
        fix(server, "windows")
    assert 'argument "target": "windows"' in error.value.diag.message_primary
    assert error.value.diag.message_detail == f"It must be one of: {', '.join(TARGETS)}."
    assert server.sql("SELECT hugepage_fix(NULL)") == []


def test_what_does_not_fit_has_no_text(new_cluster, pool):
    pool(2 * MB, 0)
    server = create_extension(new_cluster(shared_buffers=f"{meminfo()['MemTotal'] * 96 // 100 // MB}MB").start())
    for target in TARGETS:
        if target == "postgresql":
            assert "ALTER SYSTEM SET shared_buffers = '" in fix(server, target)
            continue
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as error:
            fix(server, target)
        assert "that this host can hold" in error.value.diag.message_detail
        assert error.value.diag.message_hint.startswith("Reduce shared_buffers to at most ")


def test_sysctl_knows_the_default_size_alone(new_cluster):
    server = create_extension(new_cluster(huge_page_size="1GB").start())
    with pytest.raises(psycopg2.errors.FeatureNotSupported) as error:
        fix(server, "sysctl")
    assert "systemd" in error.value.diag.message_hint
