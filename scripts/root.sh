# shellcheck shell=bash
# Root where it is needed: as we are, or through sudo, or not at all.

ROOT=''    # direct, sudo or none, once it is known

# have_root PURPOSE: whether as_root can work; asks for sudo's password where there is a terminal.
have_root() {
    if [ "$EUID" -eq 0 ]; then
        ROOT=direct
    elif [ "$ROOT" != none ]; then
        if ! command -v sudo >/dev/null; then
            ROOT=none
        elif sudo -n true 2>/dev/null; then
            ROOT=sudo
        elif [ -t 0 ] && say "Root is needed to $1. (Without it: three times Enter.)" && sudo -v; then
            ROOT=sudo
        else
            ROOT=none
        fi
    fi
    [ "$ROOT" != none ]
}

# Runs a command as root. Only after have_root.
as_root() {
    if [ "$ROOT" = sudo ]; then sudo "$@"; else "$@"; fi
}
