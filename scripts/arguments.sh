# shellcheck shell=bash
# What ./dev is asked for, before anything is installed or compiled for it.

# check_arguments COMMAND ARGUMENT...: fails if the command does not know one.
check_arguments() {
    local command=$1 major
    shift
    case $command in
        demo | lint | book | pictures | sql | build | install | image | dist | sbom | reproducible)
            [ $# -eq 0 ] || fail "'$command' takes no arguments, such as '$1'"
            ;;
        setup) [[ "$*" =~ ^(--all)?$ ]] || fail "'setup' takes --all, not '$*'" ;;
        release)
            [[ "$*" =~ ^(--check(\ [^ ]+)?|--dry-run)$ ]] || fail "'release' takes --check, with a tag or without, or --dry-run, not '$*'"
            ;;
        supply-chain) [[ "$*" =~ ^(--advisories)?$ ]] || fail "'supply-chain' takes --advisories, not '$*'" ;;
        matrix)
            for major in "$@"; do
                [[ $major =~ ^--(short|compile|docs)$ ]] || supported "$major" || fail "no major is called '$major'; there are: $SUPPORTED"
                [[ $major == --* ]] || check_suite "$major"
            done
            ;;
        package)
            scripts/maintainer >/dev/null ||
                fail "who answers for the packages? Set DEBFULLNAME and DEBEMAIL to a name and an address, or write them into MAINTAINERS"
            [[ ! "$*" =~ ^sidecar(\ arm64)?$ ]] || return 0
            for major in "$@"; do
                supported "$major" || fail "'package' takes sidecar, or majors of $SUPPORTED, not '$major'"
                check_suite "$major"
            done
            ;;
        soak)
            [[ ${1-} =~ ^([0-9]+(\.[0-9]*)?|\.[0-9]+)$ ]] || fail "'soak' takes a number of hours first, not '${1-}'"
            ;;
    esac
}

check_suite() {    # MAJOR
    can_read_suite_of "$1" ||
        fail "Debian has no PostgreSQL $1, and apt here reads no archive of Ubuntu, which has it; PGDG_SUITE=bookworm takes PostgreSQL's own"
}
