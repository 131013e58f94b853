# shellcheck shell=bash
# Building for the PostgreSQL that scripts/detection.sh has found, and installing into it.

PROFILE=${BUILD_PROFILE:-release}    # or quick: sooner compiled, for the demo and the tests
WITH_SIDECAR=${WITH_SIDECAR-yes}     # or empty, where only the server's side is wanted
SIDECAR_PREFIX=''                    # or where the sidecar goes instead of /usr/local

make_extension() {
    "${@:2}" make --no-print-directory PG_CONFIG="$PG_CONFIG" BUILD_PROFILE="$PROFILE" \
        WITH_SIDECAR="$WITH_SIDECAR" BUILD_DIR="$CACHE/build${PWD// /_}/pg$PG_MAJOR-$PROFILE" \
        ${SIDECAR_PREFIX:+SIDECAR_PREFIX="$SIDECAR_PREFIX"} "$1"
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
        step "Installing the extension" private_install "$CACHE/private"
        PG_CONFIG=$CACHE/private$("$PG_CONFIG" --bindir)/pg_config
    fi
}

# With the sidecar beside the server's programs, where the bench takes it from, as that of another revision.
install_beside_server() {
    SIDECAR_PREFIX=$(dirname "$("$PG_CONFIG" --bindir)")
    install_extension
}

# PostgreSQL finds its files from where its programs lie. So: copies of the programs, links to
# everything else, and the extension among the links.
private_install() {    # DIRECTORY
    local root=$1 bin lib share headers
    bin=$("$PG_CONFIG" --bindir) lib=$("$PG_CONFIG" --pkglibdir) share=$("$PG_CONFIG" --sharedir)
    headers=$("$PG_CONFIG" --includedir-server)
    rm -rf "$root"
    mkdir -p "$root$bin" "$root$lib" "$root$share/extension" "$root${headers%/*}"
    cp "$bin"/* "$root$bin/"
    ln -s "$lib"/* "$root$lib/"
    ln -s "$share"/* "$root$share/" 2>/dev/null || true    # but for extension, which is there
    ln -s "$share"/extension/* "$root$share/extension/"
    ln -s "$headers" "$root$headers"    # which the tests compile with
    rm -f "$root$lib"/pg_hugepages* "$root$share"/extension/pg_hugepages*
    make_extension install env DESTDIR="$root"
}

# Builds a revision of git, and installs it into a private copy of PostgreSQL in that directory.
install_revision() {    # REVISION DIRECTORY
    local revision source=$CACHE/against/source
    revision=$(git rev-parse --verify --quiet "$1^{commit}") || fail "git knows no revision $1"
    # At one place, so that the next revision compiles only what differs.
    rm -rf "$source"
    mkdir -p "$source"
    git archive "$revision" | tar -x -C "$source"
    CARGO_TARGET_DIR=$CACHE/against/target step "Compiling and installing ${revision:0:12}" revision_install "$source" "$2"
}

revision_install() {    # SOURCE DIRECTORY
    (cd "$1" && make_extension all && private_install "$2")
}
