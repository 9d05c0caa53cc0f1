#!/usr/bin/env bash
# Sourced after beside_cluster.sh: KAI's CRDs, from its release (controlplane/kai_crds.sh), and the objects of its installation,
# without KAI itself. Sets $reservations, the namespace of its reservation pods; its consumers are in the namespace `team`.
# shellcheck shell=bash disable=SC2154  # $here is the sourcing script's.

reservations=kai-resource-reservation

kai_is_there() {
  local crds name
  crds=$("$here/controlplane/kai_crds.sh")
  kubectl apply --server-side -f "$crds/kai.scheduler_configs.yaml" -f "$crds/scheduling.run.ai_bindrequests.yaml"
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/configs.kai.scheduler crd/bindrequests.scheduling.run.ai
  for name in kai-scheduler $reservations team; do
    kubectl create namespace "$name"
    kubectl create serviceaccount default -n "$name"
  done
  for name in n1 n2 n3; do
    kubectl create -f - <<<"{apiVersion: v1, kind: Node, metadata: {name: $name}}"
  done
  kubectl apply -f - <<'YAML'
apiVersion: kai.scheduler/v1
kind: Config
metadata: {name: kai-config}
spec:
  namespace: kai-scheduler
  admission: {gpuSharing: true, gpuPodRuntimeClassName: ""}
  binder:
    volumeBindingTimeoutSeconds: 5
    resourceReservation: {namespace: kai-resource-reservation, appLabel: kai-resource-reservation, runtimeClassName: "", allocationTimeout: 5}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: binder, namespace: kai-scheduler}
spec:
  replicas: 1
  selector: {matchLabels: {app: binder}}
  template: {metadata: {labels: {app: binder}}, spec: {containers: [{name: binder, image: kai/binder}]}}
YAML
}

# The Deployment's status as its controller would write it for a binder that has run for long.
binder_runs() {
  local generation
  generation=$(kubectl get deployment binder -n kai-scheduler -o 'jsonpath={.metadata.generation}')
  kubectl patch deployment binder -n kai-scheduler --subresource status --type merge -p \
    "{\"status\":{\"observedGeneration\":$generation,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":1,\"availableReplicas\":1,\"conditions\":[{\"type\":\"Available\",\"status\":\"True\",\"reason\":\"Told\",\"message\":\"\",\"lastUpdateTime\":\"2026-01-01T00:00:00Z\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}"
}
