# shellcheck shell=bash
# The tests, the lint, and whatever else runs in Python on real clusters.

# Runs a Python program of ours on PG_CONFIG's PostgreSQL; as root where we may, for the huge pages.
run_python() {
    [ -f "$1" ] || [ "$1" = -m ] || fail "$1 is not there"
    if have_root; then
        as_root env PYTHONDONTWRITEBYTECODE=1 PG_CONFIG="$PG_CONFIG" CARGO_TARGET_DIR="$CARGO_TARGET_DIR" "$PYTHON" "$@"
    else
        PG_CONFIG="$PG_CONFIG" "$PYTHON" "$@"
    fi
}

RESULTS=$CACHE/results    # of tests: what scripts/tally reads

# Each of these leaves its outcome in $RESULTS and goes on after a failure: tally tells.
begin_results() { rm -rf "$RESULTS" && mkdir -p "$RESULTS"; }

# Flags and profile are the sidecar's, so that nothing is compiled for the tests alone but the tests.
cargo_test() {    # CARGO ARGUMENT...
    # For the compiler's own target: crates that only tests link have code in C, for which musl wants a compiler of its own.
    RUSTFLAGS="${RUSTFLAGS:-} $(scripts/compile-flags static)" cargo test --locked "${RUST_FLAGS[@]}" --all-features \
        --profile quick --target "$(rustc -vV | sed -n 's/^host: //p')" "$@"
}

cargo_tests() {    # [NAME]
    local status=0
    say "Unit tests of the crates that need no PostgreSQL"
    cargo_test --workspace --exclude pg_hugepages --no-fail-fast "$@" 2>&1 | tee "$RESULTS/cargo.log" || status=$?
    echo "$status" >"$RESULTS/cargo.log.status"
}

# A line for each question of the public cases; fails if an answer is wrong.
run_cases() {    # [DIRECTORY]
    local directory=''
    [ $# -eq 0 ] || directory=$(realpath -e "$1") || fail "$1 is not there"
    HUGEPAGE_CASES=$directory RUST_BACKTRACE=0 cargo_test --quiet --package hugepage-sidecar --test cases -- --nocapture |
        sed -n '/^\(right\|honest\|wrong\|none\|[0-9]* right,\) /p' || return 1
}

python_unit_tests() {    # [NAME]
    local status=0
    say "Unit tests of the scripts"
    "$PYTHON" -m pytest -c tests/unit/pytest.ini --rootdir tests/unit --confcutdir tests/unit \
        --junitxml "$RESULTS/unit.xml" ${1:+-k "${1##*::}"} tests/unit || status=$?
    echo "$status" >"$RESULTS/unit.xml.status"
}

# Without arguments in lanes; --all with those that take long. Files among the arguments are all that is run.
scenarios() {    # [--all | PYTEST ARGUMENT...]
    local where=(tests/scenarios tests/attacks tests/oracle) argument
    for argument in "$@"; do [[ $argument != */* || ! -e ${argument%%::*} ]] || where=(); done
    say "Scenarios on throwaway clusters of PostgreSQL $PG_MAJOR"
    case $* in
        '') in_lanes 'not long' "${where[@]}" ;;
        --all) in_lanes '' "${where[@]}" ;;
        *) pytest_on_clusters scenarios "${where[@]}" "$@" ;;
    esac
}

in_lanes() {    # MARKS PYTEST ARGUMENT...
    # Until it has come to its end.
    echo 1 >"$RESULTS/lanes.status"
    run_python tests/lanes.py "$RESULTS" "$@" || true
}

bench_tests() {    # PYTEST ARGUMENT...
    say "Tests of the bench on throwaway clusters of PostgreSQL $PG_MAJOR"
    pytest_on_clusters bench tests/bench "$@"
}

pytest_on_clusters() {    # NAME PYTEST ARGUMENT...
    local status=0
    run_python -m pytest -c tests/pytest.ini --rootdir tests --junitxml "$RESULTS/$1.xml" "${@:2}" || status=$?
    echo "$status" >"$RESULTS/$1.xml.status"
}

tally() { "$PYTHON" scripts/tally "$RESULTS"; }

run_lint() {
    step "cargo fmt" cargo fmt --all --check
    step "clippy on the crates that need no PostgreSQL" clippy --workspace --exclude pg_hugepages --all-targets
    step "clippy on the extension for PostgreSQL $PG_MAJOR" \
        clippy --package pg_hugepages --no-default-features --features "pg$PG_MAJOR"
    check_targets
    # A checked program is not linked: the fuzzer's own library, of C++, need not be there.
    step "the fuzz targets compile" env CUSTOM_LIBFUZZER_PATH=/nonexistent/libfuzzer.a \
        cargo check --locked "${RUST_FLAGS[@]}" --manifest-path tests/fuzz/Cargo.toml --target-dir "$CARGO_TARGET_DIR/fuzz"
    step "shellcheck" shellcheck -x dev .ci/run scripts/*.sh scripts/apt-install scripts/compile-flags scripts/oracle-validators scripts/rust-flags scripts/static-target scripts/no-glibc scripts/has-manuals scripts/build-image scripts/documented scripts/maintainer packaging/image/push scripts/try-rpms scripts/try-role scripts/try-tar scripts/tree/* tests/lab/guest/* tests/lab/debian/agent packaging/debian/tests/installcheck packaging/debian/hugepage-sidecar.prerm packaging/debian/extension.prerm.in \
        tests/fuzz/run
    check_workflows
    check_manifests
    step "pyflakes" "$PYTHON" -m pyflakes tests bench monitoring scripts/tally scripts/host-pool scripts/install-rust scripts/budgets scripts/prose scripts/pictures scripts/sql scripts/mutants scripts/licences scripts/tested-on scripts/manifests
    step "budget of tokens" scripts/budgets
    step "the SQL scripts are what src/ has" scripts/sql --check
    step "licences of the linked crates" scripts/licences --check
    step "sentences and links of the documents" scripts/prose
    make_book
}

# Of the Python package index: a static program.
ZIZMOR='zizmor==1.32.0 --hash=sha256:84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071'

# What somebody else could do by way of GitHub's workflows. The program is fetched once, where it can be.
check_workflows() {
    local place=$CACHE/${ZIZMOR%% *}
    if ! fetch_wheel "$ZIZMOR" "$place"; then
        say "-- The workflows are not checked by zizmor: skipped, it is not here and could not be fetched."
        return
    fi
    step "zizmor on the workflows" "$place"/*.data/scripts/zizmor --offline --no-progress --quiet .github
}

# Of the Python package index: two packages with the schemas of Kubernetes and of Compose.
KUBERNETES_SCHEMAS='kubernetes-validate==1.37.0 --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9'
COMPOSE_SCHEMA='check-jsonschema==0.39.0 --hash=sha256:14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b'

check_manifests() {
    local kubernetes=$CACHE/${KUBERNETES_SCHEMAS%% *} compose=$CACHE/${COMPOSE_SCHEMA%% *}
    if ! fetch_wheel "$KUBERNETES_SCHEMAS" "$kubernetes" || ! fetch_wheel "$COMPOSE_SCHEMA" "$compose"; then
        say "-- The manifests are not compared with their schemas: skipped, these are not here and could not be fetched."
        return
    fi
    step "manifests of Kubernetes and Compose" scripts/manifests "$kubernetes/kubernetes_validate/kubernetes-json-schema" \
        "$compose/check_jsonschema/builtin_schemas/vendor/compose-spec.json"
}

# fetch_wheel "NAME==VERSION --hash=sha256:SUM" DIRECTORY: unpacks it there once, with its programs if it has any.
fetch_wheel() {
    [ ! -d "$2" ] || return 0
    rm -rf "$2.unfinished"
    {
        "$PYTHON" -m pip download -q --no-deps --only-binary :all: --require-hashes -r <(echo "$1") -d "$2.unfinished" &&
            "$PYTHON" -m zipfile -e "$2.unfinished"/*.whl "$2.unfinished" && rm "$2.unfinished"/*.whl &&
            find "$2.unfinished" -path '*.data/scripts/*' -exec chmod +x {} + && mv "$2.unfinished" "$2"
    } >>"$LOG" 2>&1
}

# The sidecar compiles for the other architectures of servers, too. Their standard libraries are optional.
check_targets() {
    local target targets=()
    for target in aarch64-unknown-linux-gnu powerpc64le-unknown-linux-gnu; do
        if has_target "$target"; then
            targets+=("$target")
        else
            say "-- The sidecar is not checked for $target: skipped, Rust's standard library for it is not here, and rustup could not fetch it."
        fi
    done
    [ ${#targets[@]} -eq 0 ] || step "cargo check of the sidecar for ${targets[*]}" \
        cargo check --locked "${RUST_FLAGS[@]}" --package hugepage-sidecar "${targets[@]/#/--target=}"
}

clippy() {
    PGRX_PG_CONFIG_PATH=$PG_CONFIG cargo clippy --locked "${RUST_FLAGS[@]}" "$@" -- -D warnings
}
