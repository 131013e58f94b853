# shellcheck shell=bash
# What goes into the library, and that anybody can make the same one.

# find_tool NAME VERSION OPTION...: sets TOOL to a program of that version from crates.io, installed once into the cache.
find_tool() {
    local name=$1 version=$2
    TOOL=$CACHE/$name-$version/bin/$name
    [ ! -x "$TOOL" ] || return 0
    # Unoptimized: it runs for seconds, and optimizing it takes minutes.
    step "Installing $name $version" env CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install "$name" --version "=$version" --locked --debug "${RUST_FLAGS[@]}" "${@:3}" \
        --root "$CACHE/$name-$version" --target-dir "$CACHE/$name-build"
    rm -rf "$CACHE/$name-build"
}

# run_supply_chain [--advisories]: licences, sources and advisories of all crates, by deny.toml. Without the database of
# advisories only --advisories fails.
run_supply_chain() {
    find_tool cargo-deny 0.20.2
    step "Licences and sources of the crates" "$TOOL" --locked check licenses bans sources
    if [ $# -eq 0 ] && ! "$TOOL" --locked fetch db >>"$LOG" 2>&1; then
        say "-- Advisories are not checked: skipped, their database could not be fetched. --advisories makes that a failure."
        return
    fi
    step "Advisories" "$TOOL" --locked check advisories -D advisory-not-detected
}

# docs as HTML.
make_book() {
    find_tool mdbook 0.5.4 --no-default-features --features search
    step "Building the book" "$TOOL" build
    say "$PWD/build/book/index.html"
}

# run_mutants [SHARD]: what no test of a crate notices must be in tests/mutants.txt. All places take hours.
run_mutants() {
    local out=$CACHE/mutants
    find_tool cargo-mutants 27.1.0
    rm -rf "$out"
    step "Tests of changed crates" mutated --package hugepage-assess --package hugepage-facts --package hugepage-sizing --package hugepage-start --output "$out" \
        ${1:+--shard "$1"} -- --lib --tests
    "$PYTHON" scripts/mutants "$out/mutants.out"
}

# Few cases of each property, the same ones in each run. cargo-mutants ends with 2 where a change was not noticed, and with 3
# where a test did not end.
mutated() {
    local status=0
    CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 \
        PROPTEST_CASES=16 PROPTEST_RNG_SEED=1 PROPTEST_MAX_SHRINK_ITERS=0 "$TOOL" mutants "$@" || status=$?
    case $status in 0 | 2 | 3) ;; *) return "$status" ;; esac
}

# Those of docs/images that show what the sidecar prints.
make_pictures() {
    step "Building the sidecar" env RUSTFLAGS="${RUSTFLAGS:-} $(scripts/compile-flags static)" cargo build --locked \
        "${RUST_FLAGS[@]}" --profile quick --target "$(scripts/static-target)" --package hugepage-sidecar
    step "Pictures of what it prints" "$PYTHON" scripts/pictures "$CARGO_TARGET_DIR/$(scripts/static-target)/quick/hugepage-sidecar"
}

# CycloneDX lists of the crates in the library and in the sidecar.
make_sbom() {
    find_tool cargo-cyclonedx 0.5.9
    step "Listing the crates" cyclonedx "$CACHE/sbom"
    printf '%s\n' "$CACHE"/sbom/*
}

# cargo-cyclonedx writes beside each Cargo.toml, so it works on a copy.
cyclonedx() {    # DIRECTORY
    local copy=$1/source list
    rm -rf "$1"
    copy_sources "$copy"
    [ -z "${PROJECT_URL:-}" ] ||
        sed -i "/^\[package\]\$/a repository = \"$PROJECT_URL\"" "$copy/Cargo.toml" "$copy/crates/hugepage-sidecar/Cargo.toml"
    (cd "$copy" && SOURCE_DATE_EPOCH=$(git -C "$OLDPWD" log -1 --format=%ct) "$TOOL" cyclonedx --format json \
        --spec-version 1.5 --no-build-deps --no-default-features --features "pg$PG_MAJOR" --override-filename bom)
    for list in pg_hugepages:bom hugepage-sidecar:crates/hugepage-sidecar/bom; do
        sed "s|path+file://$copy|path+file:///pg_hugepages|g" "$copy/${list#*:}.json" >"$1/${list%:*}.cdx.json"
    done
    rm -rf "$copy"
}

PRINTED_PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config

# Makes the source archives of the commit, and compiles the one with the crates as a builder without a network does, by the
# commands that packaging/README.md and docs/install.md print.
check_dist() {
    local place=$CACHE/dist version name page=packaging/README.md ours="$PRINTED_PG_CONFIG=$PG_CONFIG"
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
    name=pg_hugepages-$version
    rm -rf "$place" && mkdir -p "$place/rpm"
    step "Making the source archives" make --no-print-directory dist PG_CONFIG="$PG_CONFIG"
    step "Unpacking the one with the crates" tar -xJf "$name-vendored.tar.xz" -C "$place" --strip-components 1
    step "Compiling it with nothing else" as_documented "$place" $page 'make PG_CONFIG' "$ours"
    step "Installing it" as_documented "$place" $page 'make install' "$ours" DESTDIR=...="DESTDIR=$place/installed"
    [ -s "$place/installed$("$PG_CONFIG" --pkglibdir)/pg_hugepages.so" ] && [ -x "$place/installed/usr/bin/hugepage-sidecar" ]
    step "Compiling its library alone" as_documented "$place" $page PGRX_PG_CONFIG_PATH "$ours" "pg17=pg$PG_MAJOR"
    [ -s "$place/compiled/release/libpg_hugepages.so" ]
    ln -s "$PWD/$name-vendored.tar.xz" "$place/rpm/"
    step "Making an RPM of it" extension_rpm "$place/rpm" "$version"
    rm -rf "$place"
    stat -c "%s bytes  $PWD/%n" "$name.zip" "$name-vendored.tar.xz"
}

# Runs a command of a page there, without a network, and sooner compiled: not optimized.
as_documented() {    # DIRECTORY PAGE BEGINNING [FROM=TO]..
    local command
    command=$(scripts/documented "${@:2}") || return
    (cd "$1" && CARGO_HOME=$1/empty CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$1/compiled CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 bash -euc "$command")
}

# The RPM of the extension, for the PostgreSQL that is here, whose packages rpm does not know.
extension_rpm() {    # DIRECTORY VERSION
    local programs
    programs=$("$PG_CONFIG" --bindir)
    as_documented "$1" docs/install.md 'tar -xJf' "VERSION=$2"
    as_documented "$1" docs/install.md rpmbuild "rpmbuild -bb=rpmbuild -bb --nodeps --define '_topdir $1'" \
        "pgmajorversion 18=pgmajorversion $PG_MAJOR' --define 'pginstdir ${programs%/bin}"
    rpm -qpl "$1"/RPMS/*/"pg_hugepages_$PG_MAJOR-$2"-*.rpm | grep -x "$("$PG_CONFIG" --pkglibdir)/pg_hugepages.so"
}

# Builds twice, in places that have nothing in common but the toolchain, and compares the libraries.
check_reproducible() {
    local place first='' library places="$CACHE/reproducible"
    rm -rf "$places"
    for place in one another/place; do
        copy_sources "$places/$place"
        step "A clean build for PostgreSQL $PG_MAJOR in $place" env CARGO_TARGET_DIR="$places/$place/compiled" \
            make --no-print-directory -C "$places/$place" PG_CONFIG="$PG_CONFIG"
        library=$(find "$places/$place/build" -name 'pg_hugepages.so')
        sha256sum "$library"
        [ -z "$first" ] || cmp "$first" "$library" || fail "the two libraries differ; they are kept in $places"
        first=$library
    done
    rm -rf "$places"
    say "Both builds made the same library."
}

# copy_sources DIRECTORY: what git knows, or would know.
copy_sources() {
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        tar -c --ignore-failed-read --null -T - | tar -x -m -C "$1"
}
