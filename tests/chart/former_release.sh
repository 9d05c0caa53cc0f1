#!/usr/bin/env bash
# The operator's program as it was when former_release.tgz was packaged: what an upgrade really upgrades. It is built once
# per machine, from that commit, and kept by it:
# ${GSODEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator}/former-release/COMMIT/gpu-sharing-operator
#
#   former_release.sh path     prints it; fails, and says why, where it has not been built
#   former_release.sh build    builds it, in the debug preset (half an hour on two cores, once)
#
# GSODEV_FORMER_PROGRAM names another program to upgrade from, and is printed instead.
set -euo pipefail
shopt -s inherit_errexit

# The last commit of version 0.1.0 whose chart the archive has.
commit=1ce31ca658c2abaa853170cd30d1a1f48a609dbb
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}/former-release/$commit
program=${GSODEV_FORMER_PROGRAM:-$cache/gpu-sharing-operator}

case ${1:-} in
  path)
    [[ -x $program ]] || { echo "the program of the former release ($commit) has not been built on this machine: tests/chart/former_release.sh build" >&2; exit 1; }
    echo "$program"
    ;;
  build)
    [[ ! -x $program ]] || exit 0
    git -C "$project" cat-file -e "$commit^{commit}" || { echo "this clone has no commit $commit: git fetch --unshallow" >&2; exit 1; }
    # An interrupted build goes on where it was.
    if [[ ! -d $cache/source ]]; then
      rm -rf "$cache/source.new"
      mkdir -p "$cache/source.new"
      git -C "$project" archive "$commit" | tar -x -C "$cache/source.new"
      mv "$cache/source.new" "$cache/source"
    fi
    cd "$cache/source"
    # By its own list: it needs a package (libcurl's headers) that later commits do without.
    # shellcheck disable=SC1091
    source ./dev --as-library
    ensure_packages "${BUILD_PACKAGES[@]}" "${SPEED_PACKAGES[@]}"
    [[ -f build/debug/build.ninja ]] || cmake --preset debug -DGSO_TESTS=OFF >"$cache/configure.log" 2>&1 || { tail -n 20 "$cache/configure.log" >&2; exit 1; }
    ninja -C build/debug gpu-sharing-operator
    cp build/debug/controller/gpu-sharing-operator "$program.new"
    strip "$program.new"
    mv "$program.new" "$program"
    rm -r "$cache/source"
    ;;
  *)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
