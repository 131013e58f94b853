# shellcheck shell=bash
# The Rust that is there, else one of our own beside it.

RUSTUP="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
OWN_RUST=$CACHE/rust

# find_rust NEED...: puts a Rust that does for them on the PATH: the PATH's, the user's, or our own, which is installed where
# none does. Sets RUST_FLAGS (an array).
# shellcheck disable=SC2034
find_rust() {
    local wanted here
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! use_rust "$wanted" "$@"; then
        here=$(rust_version) || here=''
        if at_least "$wanted" "$here"; then
            say "Debian's Rust does not run in another Debian: ./dev installs one for itself."
        else
            say "Rust $wanted or newer is needed, and ${here:-none} is here: ./dev installs one for itself."
        fi
        install_rust "$wanted" "$@"
        use_rust "$wanted" "$@" || fail "the Rust that was just installed does not run; what was said is in $LOG"
    fi
    mapfile -t RUST_FLAGS < <(scripts/rust-flags)
}

use_rust() {    # WANTED NEED...
    local users=${CARGO_HOME:-$HOME/.cargo}/bin own
    ! rust_does "$PATH" "$@" || return 0
    ! rust_does "$users:$PATH" "$@" || { PATH=$users:$PATH && return; }
    own=$(compgen -G "$OWN_RUST/rustup/toolchains/*/bin") && rust_does "$own:$PATH" "$@" || return
    PATH=$own:$OWN_RUST/cargo/bin:$PATH
    export RUSTUP_HOME=$OWN_RUST/rustup CARGO_HOME=$OWN_RUST/cargo
    unset RUSTUP_TOOLCHAIN
}

# Whether the Rust of a PATH is new enough; for trees it has to run in other Debians, too.
rust_does() {    # PATH WANTED NEED...
    local PATH=$1 version
    version=$(rust_version) && at_least "$2" "$version" || return
    [[ " $* " != *" trees "* ]] || [ "$(rustc --print sysroot)" != /usr ]
}

rust_version() {    # nothing, and fails, where rustc or cargo does not run
    local said
    # A rustup without toolchains would make its directory in the home.
    [ -d "${RUSTUP_HOME:-$HOME/.rustup}" ] || local -x RUSTUP_HOME=$OWN_RUST/none
    said=$(rustc --version 2>/dev/null) && cargo --version >/dev/null 2>&1 && cut -d' ' -f2 <<<"$said"
}

at_least() { printf '%s\n' "$@" | sort -VC; }    # WANTED VERSION

# Debian's Rust where there is none and that is new enough; else one in the cache, by Debian's rustup or by scripts/install-rust.
install_rust() {    # WANTED NEED...
    local packages=() absent
    if command -v dpkg-query >/dev/null && have_root; then
        read_package_list
        mapfile -t packages < <(rust_packages "$@")
        mapfile -t absent < <(missing "${packages[@]}")
        [ ${#absent[@]} -eq 0 ] || step "Installing ${absent[*]}" as_root scripts/apt-install "${absent[@]}"
        [ "${packages[0]}" != rustc ] || return 0
    fi
    (step "Installing Rust in $OWN_RUST" "$PYTHON" scripts/install-rust "$OWN_RUST") ||
        fail "Rust could not be downloaded. This installs it; then run ./dev again:"$'\n\n    '"$RUSTUP"$'\n'
}

# Debian's packages exclude each other, and a Rust that is there stays as it is.
rust_packages() {    # WANTED NEED...
    if command -v rustc >/dev/null || command -v cargo >/dev/null; then
        printf '%s\n' python3 ca-certificates
    elif [[ " $* " != *" trees "* ]] && at_least "$1" "$(candidate rustc)" && at_least "$1" "$(candidate cargo)"; then
        printf '%s\n' rustc cargo rustfmt rust-clippy ca-certificates
    else
        printf '%s\n' python3 ca-certificates
        ! has_candidate rustup || echo rustup
    fi
}

# Prints the target of a released sidecar; fails where Rust has no musl for it.
release_target() {    # ARCHITECTURE
    local target=$1-unknown-linux-musl
    has_target "$target" || fail "a released sidecar is linked with musl: Rust's standard library for $target is not here, and rustup could not fetch it"
    echo "$target"
}

# has_target TARGET: whether Rust's standard library for it is there. rustup fetches it where it can; nothing depends on that.
has_target() {
    compgen -G "$(rustc --print target-libdir --target "$1")/libstd-*.rlib" >/dev/null && return
    command -v rustup >/dev/null && timeout 60 rustup target add "$1" >>"$LOG" 2>&1 </dev/null
}
