#!/usr/bin/env bash
# What the Dockerfile's build stage begins with where no registry is: Debian of the same release from the mirrors that apt uses
# here, with the packages that image/build.py needs and apt's lists. Made once for each image/packages.lock, as an image of
# buildah's storage below ${GSODEV_CACHE:-~/.cache/gpu-sharing-operator}/image-base. Prints that storage, its driver and the
# image. Exit code 77, with the reason in the last line: this machine cannot make it.
set -euo pipefail
shopt -s inherit_errexit

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
release=bookworm
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpu-sharing-operator}/image-base
key=$(cat "${BASH_SOURCE[0]}" "$project/image/packages.lock" | sha256sum | cut -c1-16)
storage=$cache/$key

skip() { echo "skipped: $*"; exit 77; }

((EUID == 0)) || skip "buildah and mmdebstrap are used as root here"
command -v buildah >/dev/null || skip "no buildah; ./dev test image installs it"
if [[ ! -f $storage/driver ]]; then
  command -v mmdebstrap >/dev/null || skip "no mmdebstrap; ./dev test image installs it"
  # Of Debian alone: other repositories of this machine have nothing to do with the image.
  # shellcheck disable=SC2016  # Fields of apt-get.
  mirrors=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v release="$release" '$2 ~ "^" release "(-updates|-security)?$" && $3 == "main" { print "deb " $1, $2, $3 }' | sort -u)
  [[ -n $mirrors ]] || skip "apt has no lists of Debian $release; apt-get update fetches them"
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
fi
# Everything of the folder $1, with what buildah mounted in it and left there.
forget() {
  local mounted
  mounted=$(awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | sort -r)
  [[ -z $mounted ]] || xargs umount <<<"$mounted"
  rm -rf "$1"
}
engine() { buildah --root "$storage" --runroot "$storage/run" --storage-driver "$driver" "$@"; }
if [[ ! -f $storage/driver ]]; then
  for old in "$cache"/*; do
    [[ $old == */lock || $old == */log ]] || forget "$old"
  done
  # Standard input has the sources.
  mmdebstrap --variant=apt --format=tar --include=python3,binutils --skip=cleanup/apt/lists "$release" "$cache/part" - \
    <<<"$mirrors" >"$cache/log" 2>&1 || { tail -n 5 "$cache/log" >&2; skip "mmdebstrap failed, its output is $cache/log"; }
  # The driver that copies nothing, where the file system of the cache can have it.
  driver=overlay
  why=$(engine info 2>&1 >/dev/null) || { echo "base.sh: buildah copies layers here: $why" >&2; forget "$storage"; driver=vfs; }
  container=$(engine from scratch)
  engine add --quiet "$container" "$cache/part" / >/dev/null
  engine commit --quiet --rm "$container" "localhost/gpu-sharing-operator-build-base:$key" >/dev/null
  rm "$cache/part"
  echo "$driver" >"$storage/driver"
fi
echo "$storage" "$(<"$storage/driver")" "localhost/gpu-sharing-operator-build-base:$key"
