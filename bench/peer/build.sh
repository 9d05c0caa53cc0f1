#!/usr/bin/env bash
# Builds the Go controller of `./dev bench fleet --real` into the cache folder, and prints where it is.
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}
out=$cache/bench-peer/$(cd "$here" && cat build.sh go.mod go.sum main.go | sha256sum | cut -c1-16)
say() { printf 'build.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
# shellcheck source=tests/conformance/controlplane/find_go.sh
source "$here/../../tests/conformance/controlplane/find_go.sh"

mkdir -p "$out"
# One build at a time: a second caller waits here and then finds the program.
exec {lock}>"$out/lock"
flock "$lock"
if [[ ! -x $out/peer ]]; then
  # As the control plane is built: no other Go, no C, no settings of a developer.
  export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
  go=$(find_go)
  say "building the Go controller with $("$go" env GOVERSION), a minute the first time, in $out"
  (cd "$here" && nice -n 10 "$go" build -p "$(nproc)" -trimpath -ldflags "-s -w" -o "$out/peer.tmp" .) >&2
  mv "$out/peer.tmp" "$out/peer"
fi
echo "$out/peer"
