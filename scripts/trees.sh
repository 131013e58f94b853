# shellcheck shell=bash
# Debian trees with other PostgreSQL majors than this machine's; Ubuntu's for 16, which no suite of Debian has.
#
# They are kept below the cache: SUITE is a bare system, pgN has besides all that builds, tests and packages need, and
# fresh-STATE what a machine of that starting state has (./dev fresh).
# ./dev trees remove deletes them, so that the next run makes them anew from what Debian has by then.

TREES=$CACHE/trees

# The suite of Debian or Ubuntu that has a major's server: with PGDG_SUITE that one, and the server is of PostgreSQL's own packages
# for it.
suite_of() {
    [ -z "${PGDG_SUITE:-}" ] || { echo "$PGDG_SUITE" && return; }
    case $1 in
        15) echo bookworm ;;
        16) echo noble ;;
        17) echo trixie ;;
        18 | 19) echo sid ;;
        *) fail "no suite of Debian is known for PostgreSQL $1; known are those of $SUPPORTED" ;;
    esac
}

# apt_archive LABEL FIELD: of the archive with that label that apt here reads; nothing if it reads none.
apt_archive() {
    apt-get indextargets --format "\$($2)" 'Created-By: Packages' "Label: $1" 'Component: main' | sort | sed -n 1p
}

can_read_suite_of() { [ "$(suite_of "$1")" != noble ] || [ "$(apt_archive Ubuntu SITE)" ]; }    # MAJOR

# The supported majors whose suite apt here reads.
majors_here() {
    local major
    for major in $SUPPORTED; do
        ! can_read_suite_of "$major" || echo "$major"
    done
}

# bare_tree SUITE [LABEL]: makes $TREES/SUITE if it is not there.
bare_tree() {
    [ ! -d "$TREES/$1" ] || return 0
    mkdir -p "$TREES"
    step "Making a tree of ${2:-Debian} $1" as_root env PATH="$PATH" scripts/tree/make "$1" "$TREES/$1" "${2:-Debian}"
}

tree_of() { echo "$TREES/pg$1${PGDG_SUITE:+-$PGDG_SUITE}"; }    # MAJOR

# tree_for MAJOR NEED...: makes the major's tree if it is not there, and installs what it lacks of packages_for them.
tree_for() {
    local major=$1 tree suite
    tree=$(tree_of "$1")
    shift
    suite=$(suite_of "$major")
    if [ ! -d "$tree" ]; then
        if [ "$suite" = noble ]; then bare_tree noble Ubuntu; else bare_tree "$suite"; fi
        step "A copy of it for PostgreSQL $major" as_root copy_tree "$TREES/$suite" "$tree.unfinished"
        step "Installing PostgreSQL $major there" server_into_tree "$major" "$tree.unfinished"
        as_root mv "$tree.unfinished" "$tree"
    fi
    add_to_tree "$tree" "$@"
}

# add_to_tree TREE NEED...: installs what the tree lacks of packages_for them.
add_to_tree() {
    local tree=$1 lacking
    shift
    lacking=$(packages_for "$@" | sort -u | grep -vxFf <(cat "$tree/pg_hugepages.packages" 2>/dev/null)) || true
    [ -n "$lacking" ] || return 0
    # The tree may be older than what the mirror has by now.
    step "Reading its list of Debian packages" in_tree --keep "$tree" apt-get -q update
    # shellcheck disable=SC2086
    step "Installing there what is needed to $*" in_tree --keep "$tree" scripts/apt-install $lacking
    as_root tee -a "$tree/pg_hugepages.packages" <<<"$lacking" >/dev/null
}

copy_tree() {
    rm -rf --one-file-system "$2"
    cp -a --reflink=auto "$1" "$2"
}

server_into_tree() {
    local major=$1 tree=$2
    if [ -n "${PGDG_SUITE:-}" ]; then
        in_tree --keep "$tree" env PGDG=yes scripts/tree/server "$major" "postgresql-server-dev-$major"
    else
        in_tree --keep "$tree" scripts/tree/server "$major" "postgresql-server-dev-$major"
    fi
}

# The trees to ourselves until ./dev ends, and in $TREES/source what the sources are now, so that nobody needs to keep
# their hands off them. The files are as new as the copy, because cargo must not take them for an older checkout's; a copy of
# the same is kept, so that it is not compiled again.
take_trees() {
    have_root "make Debian trees and run in them" || fail "this needs root (or sudo): it makes Debian trees"
    mkdir -p "$TREES"
    exec {TREES_LOCK}>"$TREES/lock"
    flock -n "$TREES_LOCK" || { say "Waiting for another ./dev that uses the Debian trees." && flock "$TREES_LOCK"; }
    rm -rf "$TREES/source.new"
    copy_sources "$TREES/source.new"
    is_the_same "$TREES/source" "$TREES/source.new" || { rm -rf "$TREES/source" && mv "$TREES/source.new" "$TREES/source"; }
    rm -rf "$TREES/source.new"
}

# Whether two directories have the same files with the same modes.
is_the_same() {    # DIRECTORY DIRECTORY
    diff -rq --no-dereference "$1" "$2" >/dev/null 2>&1 &&
        cmp -s <(cd "$1" && find . -printf '%P %m\n' | sort) <(cd "$2" && find . -printf '%P %m\n' | sort)
}

# in_tree [OPTION..] TREE COMMAND...: as scripts/tree/enter, with the sources.
in_tree() { as_root scripts/tree/enter --ro "$TREES/source=/source" "$@"; }

# shellcheck disable=SC2034
# Sets TOOLCHAIN, the options of in_tree that show Rust and the crates inside, and TOOLCHAIN_ENV.
find_toolchain() {
    local sysroot home=${CARGO_HOME:-$HOME/.cargo}
    sysroot=$(rustc --print sysroot)
    TOOLCHAIN=(--ro "$sysroot" --ro "$home")
    TOOLCHAIN_ENV=(/usr/bin/env -i "PATH=$sysroot/bin:$home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        HOME=/root LANG=C.UTF-8 NO_COLOR=1 "CARGO_HOME=$home" CARGO_NET_OFFLINE=true)
    step "Fetching the crates" cargo fetch --locked
}

remove_trees() {
    [ "$*" = remove ] || fail "this is all it can do: ./dev trees remove"
    take_trees
    as_root rm -rf --one-file-system "$TREES"
}
