#!/usr/bin/env bash
# sysroot.sh ARCHITECTURE (as Debian calls it, such as arm64): unpacks Debian's packages of the static libraries inside a
# release, those for another architecture than this machine's, into a folder of the cache, and prints it: usr/ as in the
# packages, and `versions` (NAME=VERSION of each source, for the bill of materials).
#
# apt has lists of its own for that, in that folder: nothing of this machine's dpkg or apt is changed, so no root is needed,
# and a version for one architecture cannot hold back the same package of the other, which `dpkg --add-architecture` would.
# The packages are checked by apt against the keys of this machine. They are fetched once for each month: remove the folder
# to have them anew.
set -euo pipefail
shopt -s inherit_errexit

architecture=$1
# Source package and package, as in Dependencies.cmake.
packages=(nghttp2=libnghttp2-dev zlib=zlib1g-dev libyaml=libyaml-dev yaml-cpp=libyaml-cpp-dev)

cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpu-sharing-operator}
root=$cache/sysroot/$architecture-$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-8)-$(date -u +%Y%m)
if [[ -f $root/versions ]]; then
  echo "$root"
  exit
fi
mkdir -p "$root/lists/partial" "$root/debs/partial"
exec 9>"$root.lock"
flock 9
if [[ -f $root/versions ]]; then
  echo "$root"
  exit
fi
printf 'sysroot: fetching %s for %s\n' "${packages[*]#*=}" "$architecture" >&2
as_apt() {
  apt-get -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o Dir::State::status=/dev/null \
    -o Dir::State::lists="$root/lists" -o Dir::Cache="$root/debs" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}
{ as_apt update && (cd "$root/debs" && as_apt download "${packages[@]#*=}"); } >"$root/log" 2>&1 </dev/null || {
  tail -n 5 "$root/log" >&2
  printf 'sysroot: apt has no packages of Debian for %s; its output is %s\n' "$architecture" "$root/log" >&2
  exit 1
}
for row in "${packages[@]}"; do
  package=("$root/debs/${row#*=}"_*.deb)
  dpkg-deb --extract "${package[0]}" "$root"
  # shellcheck disable=SC2016  # A field of the package.
  version=$(dpkg-deb --show --showformat '${source:Version}' "${package[0]}")
  echo "${row%%=*}=$version"
done >"$root/versions.part"
rm -rf "$root/lists" "$root/debs"
mv "$root/versions.part" "$root/versions" # last: what has it is complete
echo "$root"
