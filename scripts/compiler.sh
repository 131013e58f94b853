# shellcheck shell=bash
# What compiling opens besides PostgreSQL's own files: programs, libclang, and headers. Each piece with Debian's package.

# Whether bindgen will find a libclang: where clang-sys looks.
has_libclang() {
    local directory=${LIBCLANG_PATH:-} prefix
    prefix=$(llvm-config --prefix 2>/dev/null) || prefix=''
    for directory in ${directory:+"$directory" "${directory%/*}"} ${prefix:+"$prefix/lib" "$prefix/lib64"} \
        ${LD_LIBRARY_PATH:+${LD_LIBRARY_PATH//:/ }} "$SYSTEM"/usr/{,local/}{llvm*/lib*,lib*,lib*/*,lib*/*/*}; do
        ! compgen -G "$directory/libclang[.-]*so*" >/dev/null || return 0
    done
    return 1
}

# compiles HEADER [OPTION...]: whether clang finds the header and what that includes; else prints what clang says.
compiles() {
    local header=$1
    shift
    printf '#include <%s>\n' "$header" | LC_ALL=C clang -fsyntax-only -w "$@" -x c - 2>&1
}

# Prints "PACKAGE<tab>WHAT IS MISSING" for each piece that is not there.
compiler_lacks() {
    local tool headers said status flags
    for tool in cc:gcc make:make clang:clang; do
        command -v "${tool%:*}" >/dev/null || printf '%s\tthe program %s\n' "${tool#*:}" "${tool%:*}"
    done
    has_libclang || printf 'libclang-dev\tthe library libclang.so\n'
    command -v clang >/dev/null || return 0
    if [ ! -f "$(clang -print-resource-dir)/include/stddef.h" ]; then
        printf 'libclang-common-%s-dev\tclang'"'"'s own header stddef.h\n' "$(clang -dumpversion | cut -d. -f1)"
        return
    fi
    compiles stdio.h >/dev/null || { printf 'libc6-dev\tthe header stdio.h\n' && return; }
    headers=$("$PG_CONFIG" --includedir-server)
    read -ra flags <<<"$("$PG_CONFIG" --cppflags)"
    flags+=("-I$headers")
    if grep -qs '^#define USE_ICU 1' "$headers"/pg_config*.h && ! compiles unicode/ucol.h "${flags[@]}" >/dev/null; then
        printf 'libicu-dev\tthe header unicode/ucol.h\n'
        return
    fi
    # What else the server's headers need shows when they are read.
    said=$(compiles postgres.h "${flags[@]}" -include postgres.h -include utils/pg_locale.h -include postmaster/postmaster.h) && return
    status=$?
    said=$(sed -n '/error:/{p;q}' <<<"$said")
    printf -- '-\tclang cannot read the server'"'"'s headers: %s\n' "${said:-it ended with status $status}"
}

# Stops with the packages to install where the compiler would stop with a backtrace.
check_compiler() {
    local lacking packages
    lacking=$(compiler_lacks)
    [ -n "$lacking" ] || return 0
    mapfile -t packages < <(cut -f 1 <<<"$lacking" | grep -vx -- -)
    fail "the compiler lacks: $(cut -f 2 <<<"$lacking" | paste -sd, | sed 's/,/, /g').${packages:+ As root, on Debian:
    $(apt_line "${packages[@]}")}"
}
