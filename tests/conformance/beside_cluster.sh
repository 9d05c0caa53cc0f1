#!/usr/bin/env bash
# Sourced first, with the script's own arguments, by the scripts that work on a control plane: strict mode, the folders
# $here (this one), $project, $cluster (the first argument) and $build (the second, where there is one), then checks.sh
# and operator_process.sh.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
cluster=$(cd "$1" && pwd)
build=${2:+$(cd "$2" && pwd)}
# shellcheck source=tests/conformance/checks.sh
source "$here/checks.sh"
# shellcheck source=tests/conformance/operator_process.sh
source "$here/operator_process.sh"
