#!/usr/bin/env bash
# The story on a real API server: the operator's binary under the chart's ServiceAccount, the fleet emulator on real
# nodes, DaemonSets by the real controllers.
#
#   story_test.sh CLUSTER_DIR BUILD_DIR PLUGIN_VERSION
#
# Closes with "N passed, N failed", counting the story's steps.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
cluster=$(cd "$1" && pwd) build=$(cd "$2" && pwd) version=$3
# shellcheck source=tests/conformance/checks.sh
source "$here/checks.sh"
# shellcheck source=tests/conformance/operator_process.sh
source "$here/operator_process.sh"

install_chart --set defaultPolicy.create=false
status=0
"$build/tests/sim/story/gso-story" --kubeconfig "$cluster/admin.kubeconfig" --operator-kubeconfig "$work/operator.kubeconfig" \
  --operator "$build/controller/gpu-sharing-operator" --plugin-version "$version" --time-scale 0.05 | tee "$work/story.log" || status=$?
passed=$(grep -c '^✓' "$work/story.log" || true)
failed=$(grep -c '^✗' "$work/story.log" || true)
if ((status != 0 && failed == 0)); then failed=1; fi
close_checks
