"""A fake machine for ./dev: a /usr of a few files, packages that are trees of files, and programs that answer by them.

Only what ./dev asks of a system is fake: apt-get, apt-cache, dpkg-query, sudo, id, pg_config, clang, make, Rust. The
scripts under test run unchanged. `make` notes that it was called: nothing is compiled.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
REAL_PROGRAMS = """awk basename bash cat chmod cp cut date dirname env grep head id ls mkdir paste printf python3 readlink rm rmdir sed
sh sleep sort stty tail tee touch tr true uname wc""".split()
OFFERED = ["15"]
SERVER, DEVELOPMENT, CLIENT = "postgresql", "postgresql-server-dev", "postgresql-client"

DPKG_QUERY = """#!/bin/sh
for package; do :; done
case $package in
    postgresql-[0-9]*|postgresql-server-dev-*) grep -qx "$package" "$SYSTEM/installed" ;;
    *) ! grep -qx "$package" "$SYSTEM/absent" ;;
esac || exit 1
echo installed
"""

# As verbose as where many archives are known, in the user's language, and unhappy if its output is not read to the end.
APT_CACHE = """#!/bin/sh
language=${LC_ALL:-$LANG}
case $1 in
    policy)
        candidate=$(awk -v name="$2" '$1 == name { found = $2 ? $2 : "1.0" } END { print found ? found : "(none)" }' "$SYSTEM/offered")
        case $language in de*) word=Installationskandidat: ;; *) word=Candidate: ;; esac
        printf '%s:\\n  Installed: (none)\\n  %s %s\\n' "$2" "$word" "$candidate"
        awk 'BEGIN { for (i = 0; i < 2000; i++) print "        500 https://deb.example.org/debian stable/main" }' || exit 141
        ;;
    depends)
        case $language in de*) word='Hängt ab von' ;; *) word=Depends ;; esac
        sed -n "s/^postgresql-\\([0-9]*\\)\\$/  $word: postgresql-\\1/p" "$SYSTEM/distribution"
        ;;
esac
"""

APT_GET = """#!/bin/sh
[ "$1" != indextargets ] || exit 0
echo "$*" >>"$SYSTEM/apt-get.log"
for word; do
    case $word in -*|DPkg*|install|update) continue ;; esac
    cp -a "$SYSTEM/packages/$word/." "$SYSTEM/" 2>/dev/null
    echo "$word" >>"$SYSTEM/installed"
done
"""

CLANG = """#!/bin/sh
directories=$SYSTEM/usr/include headers=
find_header() {
    for directory in $directories; do
        [ ! -f "$directory/$1" ] || { echo "$directory/$1" && return; }
    done
    echo "<stdin>:1:10: fatal error: '$1' file not found" >&2
    return 1
}
included() { sed -n 's/^#include [<"]\\(.*\\)[>"]/\\1/p' "$@"; }
while [ $# -gt 0 ]; do
    case $1 in
        -print-resource-dir) echo "$SYSTEM/usr/lib/llvm-14/lib/clang/14.0.6" && exit ;;
        -dumpversion) echo 14.0.6 && exit ;;
        -I*) directories="${1#-I} $directories" ;;
        -include) headers="$headers $2" && shift ;;
    esac
    shift
done
for header in $headers $(included); do
    path=$(find_header "$header") || exit
    for inner in $(included "$path"); do find_header "$inner" >/dev/null || exit; done
done
"""

PG_CONFIG = """#!/bin/sh
case $1 in
    --version) echo "PostgreSQL {major}.1" ;;
    --bindir) echo "{prefix}/lib/postgresql/{major}/bin" ;;
    --pgxs) echo "{prefix}/lib/postgresql/{major}/lib/pgxs/src/makefiles/pgxs.mk" ;;
    --includedir-server) echo "{prefix}/include/postgresql/{major}/server" ;;
    --cppflags) echo "-D_GNU_SOURCE" ;;
    *) echo "{prefix}/share" ;;
esac
"""

# As Debian's: that of the newest major with programs, else libpq-dev's own.
PG_CONFIG_OF_PATH = """#!/bin/sh
newest=$(ls "$SYSTEM"/usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -V | tail -n 1)
exec "${newest:-$SYSTEM/libpq-dev/bin/pg_config}" "$@"
"""


@dataclass
class Outcome:
    """What ./dev did: its exit status, what it printed, the packages that it installed, and what it compiled for by which Rust."""

    status: int
    output: str
    installed: list[str]
    compiled_for: str | None
    rust: str | None
    apt_get: list[str]


class Machine:
    """Debian with Rust and all that compiling needs, without PostgreSQL. `system` stands for its root directory."""

    def __init__(self, directory: Path) -> None:
        self.system = directory / "system"
        self.programs = directory / "bin"
        self.home = directory / "home"
        for made in (self.system, self.programs, self.home):
            made.mkdir()
        self.variables: dict[str, str] = {}
        for name in REAL_PROGRAMS:
            real = shutil.which(name)
            if real:
                (self.programs / name).symlink_to(real)
        self.apt_offers("chromium", "chromium-driver")
        self.apt_offers(*(f"{kind}-{major}" for kind in (SERVER, DEVELOPMENT) for major in OFFERED))
        self._write("absent", "")
        self._write("installed", "")
        self._write("distribution", "postgresql-15\n")
        for name, text in {"dpkg-query": DPKG_QUERY, "apt-cache": APT_CACHE, "apt-get": APT_GET, "clang": CLANG}.items():
            self.program(name, text)
        self.program("make", '#!/bin/sh\necho "$*" >>"$SYSTEM/make.log"\nrustc --version | cut -d" " -f2 >"$SYSTEM/rust.log"\n')
        self.program("cc", "#!/bin/sh\n")
        self.program("systemctl", "#!/bin/sh\n")
        self.rust("1.97.0", self.programs)
        self.root()
        for header in ("stdio.h", "unicode/ucol.h"):
            self.file(f"usr/include/{header}")
        self.file("usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h")
        self.file("usr/lib/llvm-14/lib/libclang-14.so.1")
        for major in (14, 15, 16, 17, 18):
            self._package(major)

    def _package(self, major: int) -> None:
        client = f"usr/lib/postgresql/{major}"
        for kind in (SERVER, DEVELOPMENT, CLIENT):
            tree = f"packages/{kind}-{major}"
            self._pg_config(self.system / tree / client / "bin/pg_config", self.system / "usr", major)
            self.file(f"{tree}/{client}/lib/pgxs/src/makefiles/pgxs.mk")
        self._postgres(self.system / f"packages/{SERVER}-{major}/{client}/bin/postgres", major)
        self._headers(f"packages/{DEVELOPMENT}-{major}/usr/include/postgresql/{major}/server", major)

    def _headers(self, directory: str, major: int) -> None:
        self.file(f"{directory}/pg_config.h", f'#define PG_MAJORVERSION "{major}"\n#define USE_ICU 1\n')
        self.file(f"{directory}/postgres.h", "#include <stdio.h>\n")
        self.file(f"{directory}/utils/pg_locale.h", "#include <unicode/ucol.h>\n")
        self.file(f"{directory}/postmaster/postmaster.h")

    def _pg_config(self, path: Path, prefix: Path, major: int) -> None:
        self._executable(path, PG_CONFIG.format(major=major, prefix=prefix))

    def _postgres(self, path: Path, major: int) -> None:
        self._executable(path, f"#!/bin/sh\necho 'postgres (PostgreSQL) {major}.1 (Debian)'\n")

    def _executable(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def _write(self, name: str, text: str) -> None:
        (self.system / name).write_text(text)

    def file(self, name: str, text: str = "") -> None:
        """A file of the system."""
        path = self.system / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def program(self, name: str, text: str | None) -> None:
        """A program on the PATH; None: there is none of that name."""
        self._executable(self.programs / name, text or "")
        if text is None:
            (self.programs / name).unlink()

    def rust(self, version: str, directory: Path) -> None:
        """A Rust of that version there."""
        self._executable(directory / "rustc", f"#!/bin/sh\necho 'rustc {version} (of no machine)'\n")
        self._executable(directory / "cargo", "#!/bin/sh\n")

    def no_rust(self) -> None:
        """None on the PATH, none installed by dpkg; apt has what Debian 12 has."""
        for name in ("rustc", "cargo"):
            self.program(name, None)
        self.lacks("rustc", "cargo", "rustfmt", "rust-clippy", "rustup")
        self.apt_offers("rustc 1.63.0+dfsg1-2", "cargo 0.66.0+ds1-1")

    def apt_offers(self, *packages: str) -> None:
        """What apt knows, nothing else; each perhaps with its version."""
        offered = self.system / "offered"
        offered.write_text((offered.read_text() if offered.exists() else "") + "".join(f"{name}\n" for name in packages))

    def apt_offers_no(self, *packages: str) -> None:
        """Takes packages from what apt knows."""
        offered = (self.system / "offered").read_text().splitlines()
        self._write("offered", "".join(f"{name}\n" for name in offered if name not in packages))

    def distribution(self, major: int) -> None:
        """The major that the package postgresql depends on."""
        self._write("distribution", f"postgresql-{major}\n")

    def has(self, *packages: str) -> None:
        """Installs packages of PostgreSQL."""
        for package in packages:
            shutil.copytree(self.system / "packages" / package, self.system, dirs_exist_ok=True)
            with open(self.system / "installed", "a") as installed:
                installed.write(f"{package}\n")

    def has_libpq_dev(self, major: int) -> None:
        """The pg_config on the PATH, of that major where no programs of a server are."""
        self._pg_config(self.system / "libpq-dev/bin/pg_config", self.system / "usr", major)
        self.program("pg_config", PG_CONFIG_OF_PATH)

    def has_built(self, major: int, headers: int | None) -> None:
        """A PostgreSQL made from source below /opt, with headers of a major or none; PG_CONFIG names it."""
        prefix = self.system / "opt"
        programs = prefix / f"lib/postgresql/{major}"
        self._pg_config(programs / "bin/pg_config", prefix, major)
        self._postgres(programs / "bin/postgres", major)
        self.file(f"opt/lib/postgresql/{major}/lib/pgxs/src/makefiles/pgxs.mk")
        if headers:
            self._headers(f"opt/include/postgresql/{major}/server", headers)
        self.variables["PG_CONFIG"] = str(programs / "bin/pg_config")

    def lacks(self, *packages: str) -> None:
        """Says of packages that they are not installed."""
        self._write("absent", "".join(f"{name}\n" for name in packages))

    def lacks_file(self, name: str) -> None:
        """Removes a file of the system."""
        (self.system / name).unlink()

    def root(self) -> None:
        """./dev runs as root."""
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("sudo", None)

    def user(self, sudo: bool) -> None:
        """./dev runs as a user, with or without the right to sudo."""
        self.program("id", "#!/bin/sh\necho 1000\n")
        self.program("sudo", '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' if sudo else "#!/bin/sh\nexit 1\n")

    def no_debian(self) -> None:
        """Takes away all of apt."""
        for name in ("dpkg-query", "apt-get", "apt-cache"):
            self.program(name, None)

    def dev(self, *words: str) -> Outcome:
        """Runs ./dev."""
        environment = {"PATH": f"{self.programs}:{self.system}/usr/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "SYSTEM": str(self.system),
                       "PG_HUGEPAGES_SYSTEM": str(self.system), **self.variables}
        run = subprocess.run([REPOSITORY / "dev", *words], env=environment, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        calls = self._lines("apt-get.log")
        installs = [call.split(" --no-install-recommends ")[1].split() for call in calls if " install " in call]
        made = [word for line in self._lines("make.log") for word in line.split() if word.startswith("PG_CONFIG=")]
        compiled_for = os.path.relpath(made[0].removeprefix("PG_CONFIG="), self.system) if made else None
        rust = self._lines("rust.log") or [None]
        return Outcome(run.returncode, run.stdout, sum(installs, []), compiled_for, rust[0], calls)

    def _lines(self, name: str) -> list[str]:
        path = self.system / name
        return path.read_text().splitlines() if path.exists() else []
