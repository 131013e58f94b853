# shellcheck shell=bash
# The state no-rust of ./dev fresh: nothing of Rust is there. ./dev downloads it; where that can't be had from here, a server of
# our own has a stand-in for rustup-init, which "installs" the host's toolchain.

TOOLCHAIN_SHOWN=/srv/rust    # to the stand-in; no PATH leads there

# shellcheck disable=SC2034
# Sets TOOLCHAIN_INSIDE and adds to LOGIN.
offer_rust() {
    local url served=$FRESH_LOGS/rust-server sha256 port=''
    TOOLCHAIN_INSIDE=()
    url=$("$PYTHON" scripts/install-rust --url)
    # Not the headers alone: a proxy may answer in place of the server.
    if "$PYTHON" -c 'import sys, urllib.request as u; sys.exit(u.urlopen(sys.argv[1], timeout=20).read(4) != b"\x7fELF")' "$url" 2>>"$LOG"; then
        say "Rust is downloaded from where it comes from."
        return
    fi
    say "Rust can't be downloaded here: a stand-in for rustup-init is served, which installs this machine's own."
    TOOLCHAIN_INSIDE=(--ro "$TOOLCHAIN_OF_HOST=$TOOLCHAIN_SHOWN")
    url=$(RUSTUP_UPDATE_ROOT=/ "$PYTHON" scripts/install-rust --url)
    mkdir -p "$served${url%/*}"
    cat >"$served$url" <<END
#!/bin/sh
mkdir -p "\$RUSTUP_HOME/toolchains" "\$CARGO_HOME/bin" && ln -s $TOOLCHAIN_SHOWN "\$RUSTUP_HOME/toolchains/stable"
END
    sha256=$(sha256sum "$served$url")
    # It ends with this shell, however that ends.
    : >"$served.log"
    setpriv --pdeathsig TERM "$PYTHON" -u -m http.server --bind 127.0.0.1 --directory "$served" 0 >"$served.log" 2>&1 </dev/null &
    until [ -n "$port" ]; do
        kill -0 $! || fail "the server of the stand-in ended: $(cat "$served.log")"
        port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$served.log")
        sleep 0.1
    done
    LOGIN+=(RUSTUP_UPDATE_ROOT="http://127.0.0.1:$port" RUSTUP_INIT_SHA256="${sha256%% *}"
        no_proxy="127.0.0.1${no_proxy:+,$no_proxy}")
}

# Looks at what has changed in the newcomer's home; says what of it rustup would change by itself.
rust_misses() {    # DIRECTORY
    local found
    found=$(as_root find "$1" -maxdepth 1 '(' -name .cargo -o -name .rustup -o -name '.*profile' -o -name .bashrc -o -name .zshenv ')' -printf ' %f')
    [ -z "$found" ] || echo "it changed the home:$found"
}
