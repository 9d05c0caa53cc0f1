#!/usr/bin/env bash
# Sourced by the scripts that try the chart with the real helm: what they share. Arguments: CLUSTER_DIR BUILD_DIR, a running
# cluster (tests/conformance/controlplane/cluster.sh) and a built tree.
# shellcheck shell=bash
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../conformance/beside_cluster.sh" "$@"

chart=$project/charts/gpu-sharing-operator release=gpu-sharing-operator
# An older release of the chart, as `helm package` made it: before the chart's CRDs said in their files that helm keeps them,
# and without the values for partitioning, the webhook, and secure metrics.
# shellcheck disable=SC2034
former=$project/tests/chart/former_release.tgz
# shellcheck disable=SC2154  # $namespace and $work come from the sourced scripts.
account=system:serviceaccount:$namespace:$release

render() { helm template "$release" "$chart" --namespace "$namespace" "$@"; }

# everything: each optional object, so that it is checked too. The chart issues certificates only where it can read a cluster.
# shellcheck disable=SC2034
everything=(--dry-run=server --set kai.namespace=kai-scheduler --set 'kai.reservationNamespaces={kai-resource-reservation}' --set 'kai.consumerNamespaces={team}'
  --set eviction.enabled=true --set daemonSetRestart.enabled=true --set modes.partitioning=Enforce --set 'rejectedPods.namespaces={team}' --set priorityAndFairness.enabled=true
  --set admissionWebhook.enabled=true --set admissionWebhook.pods=Warn
  --set standaloneMps.enabled=true --set-string 'standaloneMps.nodeSelector.team\.example/mps=true'
  --set metrics.secure.enabled=true --set metrics.serviceMonitor.enabled=true --set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true)
