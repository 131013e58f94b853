# shellcheck shell=bash
# ./dev image: the image of the sidecar, as an OCI archive, by buildah without a daemon. It is tried as a container would run it.

run_image() {
    local out=$CACHE/packages/image version target licences
    have_root "build an image" || fail "this needs root (or sudo): buildah mounts what it builds"
    version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
    target=$(release_target "$(uname -m)") || exit
    licences=$(scripts/licences --check | sed -n 's/^hugepage-sidecar: //p')
    rm -rf "$out" && mkdir -p "$out/context/licenses/hugepage-sidecar"
    step "Compiling the sidecar" make --no-print-directory sidecar PG_CONFIG="$PG_CONFIG" BUILD_DIR="$out/build" SIDECAR_TARGET="$target"
    step "It holds nothing of glibc" scripts/no-glibc "$out/build/hugepage-sidecar"
    cp "$out/build/hugepage-sidecar" "$out/context/"
    cp packaging/licences/hugepage-sidecar.copyright "$out/context/licenses/hugepage-sidecar/copyright"
    step "Building the image" as_root scripts/build-image "$out" "$version" "$licences"
    rm -rf "$out/build" "$out/context"
    (cd "$out" && stat -c "%s bytes  $out/%n" -- *)
}
