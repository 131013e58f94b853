# shellcheck shell=bash
# ./dev package sidecar: the sidecar for hosts without Debian: RPMs, a tar, and the Ansible role that installs them. They are
# checked by rpmlint and ansible-lint, and installed, upgraded and removed in a root of rpm's own. With arm64 they are
# cross-compiled, and the program runs in an emulator.

run_sidecar_packages() {    # [arm64]
    local out=$CACHE/packages/sidecar${1:+-$1} version architecture release target emulator=''
    have_root "install RPMs in a root of their own" || fail "this needs root (or sudo): it installs RPMs in a root of their own"
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/;s/-/~/;p;q}' Cargo.toml)
    architecture=$(uname -m)
    if [ -n "${1-}" ] && [ "$architecture" != aarch64 ]; then
        architecture=aarch64 emulator=qemu-aarch64-static
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
    fi
    target=$(release_target "$architecture") || exit
    rm -rf "$out" && mkdir -p "$out"
    step "Compiling the sidecar" make --no-print-directory sidecar PG_CONFIG="$PG_CONFIG" BUILD_DIR="$out/build" SIDECAR_TARGET="$target"
    step "It holds nothing of glibc" scripts/no-glibc "$out/build/hugepage-sidecar"
    for release in 1 2; do
        step "Making the RPMs, release $release" make_rpms "$out" "$version" "$release" "$architecture"
    done
    # A filter may be for one architecture alone.
    step "rpmlint" rpmlint --strict --rpmlintrc packaging/rpm/rpmlintrc --ignore-unused-rpmlintrc "$out"/rpm-1/*.rpm
    step "ansible-lint" lint_role
    step "Making the tar" make_tar "$out" "$version" "$architecture"
    as_root scripts/try-rpms "$out" "$version" "$architecture" $emulator
    as_root scripts/try-tar "$out/hugepage-sidecar-$version-$architecture.tar.gz" $emulator
    # What the role installs has to run here.
    [ -n "$emulator" ] || as_root env PATH="$PATH" scripts/try-role "$out/hugepage-sidecar-$version-$architecture.tar.gz"
    mv "$out"/rpm-1/*.rpm "$out"
    rm -rf "$out"/build "$out"/rpm-[12]
    (cd "$out" && stat -c "%s bytes  $out/%n" -- *)
}

lint_role() { (cd packaging/ansible && ansible-lint --offline --profile production playbook.yml roles/hugepage_sidecar); }

# make_rpms OUT VERSION RELEASE ARCHITECTURE: one for systemd since 231, one for older ones.
make_rpms() {
    local out=$1 version=$2 release=$3 sources=$1/build/sources old epoch
    epoch=$(git log -1 --format=%ct)
    rm -rf "$sources" && mkdir -p "$sources"
    cp -pR "$out/build/hugepage-sidecar" packaging/systemd/hugepage-*.service packaging/{man,completions} docs LICENSE packaging/licences/hugepage-sidecar.copyright "$sources"
    chmod -R u=rwX,go=rX "$sources/docs"
    make --no-print-directory install-sidecar-share PG_CONFIG="$PG_CONFIG" DESTDIR="$sources/share"
    for old in '' 1; do
        SOURCE_DATE_EPOCH=$epoch rpmbuild -bb --quiet --target "$4" --define "_topdir $out/build/rpm" --define "_sourcedir $sources" \
            --define "_rpmdir $out/rpm-$release" --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
            --define "version $version" --define "release $release" --define "maintainer $(scripts/maintainer)" ${old:+--define 'old_systemd 1'} \
            --define "changelog_date $(LC_ALL=C date -ud "@$epoch" '+%a %b %d %Y')" --define '_buildhost localhost' \
            ${PROJECT_URL:+--define "project_url $PROJECT_URL"} --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
            packaging/rpm/hugepage-sidecar.spec
    done
}

# make_tar OUT VERSION ARCHITECTURE: the files of the RPM, to be unpacked in /. Of directories only those that are not everybody's.
make_tar() {
    local out=$1 tree=$1/build/tar
    mkdir -p "$tree"
    (cd "$tree" && rpm2cpio "$out"/rpm-1/*-1."$3".rpm | cpio --quiet -idm)
    (cd "$tree" && find . -type f -o -path '*/hugepage-sidecar*' | sed 's:^\./::' | LC_ALL=C sort |
        tar --no-recursion --owner 0 --group 0 --numeric-owner --mtime "@$(git -C "$OLDPWD" log -1 --format=%ct)" \
            -T - -cf - | gzip -9n >"$out/hugepage-sidecar-$2-$3.tar.gz")
}
