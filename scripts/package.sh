# shellcheck shell=bash
# ./dev package: Debian packages, made by Debian's own tools for PostgreSQL extensions, looked over by lintian, and tried
# out on a bare Debian.

run_package() {    # [MAJOR...]
    local major suite target out="$CACHE/packages" version profiles='' failed=0 passed=0
    # Lower than 1.0.0-1, which Debian and apt.postgresql.org begin with, and higher than 1.0.0~rc1. For PostgreSQL's own packages the
    # revision names the suite.
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/;s/-/~/;p;q}' Cargo.toml)-0${PGDG_SUITE:+~${PGDG_SUITE}1}
    # shellcheck disable=SC2046
    [ $# -gt 0 ] || set -- $(majors_here)
    target=$(release_target "$(uname -m)") || exit
    take_trees
    find_toolchain
    rm -rf "$out"/[0-9]*    # not the sidecar's for hosts without Debian
    for major in "$@"; do
        say "PostgreSQL $major"
        suite=$(suite_of "$major")
        mkdir -p "$out/$major" "$TREES/$suite.cache"
        tree_for "$major" build package "package-${PGDG_SUITE:+pgdg-}$major"
        step "Making the package for PostgreSQL $major" in_tree "${TOOLCHAIN[@]}" \
            --rw "$TREES/$suite.cache=/var/cache/build" --rw "$out/$major=/var/results" "$(tree_of "$major")" \
            "${TOOLCHAIN_ENV[@]}" CARGO_TARGET_DIR=/var/cache/build/package DEB_BUILD_PROFILES="$profiles" \
            MAINTAINER="$(scripts/maintainer)" PROJECT_URL="${PROJECT_URL:-}" SIDECAR_TARGET="$target" SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" \
            scripts/tree/package "$major" "$version" /var/results
        # The sidecar's package is the same for all: the first suite, which is the oldest, compiles it.
        profiles=pkg.pg-hugepages.nosidecar
        if in_tree --rw "$out=/var/results" "$TREES/$suite" /usr/bin/env -i \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PGDG="${PGDG_SUITE:-}" \
            scripts/tree/try-package "$major" /var/results; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
        # One has over 2 GB, and a runner of GitHub 14.
        [ -z "${DISCARD_TREES:-}" ] || step "Deleting its tree" as_root rm -rf --one-file-system "$(tree_of "$major")"
    done
    say ""
    (cd "$out" && stat -c "%s bytes  $out/%n" -- */*.deb)
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}
