# shellcheck shell=bash
# Root where it is needed: as we are, or through sudo, or not at all.

ROOT=''    # direct, sudo or none, once it is known

# Whether as_root can work; asks for sudo's password where there is a terminal and sudo wants one.
have_root() {
    if [ "$(id -u)" -eq 0 ]; then
        ROOT=direct
    elif [ "$ROOT" != none ]; then
        if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || ask_for_password; }; then
            ROOT=sudo
        else
            ROOT=none
        fi
    fi
    [ "$ROOT" != none ]
}

ask_for_password() {
    [ -t 0 ] && (: </dev/tty) 2>/dev/null || return 1
    say "Root is needed for Debian packages, for installing the extension, and for huge"
    say "pages. To go on without: press Enter until sudo gives up."
    sudo -v
}

# Runs a command as root. Only after have_root.
as_root() {
    if [ "$ROOT" = sudo ]; then sudo "$@"; else "$@"; fi
}
