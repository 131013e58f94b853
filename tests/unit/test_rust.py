"""A machine without a Rust of the needed version: what ./dev installs for itself, and what stays as it is."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from machine import REPOSITORY, Machine, Outcome

RUST = subprocess.run([REPOSITORY / "scripts/install-rust", "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
INSTALLS = """mkdir -p "$RUSTUP_HOME/toolchains/stable/bin" "$CARGO_HOME/bin"
printf '#!/bin/sh\\necho rustc 1.98.0\\n' >"$RUSTUP_HOME/toolchains/stable/bin/rustc"
printf '#!/bin/sh\\n' >"$RUSTUP_HOME/toolchains/stable/bin/cargo"
chmod +x "$RUSTUP_HOME"/toolchains/stable/bin/*
"""
RUSTUP_INIT = f"""#!/bin/sh
echo "${{0##*/}} $*" >>"$SYSTEM/rustup.log"
{INSTALLS}"""
RUSTUP = f"""#!/bin/sh
echo "${{0##*/}} $*" >>"$SYSTEM/rustup.log"
[ "$1" = toolchain ] || exit 0
{INSTALLS}"""
PROXY = """#!/bin/sh
mkdir -p "${RUSTUP_HOME:-$HOME/.rustup}"
echo 'error: rustup could not choose a version' >&2
exit 1
"""
TO_TYPE = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
DEBIANS = ["rustc", "cargo", "rustfmt", "rust-clippy"]


class Server:
    """Serves a stand-in for rustup-init; `answers` replaces the next answers: a status, or other content."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.answers: list[int | bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                answer = outer.answers.pop(0) if outer.answers else RUSTUP_INIT.encode()
                self.send_response(answer if isinstance(answer, int) else 200)
                self.end_headers()
                if isinstance(answer, bytes):
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def machine(tmp_path: Path, server: Server) -> Machine:
    """Without Rust; a PostgreSQL is complete."""
    machine = Machine(tmp_path)
    machine.has("postgresql-15", "postgresql-server-dev-15")
    machine.no_rust()
    machine.variables["RUSTUP_UPDATE_ROOT"] = f"http://127.0.0.1:{server.http.server_port}/rustup"
    machine.variables["RUSTUP_INIT_SHA256"] = hashlib.sha256(RUSTUP_INIT.encode()).hexdigest()
    return machine


def runs(machine: Machine) -> list[str]:
    """Of rustup and rustup-init."""
    log = machine.system / "rustup.log"
    return log.read_text().splitlines() if log.exists() else []


def assert_own(machine: Machine, outcome: Outcome) -> None:
    """One of ./dev's own is used, and nothing is in the user's home but the cache."""
    assert (outcome.status, outcome.rust) == (0, "1.98.0"), outcome.output
    assert os.listdir(machine.home) == [".cache"]


@pytest.mark.parametrize("who", ["root", "sudo", "neither"])
def test_rustup_init_installs_one_into_the_cache(machine, server, who):
    if who != "root":
        machine.user(sudo=who == "sudo")
    outcome = machine.dev("build")
    assert_own(machine, outcome)
    assert outcome.output.splitlines()[0] == "Rust 1.95 or newer is needed, and none is here: ./dev installs one for itself."
    assert server.requests == [f"/rustup/archive/1.29.0/{platform.machine()}-unknown-linux-gnu/rustup-init"]
    assert runs(machine) == [f"rustup-init -y --no-modify-path --profile minimal --component rustfmt,clippy --default-toolchain {RUST}"]
    assert outcome.installed == []


def test_the_next_run_asks_no_network(machine, server):
    machine.dev("build")
    server.stop()
    apt_get = machine.dev("build").apt_get
    outcome = machine.dev("build")
    assert_own(machine, outcome)
    assert outcome.apt_get == apt_get and "installs one" not in outcome.output and len(runs(machine)) == 1


def test_one_that_was_damaged_is_installed_again(machine):
    machine.dev("build")
    (machine.home / ".cache/pg_hugepages/rust/rustup/toolchains/stable/bin/cargo").unlink()
    assert_own(machine, machine.dev("build"))
    assert len(runs(machine)) == 2


@pytest.mark.parametrize("who", ["root", "sudo", "neither"])
def test_a_damaged_download_is_not_run(machine, server, who):
    if who != "root":
        machine.user(sudo=who == "sudo")
    server.answers = [b"#!/bin/sh\ntouch $HOME/ran\n"] * 3
    outcome = machine.dev("build")
    assert (outcome.status, outcome.compiled_for) == (1, None), outcome.output
    assert "SHA-256" in outcome.output and outcome.output.endswith(f"\n\n    {TO_TYPE}\n\n")
    assert runs(machine) == [] and os.listdir(machine.home) == [".cache"] and len(server.requests) == 2


def test_without_network_a_line_says_what_to_type(machine, server):
    server.stop()
    outcome = machine.dev("build")
    assert (outcome.status, outcome.compiled_for) == (1, None), outcome.output
    assert "Rust could not be downloaded" in outcome.output and outcome.output.endswith(f"\n\n    {TO_TYPE}\n\n")


def test_only_the_known_rustup_init_is_run(machine, server):
    machine.variables["RUSTUP_INIT_SHA256"] = ""
    outcome = machine.dev("build")
    assert outcome.status == 1 and "SHA-256" in outcome.output and runs(machine) == []


@pytest.mark.parametrize("answer", [503, RUSTUP_INIT.encode()[:-20]], ids=["refused", "cut short"])
def test_a_second_attempt_is_made(machine, server, answer):
    server.answers = [answer]
    assert_own(machine, machine.dev("build"))
    assert len(server.requests) == 2 and len(runs(machine)) == 1


def test_an_old_rust_stays_and_ours_is_used_beside_it(machine, server):
    machine.rust("1.63.0", machine.programs)
    machine.apt_offers("rustc 1.97.1+dfsg1-1", "cargo 1.97.1+dfsg1-1", "rustup 1.27.1-8")
    outcome = machine.dev("build")
    assert_own(machine, outcome)
    assert "Rust 1.95 or newer is needed, and 1.63.0 is here: ./dev installs one for itself." in outcome.output
    assert outcome.installed == [] and "1.63.0" in (machine.programs / "rustc").read_text()


def test_an_old_rust_on_the_path_does_not_hide_a_new_one_in_the_home(machine, server):
    machine.rust("1.63.0", machine.programs)
    machine.rust("1.97.0", machine.home / ".cargo/bin")
    outcome = machine.dev("build")
    assert (outcome.status, outcome.rust, server.requests) == (0, "1.97.0", []), outcome.output


def test_a_rustup_without_toolchain_fetches_one_into_the_cache(machine, server):
    machine.program("rustup", RUSTUP)
    for name in ("rustc", "cargo"):
        machine.program(name, PROXY)
    assert_own(machine, machine.dev("build"))
    assert server.requests == [] and runs(machine)[0].startswith(f"rustup toolchain install {RUST} --profile minimal ")


def test_a_rustup_that_fails_is_followed_by_rustup_init(machine, server):
    machine.program("rustup", "#!/bin/sh\nexit 1\n")
    assert_own(machine, machine.dev("build"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("sudo", [False, True], ids=["root", "sudo"])
def test_debian_s_own_is_installed_where_it_is_new_enough(machine, server, sudo):
    if sudo:
        machine.user(sudo=True)
    machine.apt_offers("rustc 1.97.1+dfsg1-1", "cargo 1.97.1+dfsg1-1", "rustup 1.27.1-8")
    machine.rust("1.97.1", machine.system / "packages/cargo/usr/bin")
    outcome = machine.dev("build")
    assert (outcome.status, outcome.rust, outcome.installed) == (0, "1.97.1", DEBIANS), outcome.output
    assert server.requests == []


@pytest.mark.parametrize("cargo", ["0.66.0+ds1-1", "1.85.1+dfsg1-1+deb13u1"])
def test_debian_s_rustup_is_installed_where_its_rust_is_too_old(machine, server, cargo):
    machine.apt_offers("rustc 1.97.1+dfsg1-1", f"cargo {cargo}", "rustup 1.27.1-3+b1")
    for name, text in {"rustup": RUSTUP, "rustc": PROXY, "cargo": PROXY}.items():
        machine._executable(machine.system / f"packages/rustup/usr/bin/{name}", text)
    outcome = machine.dev("build")
    assert_own(machine, outcome)
    assert (outcome.installed, server.requests) == (["rustup"], [])


def test_what_the_download_needs_is_installed(machine):
    machine.lacks("rustc", "cargo", "ca-certificates")
    outcome = machine.dev("build")
    assert_own(machine, outcome)
    assert outcome.installed == ["ca-certificates"]
    assert len([call for call in outcome.apt_get if call.endswith("update")]) == 1


@pytest.mark.parametrize(("names", "message"), [
    ([".cache", ".npm"], ""),
    ([".cache", ".cargo"], "it changed the home: .cargo\n"),
    ([".profile"], "it changed the home: .profile\n"),
])
def test_what_rustup_would_leave_in_the_home_fails_the_state_no_rust(tmp_path, names, message):
    for name in names:
        (tmp_path / name).mkdir()
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", f". scripts/root.sh; . scripts/fresh-rust.sh; rust_misses {tmp_path}"],
                          cwd=REPOSITORY, text=True, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (message, "")


@pytest.mark.parametrize(("needs", "package"), [("build", "rustc"), ("build trees", "rustup")])
def test_debian_s_rust_is_not_installed_for_trees(tmp_path, needs, package):
    stubs = "candidate() { echo 1.97.1; }; has_candidate() { true; }; command() { false; }"
    done = subprocess.run(["bash", "-c", f". scripts/rust.sh; {stubs}; rust_packages 1.95 {needs}"], cwd=REPOSITORY, text=True,
                          capture_output=True, env={"PATH": os.environ["PATH"], "CACHE": str(tmp_path)})
    assert [name for name in done.stdout.split() if name.startswith("rustc") or name == "rustup"] == [package]


@pytest.mark.parametrize(("sysroot", "needs", "does"), [("/usr", "build", True), ("/usr", "build trees", False), ("/opt/rust", "build trees", True)])
def test_debian_s_rust_does_not_do_for_trees_of_another_debian(tmp_path, sysroot, needs, does):
    (tmp_path / "cargo").write_text("#!/bin/sh\n")
    (tmp_path / "rustc").write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo rustc 1.97.1 || echo {sysroot}\n")
    for name in ("cargo", "rustc"):
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["bash", "-c", f'. scripts/rust.sh; rust_does "$PATH" 1.95 {needs}'], cwd=REPOSITORY,
                          env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CACHE": str(tmp_path)})
    assert (done.returncode == 0) is does
