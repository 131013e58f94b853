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

run_tests() {    # PYTEST ARGUMENT...
    local results="$CACHE/cargo-test.log"
    say "Unit tests of the crates that need no PostgreSQL"
    cargo test --locked "${RUST_FLAGS[@]}" --workspace --exclude pg_hugepages 2>&1 | tee "$results"
    build_extension
    install_extension
    say "Scenarios on throwaway clusters of PostgreSQL $PG_MAJOR"
    run_python -m pytest -c tests/pytest.ini --rootdir tests tests/scenarios tests/oracle "$@"
    say "And cargo said:"
    grep '^test result:' "$results"
}

run_lint() {
    step "cargo fmt" cargo fmt --all --check
    step "clippy on the crates that need no PostgreSQL" clippy --workspace --exclude pg_hugepages --all-targets
    step "clippy on the extension for PostgreSQL $PG_MAJOR" \
        clippy --package pg_hugepages --no-default-features --features "pg$PG_MAJOR"
    step "shellcheck" shellcheck -x dev .ci/run scripts/*.sh scripts/apt-install scripts/oracle-validators scripts/rust-flags scripts/static-target scripts/tree/* packaging/debian/tests/installcheck \
        crates/hugepage-core/fuzz/run
    step "pyflakes" "$PYTHON" -m pyflakes tests bench monitoring
}

clippy() {
    PGRX_PG_CONFIG_PATH=$PG_CONFIG cargo clippy --locked "${RUST_FLAGS[@]}" "$@" -- -D warnings
}
