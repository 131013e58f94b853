# shellcheck shell=bash
# ./dev release: what stands in the way of a release, and with --dry-run all of its files, made and tried as the workflow does it.

RELEASE=$CACHE/release

run_release() {    # --check [TAG] | --dry-run
    local ready=yes
    in_the_way "${2-}" || ready=''
    case $1 in
        --check) ;;
        --dry-run) make_release || ready='' ;;
    esac
    [ "$ready" ] || fail "no release: see above"
    say "Nothing that a machine sees is in the way. packaging/README.md, \"Release\", has what only a person can do."
}

# in_the_way [TAG]: prints what is missing, a line each; fails if something is.
in_the_way() {
    local version majors found=0
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
    missing() { found=1 && say "missing: $*"; }
    [ -z "$1" ] || [ "$1" = "v$version" ] || missing "a tag of this version: $1 is not v$version"
    scripts/maintainer --released >/dev/null || missing "a name and an address in MAINTAINERS: somebody answers for a release"
    [ "${PROJECT_URL:-}" ] || missing "the project's page: PROJECT_URL"
    grep -qE "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || missing "the section \"## $version - DATE\" of CHANGELOG.md"
    grep -q " pg_hugepages--$version.sql$" sql/released.sha256 || missing "the SHA-256 of this version's script in sql/released.sha256"
    scripts/sql --check >>"$LOG" 2>&1 || missing "SQL scripts that are what src/ has: ./dev sql"
    # shellcheck disable=SC2086
    majors=$(scripts/tested-on --missing $SUPPORTED) || missing "rows of PostgreSQL $majors in tests/tested-on.md: ./dev matrix --docs $majors"
    [ -z "$(git status --porcelain)" ] || missing "a commit of all changes"
    return "$found"
}

# Every part is tried, also after one that failed. A build of nobody's release has nobody's name.
make_release() {
    local suite
    scripts/maintainer --released >/dev/null || export DEBFULLNAME='a trial build' DEBEMAIL=trial@example.invalid
    rm -rf "$RELEASE" && mkdir -p "$RELEASE"
    : >"$RELEASE.parts"
    part "packages for Debian's PostgreSQL, installed, upgraded, removed" ./dev package && keep 'packages/*/*.deb'
    for suite in bookworm trixie; do
        part "packages for apt.postgresql.org on $suite, and the files of images" env PGDG_SUITE=$suite ./dev package &&
            keep 'packages/*/postgresql-*.deb' 'packages/*/*-image.tar.gz'
    done
    part "RPMs, tar and role of the sidecar, installed, upgraded, removed" ./dev package sidecar && keep 'packages/sidecar/*.rpm' 'packages/sidecar/*.tar.gz'
    part "the sidecar's image" ./dev image && keep 'packages/image/*.oci.tar'
    part "sources, with crates and for PGXN; a build without a network" ./dev dist && cp pg_hugepages-*.zip pg_hugepages-*-vendored.tar.xz "$RELEASE"
    part "lists of the crates" ./dev sbom && keep 'sbom/*.cdx.json'
    part "licences, sources and advisories of the crates" ./dev supply-chain --advisories
    part "the same library from two places" ./dev reproducible
    part "the book" ./dev book && tar -C build -czf "$RELEASE/book.tar.gz" book
    release_notes >"$RELEASE/notes.md"
    (cd "$RELEASE" && sha256sum -- * >SHA256SUMS)
    say "" "$(cat "$RELEASE.parts")"
    (cd "$RELEASE" && stat -c "%s bytes  $RELEASE/%n" -- *)
    say "Signatures are the workflow's: actions/attest signs each of these files by the address of the repository."
    ! grep -q '^failed' "$RELEASE.parts"
}

part() {    # TITLE COMMAND...
    local began=$SECONDS outcome=ok
    say "" "== $1"
    "${@:2}" || outcome=failed
    printf '%-8s %3d min  %s\n' "$outcome" $(((SECONDS - began) / 60)) "$1" >>"$RELEASE.parts"
    [ "$outcome" = ok ]
}

# keep PATTERN...: copies these files of the cache. GitHub would rename a file with a tilde, and SHA256SUMS would not know it.
keep() {
    local pattern file name
    for pattern in "$@"; do
        compgen -G "$CACHE/$pattern" >"$RELEASE.found" || say "there is no $pattern"
        while read -r file; do
            name=${file##*/}
            cp -- "$file" "$RELEASE/${name//\~/.}"
        done <"$RELEASE.found"
    done
}

# The section of this version, else that of what is not released.
release_notes() {
    local version title
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
    title=$(grep -m 1 -oE "^## $version\b" CHANGELOG.md || echo '## Unreleased')
    awk -v title="$title" 'index($0, "## ") == 1 { wanted = index($0, title) == 1; next } wanted' CHANGELOG.md
}
