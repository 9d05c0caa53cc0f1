#!/usr/bin/env bash
# Prints the folder with the CRDs of KAI-Scheduler's release that kai/go.mod pins, from its Go module: fetched once, compared
# with kai/go.sum, and kept in the module cache of Go.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'kai_crds.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
# Read by find_go.
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}
out=$cache/controlplane
# shellcheck source=tests/conformance/controlplane/find_go.sh
source "$here/find_go.sh"

cd "$here/kai"
mkdir -p "$out"
go=$(find_go)
module=github.com/NVIDIA/KAI-scheduler
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly GO111MODULE=on
"$go" mod download "$module"
folder=$("$go" list -m -f '{{.Dir}}' "$module")/deployments/kai-scheduler/crds
[[ -f $folder/scheduling.run.ai_bindrequests.yaml ]] || die "$module has no CRDs in $folder"
echo "$folder"
