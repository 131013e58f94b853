# shellcheck shell=bash
# Which PostgreSQL we build for, building for it, and installing into it.

SUPPORTED='15 16 17 18 19'

major_of() { "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'; }
supported() { [[ " $SUPPORTED " == *" $1 "* ]]; }

# Prints the pg_config of a PostgreSQL with its server and its PGXS: $PG_CONFIG if set, else that of
# the PATH, else Debian's newest.
complete_pg_config() {
    local candidate
    for candidate in ${PG_CONFIG:-pg_config $(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -rV)}; do
        candidate=$(command -v "$candidate") || continue
        if [ -x "$("$candidate" --bindir)/postgres" ] && [ -f "$("$candidate" --pgxs)" ] &&
            supported "$(major_of "$candidate")"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# Prints the major version to install: of the newest server that is there, else the distribution's.
wanted_major() {
    local major
    for major in $(tr ' ' '\n' <<<"$SUPPORTED" | sort -rn); do
        [ ! -x "/usr/lib/postgresql/$major/bin/postgres" ] || { echo "$major" && return; }
    done
    major=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p')
    supported "$major" && echo "$major" && return
    fail "this system offers PostgreSQL ${major:-not at all}, and $SUPPORTED are supported. The package
postgresql-common brings a script that adds the PostgreSQL project's own packages:
    /usr/share/postgresql-common/pgdg/"
}

# Sets PG_CONFIG and PG_MAJOR.
find_postgresql() {
    local found
    found=$(complete_pg_config) || fail "${PG_CONFIG:-pg_config} leads to no PostgreSQL of ${SUPPORTED// /, } that has
both its server and its development files (Debian: postgresql and postgresql-server-dev-all)."
    PG_CONFIG=$found
    PG_MAJOR=$(major_of "$PG_CONFIG")
}

make_extension() {
    "${@:2}" make --no-print-directory PG_CONFIG="$PG_CONFIG" CARGO_PGRX="$CARGO_PGRX" \
        BUILD_DIR="$CACHE/build${PWD// /_}/pg$PG_MAJOR" "$1"
}

build_extension() {
    step "Compiling pg_hugepages for PostgreSQL $PG_MAJOR" make_extension all
}

# Installs into the PostgreSQL of PG_CONFIG; without root, into a private copy of its programs.
install_extension() {
    if have_root; then
        step "Installing the extension" make_extension install as_root
    elif [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then
        step "Installing the extension" make_extension install
    else
        say "No root: the extension goes into a private copy of PostgreSQL $PG_MAJOR,"
        say "$CACHE/private."
        step "Installing the extension" private_install
        PG_CONFIG=$CACHE/private$("$PG_CONFIG" --bindir)/pg_config
    fi
}

# PostgreSQL finds its files from where its programs lie. So: copies of the programs, links to
# everything else, and the extension among the links. PG_CONFIG is that copy's from here on.
private_install() {
    local root=$CACHE/private bin lib share
    bin=$("$PG_CONFIG" --bindir) lib=$("$PG_CONFIG" --pkglibdir) share=$("$PG_CONFIG" --sharedir)
    rm -rf "$root"
    mkdir -p "$root$bin" "$root$lib" "$root$share/extension"
    cp "$bin"/* "$root$bin/"
    ln -s "$lib"/* "$root$lib/"
    ln -s "$share"/* "$root$share/" 2>/dev/null || true    # but for extension, which is there
    ln -s "$share"/extension/* "$root$share/extension/"
    rm -f "$root$lib"/pg_hugepages* "$root$share"/extension/pg_hugepages*
    make_extension install env DESTDIR="$root"
}
