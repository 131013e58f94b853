# shellcheck shell=bash
# ./dev lab: scenarios on other kernels and on machines that are not at hand, in QEMU guests without KVM, one at a time.
#
# A guest is a kernel of Debian, an initramfs with busybox, and two disks: a Debian tree with PostgreSQL and Python, and
# the project: its tests, library and sidecar. tests/lab/run.py boots them, runs the scenarios, and makes the table.
# Kernels and disks are kept below the cache; ./dev lab remove deletes them.

LAB=$CACHE/lab
# The series of kernels, and the suites of Debian that have them. What sid has is the newest.
LAB_KERNELS='5.10 6.1 6.12 newest'
declare -A LAB_SUITES=([5.10]=bullseye [6.1]=bookworm [6.12]=trixie [newest]=sid)
LAB_SHORT='5.10 newest'

run_lab() {    # [KERNEL..] [-k NAME] [--short] [--docs] [--captures DIRECTORY] [--steps N [--seed S]], or: remove
    local series wanted=() arguments=() short=''
    while [ $# -gt 0 ]; do
        case $1 in
            -k) [ $# -gt 1 ] || fail "-k takes a part of a scenario's or a machine's name"
                arguments+=(-k "$2") && shift ;;
            --short) arguments+=(--short) && short=yes ;;
            --docs) arguments+=(--docs) ;;
            --steps | --seed) [[ ${2-} =~ ^[1-9][0-9]*$ ]] || fail "$1 takes a number"
                arguments+=("$1" "$2") && shift ;;
            --captures) [ $# -gt 1 ] || fail "--captures takes a directory"
                arguments+=(--captures "$2") && shift ;;
            remove) rm -rf --one-file-system "$LAB" && return ;;
            *) [[ " $LAB_KERNELS " == *" $1 "* ]] || fail "no kernel is called '$1'; there are: $LAB_KERNELS"
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
    setup build lab trees
    build_extension
    take_trees
    mkdir -p "$LAB/kernels"
    for series in "${wanted[@]}"; do lab_kernel "$series"; done
    lab_disks
    PYTHONPATH=tests "$PYTHON" tests/lab/run.py --lab "$LAB" --kernels "${wanted[*]}" "${arguments[@]}"
}

# lab_kernel SERIES: fills $LAB/kernels/SERIES, with release, vmlinuz and initramfs, or with the reason why not.
lab_kernel() {
    local directory=$LAB/kernels/$1 suite=${LAB_SUITES[$1]}
    # A week: what sid has changes.
    [ ! -s "$directory/release" ] || [ -n "$(find "$directory/release" -mtime +7)" ] || return 0
    rm -rf "$directory"
    mkdir -p "$directory"
    say "The kernel $1, of Debian $suite"
    if ! (step "Downloading it" scripts/tree/kernel "$suite" "$directory"); then
        echo "Debian $suite could not be read, or has no linux-image-cloud-amd64" >"$directory/missing"
    fi
}

# The two disks, and each kernel's initramfs.
lab_disks() {
    local tree=$TREES/lab$PG_MAJOR project=$LAB/project lacking kernel
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
    [ "$LAB/root$PG_MAJOR.img" -nt "$tree/pg_hugepages.packages" ] || step "Making the guests' disk" make_disk "$tree" "$LAB/root$PG_MAJOR.img" 1024

    rm -rf "$project"
    mkdir -p "$project/installed" "$project/staged"
    cp -r "$TREES/source/tests" "$project/tests"
    step "Collecting the project's programs" make_extension install env DESTDIR="$project/staged"
    find "$project/staged" -name pg_hugepages.so -exec mv {} "$project/installed/" \;
    find "$project/staged" -name hugepage-sidecar -exec mv {} "$project/installed/" \;
    find "$project/staged" -type d -name extension -exec mv {} "$project/installed/extension" \; -prune
    rm -rf "$project/staged"
    lacking=$(in_tree --ro "$project=/mnt" "$tree" sh -c 'ldd /mnt/installed/pg_hugepages.so 2>&1' | grep 'not found') || true
    [ -z "$lacking" ] || fail "the library compiled here does not load in Debian $(suite_of "$PG_MAJOR"): $lacking"
    step "Making the project's disk" make_disk "$project" "$LAB/project.img" 32

    for kernel in "$LAB"/kernels/*/vmlinuz; do
        [ ! -s "$kernel" ] || step "Packing an initramfs for $(basename "${kernel%/*}")" make_initramfs "${kernel%/*}" "$tree"
    done
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

make_initramfs() {    # DIRECTORY TREE
    local root=$1/root
    rm -rf "$root"
    mkdir -p "$root"/{bin,proc,sys,dev,root,modules}
    cp "$2/bin/busybox" "$root/bin/"
    cp tests/lab/guest/init "$root/init"
    cp "$1"/modules/*.ko "$root/modules/"
    (cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$1/initramfs"
    rm -rf "$root"
}
