# shellcheck shell=bash
# ./dev lab: scenarios on other kernels and on machines that are not at hand, in QEMU guests without KVM, one at a time.
#
# A guest is a kernel of Debian, an initramfs with busybox, and two disks: a Debian tree with PostgreSQL and Python, and
# the project: its tests, library and sidecar. tests/lab/run.py boots them, runs the scenarios, and makes the table.
# Kernels and disks are kept below the cache; ./dev lab remove deletes them.
#
# Guests of arm64 have what those of amd64 have: their tree is unpacked from Debian's packages, and the library and the
# sidecar are cross-compiled against it.

LAB=$CACHE/lab
# The series of kernels, and the suites of Debian that have them. What the backports have is the newest.
LAB_KERNELS='5.10 6.1 6.12 newest'
declare -A LAB_SUITES=([5.10]=bullseye [6.1]=bookworm [6.12]=trixie [newest]=trixie-backports
    [6.1-arm64]=bookworm [6.12-arm64-16k]=trixie)
LAB_SHORT='5.10 newest'
# Only run if they are named: a guest of theirs takes several times as long. With base pages of 4 kB and of 16 kB.
LAB_ARM64='6.1-arm64 6.12-arm64-16k'
declare -A LAB_FLAVOURS=([6.1-arm64]=cloud-arm64 [6.12-arm64-16k]=arm64-16k)
# The machine debian-boot has Debian's stable and its PostgreSQL, on whichever kernel of amd64.
LAB_BOOT_MAJOR=17
LAB_ARM64_TARGET=aarch64-unknown-linux-gnu

run_lab() {    # [KERNEL..] [-k NAME] [--short] [--docs] [--steps N [--seed S]], or: remove
    local series architecture architectures wanted=() arguments=() short=''
    while [ $# -gt 0 ]; do
        case $1 in
            -k) [ $# -gt 1 ] || fail "-k takes a part of a scenario's or a machine's name"
                arguments+=(-k "$2") && shift ;;
            --short) arguments+=(--short) && short=yes ;;
            --docs) arguments+=(--docs) ;;
            --steps | --seed) [[ ${2-} =~ ^[1-9][0-9]*$ ]] || fail "$1 takes a number"
                arguments+=("$1" "$2") && shift ;;
            remove) rm -rf --one-file-system "$LAB" && return ;;
            *) [[ " $LAB_KERNELS $LAB_ARM64 " == *" $1 "* ]] || fail "no kernel is called '$1'; there are: $LAB_KERNELS $LAB_ARM64"
                wanted+=("$1") ;;
        esac
        shift
    done
    # shellcheck disable=SC2034
    PROFILE=quick
    # shellcheck disable=SC2206
    [ ${#wanted[@]} -gt 0 ] || wanted=(${short:+$LAB_SHORT})
    # shellcheck disable=SC2206
    [ ${#wanted[@]} -gt 0 ] || wanted=($LAB_KERNELS)
    mapfile -t architectures < <(for series in "${wanted[@]}"; do lab_architecture "$series"; done | sort -u)
    setup build trees "${architectures[@]/#/lab-}"
    build_extension
    take_trees
    mkdir -p "$LAB/kernels"
    for series in "${wanted[@]}"; do lab_kernel "$series"; done
    for architecture in "${architectures[@]}"; do
        # Without a kernel there is nothing to be made ready.
        for series in "${wanted[@]}"; do
            [ "$(lab_architecture "$series")" != "$architecture" ] || [ ! -s "$LAB/kernels/$series/vmlinuz" ] ||
                { lab_disks "$architecture" && break; }
        done
    done
    # One machine of many, which takes minutes.
    [[ " ${architectures[*]} " != *" amd64 "* ]] || [ "$short" ] || lab_disk_of_boots
    PYTHONPATH=tests "$PYTHON" tests/lab/run.py --lab "$LAB" --kernels "${wanted[*]}" "${arguments[@]}"
}

lab_architecture() { if [[ $1 == *-arm64* ]]; then echo arm64; else echo amd64; fi; }    # SERIES

# lab_kernel SERIES: fills $LAB/kernels/SERIES, with release, vmlinuz and modules, or with the reason why not.
lab_kernel() {
    local directory=$LAB/kernels/$1 suite=${LAB_SUITES[$1]} architecture flavour=${LAB_FLAVOURS[$1]-cloud-amd64}
    architecture=$(lab_architecture "$1")
    if [ "$architecture" = arm64 ] && ! has_target "$LAB_ARM64_TARGET"; then
        rm -rf "$directory"
        mkdir -p "$directory"
        echo "Rust has no standard library for $LAB_ARM64_TARGET here, and rustup could not fetch it" >"$directory/missing"
        return 0
    fi
    # A week: what the backports have changes.
    [ "$(cat "$directory/suite" 2>/dev/null)" != "$suite" ] || [ ! -s "$directory/release" ] ||
        [ -n "$(find "$directory/release" -mtime +7)" ] || return 0
    rm -rf "$directory"
    mkdir -p "$directory"
    echo "$suite" >"$directory/suite"
    say "The kernel $1, of Debian $suite"
    if ! (step "Downloading it" scripts/tree/kernel "$suite" "$architecture" "$flavour" "$directory"); then
        echo "Debian $suite could not be read, or has no linux-image-$flavour" >"$directory/missing"
    fi
}

# lab_disks ARCHITECTURE: the two disks in $LAB/ARCHITECTURE, and the initramfs of each of its kernels.
lab_disks() {
    local architecture=$1 disks=$LAB/$1 project=$LAB/$1/project tree kernel
    mkdir -p "$disks"
    "lab_tree_$architecture"
    [ "$disks/root$PG_MAJOR.img" -nt "$tree/pg_hugepages.packages" ] ||
        step "Making the guests' disk" make_disk "$tree" "$disks/root$PG_MAJOR.img" 1024

    rm -rf "$project"
    mkdir -p "$project/installed" "$project/staged"
    cp -r "$TREES/source/tests" "$project/tests"
    step "Collecting the project's programs" make_extension install env DESTDIR="$project/staged"
    find "$project/staged" -name pg_hugepages.so -exec mv {} "$project/installed/" \;
    find "$project/staged" -name hugepage-sidecar -exec mv {} "$project/installed/" \;
    find "$project/staged" -type d -name extension -exec mv {} "$project/installed/extension" \; -prune
    rm -rf "$project/staged"
    "lab_programs_$architecture" "$project/installed" "$tree"
    step "Making the project's disk" make_disk "$project" "$disks/project.img" 32

    for kernel in "$LAB"/kernels/*/vmlinuz; do
        [ ! -s "$kernel" ] || [ "$(lab_architecture "$(basename "${kernel%/*}")")" != "$architecture" ] ||
            step "Packing an initramfs for $(basename "${kernel%/*}")" make_initramfs "${kernel%/*}" "$tree"
    done
}

# Each sets `tree`, of the function that calls it, to a Debian tree with what the guests need, and makes it first if need be.
lab_tree_amd64() {
    tree=$TREES/lab$PG_MAJOR
    if [ ! -d "$tree" ]; then
        bare_tree "$(suite_of "$PG_MAJOR")"
        step "A copy of it for the lab" as_root copy_tree "$TREES/$(suite_of "$PG_MAJOR")" "$tree.unfinished"
        step "Installing PostgreSQL $PG_MAJOR there" in_tree --keep "$tree.unfinished" scripts/tree/server "$PG_MAJOR"
        # shellcheck disable=SC2016
        step "Making a cluster to copy there" in_tree --keep "$tree.unfinished" runuser -u postgres -- sh -c \
            'cd / && exec /usr/lib/postgresql/*/bin/initdb -D /var/lib/postgresql/template -U postgres -A trust -N --locale=C -E UTF8'
        as_root mv "$tree.unfinished" "$tree"
    fi
    add_to_tree "$tree" run test guest walks
}

lab_tree_arm64() {
    local packages headers
    tree=$TREES/lab$PG_MAJOR-arm64
    mapfile -t packages < <(echo "postgresql-$PG_MAJOR" && packages_for run test guest walks | sort -u)
    headers=("postgresql-server-dev-$PG_MAJOR" libc6-dev linux-libc-dev libicu-dev)
    [ "$(cat "$tree/pg_hugepages.packages" 2>/dev/null)" != "${packages[*]} ${headers[*]}" ] || return 0
    as_root rm -rf --one-file-system "$tree"
    step "Unpacking a tree of Debian $(suite_of "$PG_MAJOR") for arm64" as_root scripts/tree/foreign \
        "$(suite_of "$PG_MAJOR")" arm64 "$tree" "${packages[@]}" -- "${headers[@]}"
    as_root tee "$tree/pg_hugepages.packages" <<<"${packages[*]} ${headers[*]}" >/dev/null
}

# Each leaves in INSTALLED a library and a sidecar that run in the tree: lab_programs_ARCHITECTURE INSTALLED TREE
lab_programs_amd64() {
    local lacking
    lacking=$(in_tree --ro "$1=/mnt" "$2" sh -c 'ldd /mnt/pg_hugepages.so 2>&1' | grep 'not found') || true
    [ -z "$lacking" ] || fail "the library compiled here does not load in Debian $(suite_of "$PG_MAJOR"): $lacking"
}

lab_programs_arm64() {
    local built=$CARGO_TARGET_DIR/$LAB_ARM64_TARGET/$PROFILE
    step "Compiling sidecar and library for arm64" cross_compile "$2"
    cp "$CARGO_TARGET_DIR/static/$LAB_ARM64_TARGET/$PROFILE/hugepage-sidecar" "$1/"
    cp "$built/libpg_hugepages.so" "$1/pg_hugepages.so"
}

cross_compile() {    # TREE
    local build=(cargo build --locked "${RUST_FLAGS[@]}" --profile "$PROFILE" --target "$LAB_ARM64_TARGET") bin=$LAB/arm64/bin
    # The compiler with the tree's headers and libraries, under its own name, so that whoever calls it needs no flags.
    mkdir -p "$bin"
    printf '#!/bin/sh\nexec "%s" "--sysroot=%s" "$@"\n' "$(command -v aarch64-linux-gnu-gcc)" "$1" >"$bin/aarch64-linux-gnu-gcc"
    chmod +x "$bin/aarch64-linux-gnu-gcc"
    export PATH=$bin:$PATH CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--sysroot=$1" PGRX_PG_CONFIG_PATH=$PG_CONFIG
    export "PGRX_INCLUDEDIR_SERVER_PG$PG_MAJOR=$1/usr/include/postgresql/$PG_MAJOR/server"
    RUSTFLAGS="${RUSTFLAGS:-} $(scripts/compile-flags)" "${build[@]}" --package pg_hugepages --lib \
        --no-default-features --features "pg$PG_MAJOR"
    # Compiled apart: with other flags in one place, each would undo the other's work.
    RUSTFLAGS="${RUSTFLAGS:-} $(scripts/compile-flags static)" "${build[@]}" --package hugepage-sidecar \
        --target-dir "$CARGO_TARGET_DIR/static"
}

# make_disk TREE IMAGE MB: an ext4 that Linux 5.10 can read, with that much free space.
make_disk() {
    local used
    used=$(as_root du -sm --apparent-size "$1" | cut -f1)
    rm -f "$2.unfinished"
    as_root mke2fs -q -t ext4 -O none,extents,filetype,sparse_super,dir_index -m 0 -d "$1" "$2.unfinished" $((used * 5 / 4 + $3))M
    as_root chown "$(id -u)" "$2.unfinished"
    mv "$2.unfinished" "$2"
}

# The tree of the machine debian-boot: a Debian whose process 1 is systemd, with a PostgreSQL that starts at a boot and needs huge pages.
lab_tree_of_boots() {
    tree=$TREES/boot
    [ ! -d "$tree" ] || return 0
    bare_tree trixie
    step "A copy of it for the lab's boots" as_root copy_tree "$TREES/trixie" "$tree.unfinished"
    step "Installing systemd and PostgreSQL there" in_tree --keep "$tree.unfinished" scripts/tree/server "$LAB_BOOT_MAJOR" systemd-sysv procps
    step "Making a cluster there" in_tree --keep "$tree.unfinished" pg_createcluster "$LAB_BOOT_MAJOR" main --start-conf auto
    as_root mv "$tree.unfinished" "$tree"
}

# lab_disk_of_boots: $LAB/boot/root.img, with the sidecar and its units as its packages install them, and the agent.
lab_disk_of_boots() {
    local tree image=$LAB/boot/root.img copy=$LAB/boot/tree installed=$LAB/amd64/project/installed
    lab_tree_of_boots
    mkdir -p "$LAB/boot"
    as_root rm -rf "$copy"
    # Links to files, none of which is written to.
    step "Linking a tree with the sidecar" as_root cp -al "$tree" "$copy"
    as_root rm -rf "$copy"/usr/share/{doc,locale,man} "$copy"/var/{cache/apt,lib/apt/lists} "$copy"/usr/lib/*/libLLVM* "$copy"/usr/lib/*/libz3* "$copy/.config"
    as_root install -m 0755 "$installed/hugepage-sidecar" "$copy/usr/bin/hugepage-sidecar"
    as_root install -m 0644 packaging/systemd/hugepage-*.service tests/lab/debian/lab-agent.service "$copy/usr/lib/systemd/system/"
    as_root install -m 0755 tests/lab/debian/agent "$copy/usr/local/sbin/lab-agent"
    as_root systemctl --root="$copy" --quiet enable lab-agent.service
    # Nothing waits for a device or a module that is not there.
    as_root systemctl --root="$copy" --quiet mask serial-getty@ttyS0.service systemd-modules-load.service
    as_root systemctl --root="$copy" --quiet disable apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer
    step "Making the disk of the machine debian-boot" make_disk "$copy" "$image" 256
    as_root rm -rf "$copy"
}

make_initramfs() {    # DIRECTORY TREE
    local root=$1/root
    rm -rf "$root"
    mkdir -p "$root"/{bin,proc,sys,dev,root,modules}
    cp "$2/bin/busybox" "$root/bin/"
    cp tests/lab/guest/init tests/lab/guest/pools "$root/"
    cp "$1"/modules/*.ko "$root/modules/"
    (cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$1/initramfs"
    rm -rf "$root"
}
