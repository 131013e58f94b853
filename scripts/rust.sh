# shellcheck shell=bash
# The Rust that is there, and the cargo-pgrx that Cargo.toml asks for.

RUSTUP="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"

# Sets RUST_FLAGS (an array), or stops with the line that installs Rust. We never install it ourselves.
find_rust() {
    local wanted version
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    if ! command -v cargo >/dev/null; then
        [ -z "${SUDO_USER:-}" ] || say "(Run ./dev as $SUDO_USER: it calls sudo by itself where it must.)"
        command -v curl >/dev/null || say "(curl is missing, too: apt-get install curl ca-certificates)"
        fail "Rust is missing. This installs it; then run ./dev again:"$'\n\n    '"$RUSTUP"$'\n'
    fi
    version=$(rustc --version 2>&1) || fail "Rust does not run: $version"
    version=$(cut -d' ' -f2 <<<"$version")
    if ! printf '%s\n' "$wanted" "$version" | sort -VC; then
        fail "Rust $version is too old, $wanted or newer is needed. Either: rustup update stable, or:"$'\n\n    '"$RUSTUP"$'\n'
    fi
    mapfile -t RUST_FLAGS < <(scripts/rust-flags)
}

# Sets CARGO_PGRX. A version of the user's own stays what it is; ours is installed beside it, once.
find_cargo_pgrx() {
    local wanted
    wanted=$(sed -n 's/^pgrx = .*version = "=\([0-9.]*\)".*/\1/p' Cargo.toml)
    CARGO_PGRX="cargo pgrx"
    [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $wanted" ] || return 0
    CARGO_PGRX="$CACHE/cargo-pgrx-$wanted/bin/cargo-pgrx pgrx"
    [ ! -x "${CARGO_PGRX% pgrx}" ] || return 0
    # Unoptimized: it runs for seconds, and optimizing it takes minutes. Without features: they are for downloading
    # PostgreSQL.
    step "Installing cargo-pgrx $wanted" env CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install cargo-pgrx --version "=$wanted" --locked --debug --no-default-features "${RUST_FLAGS[@]}" \
        --root "$CACHE/cargo-pgrx-$wanted" --target-dir "$CACHE/cargo-pgrx-build"
    rm -rf "$CACHE/cargo-pgrx-build"
}

# has_target TARGET: whether Rust's standard library for it is there. rustup fetches it where it can; nothing depends on that.
has_target() {
    compgen -G "$(rustc --print target-libdir --target "$1")/libstd-*.rlib" >/dev/null && return
    command -v rustup >/dev/null && timeout 60 rustup target add "$1" >>"$LOG" 2>&1 </dev/null
}
