#!/usr/bin/env bash
# Prints the folder with the CRDs of KAI-Scheduler's release that kai/go.mod pins, from its Go module: fetched once, compared
# with kai/go.sum, and kept in the module cache of Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/kai"

go=$(command -v go || echo /usr/local/go/bin/go)
[[ -x $go ]] || { echo "kai_crds.sh: needs Go" >&2; exit 1; }
module=github.com/NVIDIA/KAI-scheduler
GOFLAGS=-mod=readonly GO111MODULE=on "$go" mod download "$module"
folder=$(GOFLAGS=-mod=readonly GO111MODULE=on "$go" list -m -f '{{.Dir}}' "$module")/deployments/kai-scheduler/crds
[[ -f $folder/scheduling.run.ai_bindrequests.yaml ]] || { echo "kai_crds.sh: $module has no CRDs in $folder" >&2; exit 1; }
echo "$folder"
