# shellcheck shell=bash
# Which PostgreSQL to build for, what it and the compiler lack for that, and the Debian packages that bring it.
# Looks at files and at what programs answer, so that tests/unit/test_detection.py can run it on fake systems.

SUPPORTED='15 16 17 18 19'
PGDG='apt-get install postgresql-common && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh'
SYSTEM=${PG_HUGEPAGES_SYSTEM:-}    # where the tests have put a fake /usr; empty: the machine's own

supported() { [ -n "$1" ] && [[ " $SUPPORTED " == *" $1 "* ]]; }
newest_first() { tr ' ' '\n' <<<"$SUPPORTED" | sort -rn; }
candidate() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([^(].*\)/\1/p'; }
has_candidate() { [ -n "$(candidate "$1")" ]; }
major_of() { "$1" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p'; }
headers_major() {    # DIRECTORY: Fedora's pg_config.h includes pg_config_CPU.h
    cat "$1"/pg_config.h "$1"/pg_config_*.h 2>/dev/null | sed -n 's/^#define PG_MAJORVERSION "\([0-9]*\)".*/\1/p'
}

# lacks PG_CONFIG: what the build would miss there, one sentence a line; nothing where it is complete.
lacks() {
    local program=$1 postgres pgxs headers server
    [ -x "$program" ] || { echo "There is no program $program." && return; }
    postgres=$("$program" --bindir)/postgres pgxs=$("$program" --pgxs) headers=$("$program" --includedir-server)
    [ -f "$pgxs" ] || echo "The file ${pgxs:-pgxs.mk} is missing."
    [ -f "$headers/postgres.h" ] || echo "The file $headers/postgres.h is missing."
    [ -x "$postgres" ] || { echo "The server $postgres is missing." && return; }
    server=$(major_of "$postgres")
    supported "$server" || { echo "$postgres is of PostgreSQL ${server:-?}; supported are $SUPPORTED." && return; }
    [ ! -f "$headers/postgres.h" ] || [ "$(headers_major "$headers")" = "$server" ] ||
        echo "The headers in $headers are of PostgreSQL $(headers_major "$headers"), the server is of $server."
}

# Prints the pg_config of a PostgreSQL that lacks nothing: $PG_CONFIG if set, else that of the PATH, else the newest.
complete_pg_config() {
    local candidate
    for candidate in ${PG_CONFIG:-pg_config $(printf '%s\n' "$SYSTEM"/usr/lib/postgresql/*/bin/pg_config | sort -rV)}; do
        candidate=$(command -v "$candidate") || continue
        [ -n "$(lacks "$candidate")" ] || { echo "$candidate" && return; }
    done
    return 1
}

# The files of Debian's packages of a major.
has_server() { [ -x "$SYSTEM/usr/lib/postgresql/$1/bin/postgres" ]; }
has_development() {
    [ -x "$SYSTEM/usr/lib/postgresql/$1/bin/pg_config" ] && [ -f "$SYSTEM/usr/include/postgresql/$1/server/postgres.h" ] &&
        [ -f "$SYSTEM/usr/lib/postgresql/$1/lib/pgxs/src/makefiles/pgxs.mk" ]
}

# Prints the major to complete: that of PG_CONFIG, else of the newest server that is there and whose headers are there or
# can be had, else of headers whose server can be had, else the distribution's.
wanted_major() {
    local major first='' own
    if [ -n "${PG_CONFIG:-}" ]; then
        major=$(sed -n "s|^$SYSTEM/usr/lib/postgresql/\([0-9]*\)/bin/pg_config\$|\1|p" <<<"$PG_CONFIG")
        [ -n "$major" ] || [ "$PG_CONFIG" != "$(command -v pg_config)" ] || major=$(major_of "$PG_CONFIG")
        supported "$major" && echo "$major"
        return
    fi
    for major in $(newest_first); do
        has_server "$major" || continue
        first=${first:-$major}
        if has_development "$major" || has_candidate "postgresql-server-dev-$major"; then
            echo "$major"
            return
        fi
    done
    [ -z "$first" ] || { echo "$first" && return; }
    for major in $(newest_first); do
        ! has_development "$major" || ! has_candidate "postgresql-$major" || { echo "$major" && return; }
    done
    own=$(LC_ALL=C apt-cache depends postgresql 2>/dev/null | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p')
    supported "$own" && echo "$own"
}

# Prints the packages that complete the PostgreSQL that is there or wanted; nothing where none of Debian's would.
postgresql_packages() {
    local major
    ! complete_pg_config >/dev/null || return 0
    major=$(wanted_major) || return 0
    has_server "$major" || echo "postgresql-$major"
    has_development "$major" || echo "postgresql-server-dev-$major"
}

# Whether apt has those.
can_complete_postgresql() {
    local package
    for package in $(postgresql_packages); do has_candidate "$package" || return; done
    [ -n "${package:-}" ] || complete_pg_config >/dev/null
}

# explain_postgresql [PACKAGE...]: says of an incomplete PostgreSQL what is missing, and what to type.
explain_postgresql() {
    local unknown
    if [ $# -gt 0 ]; then
        can_complete_postgresql || unknown=$(postgresql_packages | paste -sd' ')
        [ -z "${unknown:-}" ] || fail "PostgreSQL is not complete, and apt does not offer $unknown. As root, for the PostgreSQL project's packages:
    $PGDG"
        fail "PostgreSQL is not complete, or what compiling for it needs. As root:
    $(apt_line "$@")"
    fi
    [ -n "${PG_CONFIG:-}" ] || ! command -v pg_config >/dev/null || PG_CONFIG=$(command -v pg_config)
    [ -z "${PG_CONFIG:-}" ] || fail "$PG_CONFIG leads to no PostgreSQL that an extension can be built for.
$(lacks "$PG_CONFIG" | sed 's/^/    /')"
    ! command -v apt-cache >/dev/null || fail "this system offers no PostgreSQL of ${SUPPORTED// /, }. As root, for the PostgreSQL project's own packages:
    $PGDG"
    fail "there is no PostgreSQL of ${SUPPORTED// /, } with its development files here. If there is, name its pg_config:
    PG_CONFIG=/path/to/pg_config ./dev ..."
}

# shellcheck disable=SC2034
# Sets PG_CONFIG and PG_MAJOR.
find_postgresql() {
    local found
    # shellcheck disable=SC2046
    found=$(complete_pg_config) || explain_postgresql $(postgresql_packages)
    PG_CONFIG=$found
    PG_MAJOR=$(major_of "$PG_CONFIG")
}
