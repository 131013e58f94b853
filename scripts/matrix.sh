# shellcheck shell=bash
# ./dev matrix: the extension on every major, each in a Debian tree of its own, one after the other.

run_matrix() {    # [MAJOR...]
    local major results="$CACHE/matrix" failed=0 passed=0
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $SUPPORTED
    take_trees
    find_toolchain
    rm -rf "$results"
    for major in "$@"; do
        say "PostgreSQL $major"
        mkdir -p "$results/$major" "$TREES/pg$major.cache"
        tree_for "$major"
        if in_tree "${TOOLCHAIN[@]}" --rw "$TREES/pg$major.cache=/var/cache/build" \
            --rw "$results/$major=/var/results" "$TREES/pg$major" "${TOOLCHAIN_ENV[@]}" \
            XDG_CACHE_HOME=/var/cache/build PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config" \
            scripts/tree/test "$major" /var/results; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
        [ -s "$results/$major/row" ] || echo "$major     (no result)" >"$results/$major/row"
    done
    printf '\n%-6s %-12s %-14s %-12s %s\n' major version build regress scenarios
    cat "$results"/*/row
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}
