#!/usr/bin/env bash
# image_test.sh BINARY (of a release build): builds the image of the Dockerfile with buildah, without a registry, and runs what is in it.
#
# All of the Dockerfile is real but for two things. Its base is made from Debian's mirrors (base.sh) instead of pulled. Its
# build stage gets BINARY, which a build folder has, instead of compiling it once more for half an hour; that every package of
# that build can be installed on the base is tried.
# Exit code 77, with the reason in the last line: no engine here. Closes with "N passed, N failed".
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
binary=$(realpath "$1")
build=$(dirname "$binary")/..
cd "$project"
# shellcheck source=../../dev
source ./dev --as-library
said=$("$here/base.sh") || { status=$?; echo "$said"; exit "$status"; }
read -r storage driver base <<<"$said"

# shellcheck source=../conformance/checks.sh
source tests/conformance/checks.sh

image=localhost/gpu-sharing-operator:test-$$
export BUILDAH_ISOLATION=chroot
engine() { buildah --root "$storage" --runroot "$work/run" --storage-driver "$driver" "$@"; }
containers=()
tidy() {
  ((${#containers[@]} == 0)) || engine rm "${containers[@]}" >/dev/null 2>&1 || true
  engine rmi "$image" >/dev/null 2>&1 || true
  engine rmi --prune >/dev/null 2>&1 || true
}
# Sets $container to a new one of an image.
container_of() {
  container=$(engine from --pull-never "$1")
  containers+=("$container")
}

pinned() { grep -qxE 'ARG BUILD_BASE=debian:bookworm-[0-9]{8}(-slim)?@sha256:[0-9a-f]{64}' Dockerfile; }

# The package lists of the base are enough: nothing is fetched.
packages_exist() {
  engine run "$container" -- apt-get install --simulate --no-install-recommends "${IMAGE_PACKAGES[@]}" "${BUILD_PACKAGES[@]}" \
    "${SPEED_PACKAGES[@]}" "${BENCH_PACKAGES[@]}"
}

# What git has, as a person's clone, and the program.
make_context() {
  mkdir -p "$work/context/built/controller"
  git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$work/context"
  strip -o "$work/context/built/controller/gpu-sharing-operator" "$binary"
  cp -r "$build/licences" "$work/context/built/licences"
}

build_image() {
  mkdir -p "$GSODEV_CACHE/image-packages"
  engine build --pull-never --build-arg BUILD_BASE="$base" \
    --build-arg BINARY=built/controller/gpu-sharing-operator --volume "$GSODEV_CACHE/image-packages:/var/cache/gpu-sharing-operator/image-packages" \
    --tag "$image" "$work/context"
}

# field TEMPLATE: what a Go template makes of the image.
field() { engine inspect --type image --format "$1" "$image"; }

is_configured() {
  [[ $(field '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}') == '65532:65532 [/usr/bin/gpu-sharing-operator] [run]' ]]
}

# in_image ARGUMENT…: the entry point as the image's user, where only $root/data of the host is seen, and nothing can be written.
in_image() {
  local program
  program=$(field '{{index .OCIv1.Config.Entrypoint 0}}')
  # shellcheck disable=SC2016  # Its own arguments.
  unshare --mount -- bash -c 'root=$1 user=$2; shift 2
    mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" && exec env --ignore-environment /usr/sbin/chroot --userspec="$user" "$root" "$@"' \
    in_image "$root" "$(field '{{.OCIv1.Config.User}}')" "$program" "$@"
}

prints_its_version() {
  [[ $(in_image --version) == *"$(sed -n 's/^version: //p' charts/gpu-sharing-operator/Chart.yaml)"* ]]
}
finds_nothing_wrong() { in_image lint /data/good.yaml; }
names_what_is_wrong() {
  local status=0 text
  text=$(in_image lint /data/bad.yaml 2>&1) || status=$?
  [[ $status == 1 && $text == *ReplicasBelowMinimum* ]]
}
# For maintenance windows.
knows_time_zones() { [[ -s $root/usr/share/zoneinfo/Europe/Berlin ]]; }
# For API servers whose kubeconfig names no certificate.
has_certificates() { (($(grep -c 'BEGIN CERTIFICATE' "$root/etc/ssl/certs/ca-certificates.crt") > 100)); }
has_no_shell() {
  local found
  found=$(find "$root" \( -perm /6000 -o -name 'sh' -o -name 'bash' -o -name 'apt*' -o -name 'dpkg*' \) -not -type d -print)
  [[ -z $found ]] || { echo "$found"; return 1; }
}
# What ./dev image puts into its archive.
is_what_dev_image_writes() {
  GSODEV_IMAGE_BINARY=$work/context/built/controller/gpu-sharing-operator SOURCE_DATE_EPOCH=0 ./dev image --rootfs "$work/rootfs"
  diff --recursive --no-dereference "$work/rootfs" "$root" --exclude data
}

check "the Dockerfile's base does not float" pinned
container_of "$base"
check "each package of the C++ build can be installed on the base" packages_exist
check "the build context is made" make_context
check "the Dockerfile builds" build_image
if engine inspect --type image "$image" >/dev/null 2>&1; then
  check "user, entry point and command are the fixed ones" is_configured
  container_of "$image"
  root=$(engine mount "$container")
  mkdir "$root/data"
  printf 'version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: %s}\n' 4 >"$root/data/good.yaml"
  sed 's/4/1/' "$root/data/good.yaml" >"$root/data/bad.yaml"
  check "as the image's user, with a read-only root: --version" prints_its_version
  check "the same: lint of a good profile" finds_nothing_wrong
  check "the same: lint of a bad profile" names_what_is_wrong
  check "time zones are there" knows_time_zones
  check "certificates are there" has_certificates
  check "no shell, no package manager, no program with the rights of another user" has_no_shell
  check "the root filesystem is that of ./dev image" is_what_dev_image_writes
fi
close_checks
