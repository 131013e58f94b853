# shellcheck shell=bash
# ./dev matrix: the extension on every major, each in a tree of its own. The next major's tree is made and its
# library is compiled while the scenarios of the one before run, which mostly wait; scenarios run one at a time.

MATRIX=$CACHE/matrix
PREPARING=''    # the process, and the group, that prepares the next major

declare -A SCOPES    # of each major: whole, or short

run_matrix() {    # [--compile] [--docs] [MAJOR...] [--short [MAJOR...]]
    local major failed=0 passed=0 scope=whole majors=() only='' docs=''
    for major in "$@"; do
        case $major in
            --compile) only=compile ;;
            --short) scope=short ;;
            --docs) docs=yes ;;
            *) majors+=("$major") SCOPES[$major]=$scope ;;
        esac
    done
    if [ ${#majors[@]} -eq 0 ]; then
        mapfile -t majors < <(majors_here)
        for major in "${majors[@]}"; do SCOPES[$major]=$scope; done
    fi
    set -- "${majors[@]}"
    take_trees
    find_toolchain
    rm -rf "$MATRIX"
    trap 'stop_preparing; stop_painter' EXIT
    prepare "$1"
    while [ $# -gt 0 ]; do
        major=$1
        shift
        if prepared "$major" && { [ $# -eq 0 ] || prepare "$1"; } && { [ "$only" ] || in_major "$major" scripts/tree/test "${SCOPES[$major]}"; }; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            # What failed may have been the preparation.
            [ $# -eq 0 ] || [ -n "$PREPARING" ] || prepare "$1"
        fi
        # After a failure, too. The short tests are no proof of a major.
        [ -z "$docs" ] || [ "${SCOPES[$major]}" != whole ] || [ ! -s "$MATRIX/$major/row" ] || scripts/tested-on "$major" "$MATRIX/$major" ||
            say "-- Its row could not be written."
        [ -s "$MATRIX/$major/row" ] || printf '%-6s %s\n' "$major" "${only:+only compiled: $(cat "$MATRIX/$major/build" 2>/dev/null)}" >"$MATRIX/$major/row"
    done
    printf '\n%-6s %-22s %-22s %-22s %s\n' major version build regress scenarios
    cat "$MATRIX"/*/row
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}

# in_major MAJOR SCRIPT [ARGUMENT]: runs it in that major's tree, with the major, a directory for results and that.
in_major() {
    in_tree "${TOOLCHAIN[@]}" --rw "$TREES/pg$1.cache=/var/cache/build" --rw "$MATRIX/$1=/var/results" "$TREES/pg$1" \
        "${TOOLCHAIN_ENV[@]}" XDG_CACHE_HOME=/var/cache/build PG_CONFIG="/usr/lib/postgresql/$1/bin/pg_config" \
        "$2" "$1" /var/results "${@:3}"
}

# Begins to make the major's tree and to compile there, in a process group of its own.
prepare() {
    local needs='build run test walks'
    [ "$1" -lt 18 ] || needs+=' image'
    mkdir -p "$MATRIX/$1" "$TREES/pg$1.cache"
    set -m
    # shellcheck disable=SC2086
    (tree_for "$1" $needs && step "Compiling for PostgreSQL $1" in_major "$1" scripts/tree/build "${SCOPES[$1]}") \
        >"$MATRIX/$1/preparation.log" 2>&1 </dev/null &
    PREPARING=$!
    set +m
}

# Waits for that and says how it went.
prepared() {
    local status=0
    say "PostgreSQL $1"
    wait "$PREPARING" || status=$?
    PREPARING=''
    cat "$MATRIX/$1/preparation.log"
    return "$status"
}

stop_preparing() {
    [ -z "$PREPARING" ] || kill -- "-$PREPARING" 2>/dev/null || true
}
