# shellcheck shell=bash
# The Debian packages that each purpose needs, and installing those that are missing.

# packages_for NEED...: one package a line.
packages_for() {
    local need
    for need in "$@"; do
        case $need in
            unit) printf '%s\n' gcc libc6-dev git python3 python3-pytest xz-utils ;;
            build) printf '%s\n' gcc libc6-dev make clang libclang-dev libicu-dev zlib1g-dev ;;
            run) printf '%s\n' python3 python3-psycopg2 procps ;;
            test) printf '%s\n' python3-pytest openssl strace systemd runc crun python3-yaml ;;
            # What the scenarios of that marker need besides.
            any-major) printf '%s\n' bc podman python3-venv python3-yaml python3-selenium python3-prometheus-client \
                prometheus prometheus-alertmanager prometheus-postgres-exporter prometheus-sql-exporter prometheus-node-exporter
                # Docker's own package of it would go.
                command -v containerd >/dev/null || echo containerd
                browser_packages ;;
            pictures) browser_packages ;;
            bench-test) echo python3-matplotlib ;;
            oracle)    # the parsers of its SQL, by whatever Java, Maven and npm are there, and orafce: see below
                echo python3-hypothesis
                command -v java >/dev/null || echo default-jre-headless
                command -v mvn >/dev/null || echo maven
                command -v npm >/dev/null || echo npm
                ;;
            walks) printf '%s\n' python3-hypothesis python3-yaml ;;
            # What builds images, without a daemon.
            image) printf '%s\n' buildah netavark ;;
            dist) printf '%s\n' xz-utils rpm ;;
            package) printf '%s\n' debhelper dpkg-dev lintian ;;
            # Debian's tools for packages of PostgreSQL extensions, under their newer name where there is one.
            package-15 | package-16) echo postgresql-server-dev-all ;;
            package-*) echo postgresql-common-dev ;;
            rpm) printf '%s\n' rpm rpm2cpio rpmlint cpio busybox-static ansible-core ansible-lint ;;
            # Cross-compiled, and run in an emulator.
            arm64) printf '%s\n' gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static ;;
            trees) printf '%s\n' debootstrap python3-pip ;;
            lab-amd64) printf '%s\n' qemu-system-x86 cpio e2fsprogs xz-utils ;;
            # The compiler links; the libraries are those of the guests' tree.
            lab-arm64) printf '%s\n' qemu-system-arm gcc-aarch64-linux-gnu cpio e2fsprogs xz-utils ;;
            # What the guests of the lab have besides what `run test` needs.
            guest) printf '%s\n' numactl busybox-static ;;
            lint) printf '%s\n' shellcheck python3-pyflakes python3-pip python3-jsonschema python3-yaml ;;
        esac
    done
}

missing() {    # PACKAGE...: those that are not installed
    local package
    for package in "$@"; do
        # A line for each architecture.
        [[ $'\n'$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null)$'\n' == *$'\ninstalled\n'* ]] || echo "$package"
    done
}

apt_line() {    # PACKAGE...: what installs them, to be typed
    local again=' --reinstall'
    [ -z "$(missing "$@")" ] || again=''
    echo "apt-get install$again --no-install-recommends $*"
}

# A browser for the report's tests, unless one is there. Ubuntu has Chromium as a snap alone: Google's Chrome will do.
browser_packages() {
    local browser
    for browser in chromium google-chrome; do
        ! command -v "$browser" >/dev/null || ! command -v chromedriver >/dev/null || return 0
    done
    printf '%s\n' chromium chromium-driver
}

# Takes packages, one a line, and leaves out a browser that this distribution does not have.
unless_no_browser() {
    local package
    while read -r package; do
        if [[ $package == chromium* ]] && ! has_candidate "$package"; then
            say "There is no package $package here: the report is not looked at in a browser." >&2
        else
            echo "$package"
        fi
    done
}

# Prints the package of orafce for the server that is there or wanted, else for the newest that has one.
orafce_package() {
    local major
    for major in $(wanted_major) $(newest_first); do
        ! has_candidate "postgresql-$major-orafce" || { echo "postgresql-$major-orafce" && return; }
    done
}

# still_missing NEED...: the packages to install for them by what apt knows now.
still_missing() {
    local wanted
    mapfile -t wanted < <(packages_for "$@")
    [[ " $* " != *" build "* ]] || mapfile -t -O "${#wanted[@]}" wanted < <(postgresql_packages)
    [[ " $* " != *" oracle "* ]] || compgen -G "$SYSTEM/usr/share/postgresql/*/extension/orafce.control" >/dev/null ||
        mapfile -t -O "${#wanted[@]}" wanted < <(orafce_package)
    missing "${wanted[@]}"
}

# Once: for Rust, or for the other packages.
read_package_list() {
    [ -n "${PACKAGE_LIST_READ:-}" ] || step "Reading the list of Debian packages" as_root apt-get -q -o DPkg::Lock::Timeout=600 update
    PACKAGE_LIST_READ=yes
}

# install_packages NEED...: what is missing, or a word about it where we may not.
install_packages() {
    local absent
    if ! command -v dpkg-query >/dev/null; then
        mapfile -t absent < <(packages_for "$@")
        say "This is not Debian or Ubuntu. What they call this has to be there: ${absent[*]}"
        return 0
    fi
    mapfile -t absent < <(still_missing "$@")
    [ ${#absent[@]} -gt 0 ] || needs_postgresql "$@" || return 0
    if ! have_root; then
        ! needs_postgresql "$@" || explain_postgresql "${absent[@]}"
        say "Not installed, and there is no root to install it:
    $(apt_line "${absent[@]}")
Going on with what is there."
        return 0
    fi
    read_package_list
    mapfile -t absent < <(still_missing "$@" | unless_no_browser)
    # What apt does not have is told in words, and before minutes of installing.
    ! needs_postgresql "$@" || can_complete_postgresql || explain_postgresql "${absent[@]}"
    [ ${#absent[@]} -eq 0 ] || step "Installing ${#absent[@]} Debian packages" as_root scripts/apt-install "${absent[@]}"
}

needs_postgresql() {    # NEED...: whether it has to be completed for them
    [[ " $* " == *" build "* ]] && ! complete_pg_config >/dev/null
}
