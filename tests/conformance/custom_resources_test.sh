#!/usr/bin/env bash
# The operator's CRDs on a real API server, as a user of kubectl meets them. The requests themselves are compared with
# the simulated server by sequences/custom.yaml.
#
#   custom_resources_test.sh CLUSTER_DIR     a running API server; it leaves the CRDs there
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

tidy() { kubectl delete sharingpolicies,sharingrollouts --all; }

crds_are_established() {
  kubectl apply --server-side --force-conflicts -f "$project/crds"
  await 30 kubectl wait --for=condition=Established --timeout=30s -f "$project/crds"
  # A schema that is not structural would be named in a condition, and pruning and CEL would be off.
  if kubectl get crd -o 'jsonpath={.items[*].status.conditions[*].type}' | grep NonStructuralSchema; then return 1; fi
}

policy() { printf '{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"%s"},"spec":%s}' "$1" "$2"; }
rollout() { printf '{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"%s"},"spec":%s}' "$1" "$2"; }

# refused WHAT-THE-MESSAGE-SAYS OBJECT
refused() {
  local answer
  if answer=$(kubectl create --dry-run=server -f - <<<"$2" 2>&1); then
    echo "accepted: $2"
    return 1
  fi
  grep -qF -- "$1" <<<"$answer" || { echo "refused, but without '$1': $answer"; return 1; }
}

defaults_are_filled_in() {
  kubectl create -f - <<<"$(policy minimal '{}')"
  local spec
  spec=$(kubectl get sharingpolicy minimal -o 'jsonpath={.spec.mode} {.spec.rollout.maxUnavailable} {.spec.rollout.maxUnavailablePerGroup} {.spec.rollout.canary.soak} {.spec.rollout.workloads} {.spec.rollout.maxFailures} {.spec.takeover}')
  [[ $spec == "Enforce 10% 25% 60s WaitForIdle 3 false" ]] || { echo "$spec"; return 1; }
}

wrong_policies_are_refused() {
  refused 'must be a count of at least 1, or a percentage from 1% to 100%' "$(policy x '{"rollout":{"maxUnavailable":0}}')"
  refused 'must be a count of at least 1, or a percentage from 1% to 100%' "$(policy x '{"rollout":{"maxUnavailablePerGroup":"0%"}}')"
  refused 'workloads: Evict needs cordon' "$(policy x '{"rollout":{"workloads":"Evict","cordon":false}}')"
  refused 'In and NotIn need values' "$(policy x '{"nodeSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}')"
  refused 'supported values: "Enforce", "Approve", "Observe"' "$(policy x '{"mode":"Sometimes"}')"
  refused 'exactly one of configMapKey and inline' "$(policy x '{"profile":{}}')"
  refused 'exactly one of configMapKey and inline' "$(policy x '{"profile":{"configMapKey":"a","inline":{"strategy":"none"}}}')"
  refused 'need replicas, 2 or more' "$(policy x '{"profile":{"inline":{"strategy":"mps"}}}')"
  refused 'strategy none does not share' "$(policy x '{"profile":{"inline":{"strategy":"none","replicas":4}}}')"
  refused 'at most 48 clients' "$(policy x '{"profile":{"inline":{"strategy":"mps","replicas":49}}}')"
  refused 'MPS shares nvidia.com/gpu only' "$(policy x '{"profile":{"inline":{"strategy":"mps","replicas":4,"resource":"nvidia.com/mig-1g.5gb"}}}')"
  refused 'spec.profile.inline.replicas' "$(policy x '{"profile":{"inline":{"strategy":"time-slicing","replicas":1}}}')"
  refused 'supported values: "none", "mps", "time-slicing"' "$(policy x '{"profile":{"inline":{"strategy":"vgpu"}}}')"
  refused 'set workloads: Interrupt' "$(policy x '{"rollout":{"mechanism":"DaemonSetRestart","canary":{"nodesPerGroup":0}}}')"
  refused 'has no canary' "$(policy x '{"rollout":{"mechanism":"DaemonSetRestart","workloads":"Interrupt"}}')"
  refused 'does not support maintenanceWindows' "$(policy x '{"rollout":{"mechanism":"DaemonSetRestart","workloads":"Interrupt","canary":{"nodesPerGroup":0},"maintenanceWindows":[{"cron":"0 2 * * *","duration":"1h"}]}}')"
  refused 'cannot roll single nodes back' "$(policy x '{"rollout":{"mechanism":"DaemonSetRestart","workloads":"Interrupt","canary":{"nodesPerGroup":0},"onFailure":"Rollback"}}')"
  refused 'must be from 1m to 168h' "$(policy x '{"rollout":{"maintenanceWindows":[{"cron":"0 2 * * *","duration":"30s"}]}}')"
  refused 'must be from 1m to 168h' "$(policy x '{"rollout":{"maintenanceWindows":[{"cron":"0 2 * * *","duration":"169h"}]}}')"
  refused 'maintenanceWindows[0].cron' "$(policy x '{"rollout":{"maintenanceWindows":[{"cron":"at night","duration":"1h"}]}}')"
  refused 'maintenanceWindows[0].duration: Required value' "$(policy x '{"rollout":{"maintenanceWindows":[{"cron":"0 2 * * *"}]}}')"
  refused 'supported values: "Retain", "Revert"' "$(policy x '{"deletionPolicy":"Delete"}')"
  refused 'supported values: "Pause", "Rollback"' "$(policy x '{"rollout":{"onFailure":"Panic"}}')"
  refused 'spec.revisionHistoryLimit' "$(policy x '{"revisionHistoryLimit":-1}')"
  refused 'a label key has at most 317 characters' "$(policy x "{\"nodeSelector\":{\"matchLabels\":{\"$(head -c 318 /dev/zero | tr '\0' x)\":\"a\"}}}")"
  refused 'spec.rollout.verifyTimeout' "$(policy x '{"rollout":{"verifyTimeout":"soon"}}')"
  refused 'verifyTimeout must be from 1s to 24h' "$(policy x '{"rollout":{"verifyTimeout":"0s"}}')"
  refused 'idleTimeout must be from 1s to 720h' "$(policy x '{"rollout":{"idleTimeout":"0s"}}')"
  refused 'unknown field "spec.rollout.maxUnavailabel"' "$(policy x '{"rollout":{"maxUnavailabel":1}}')"
}

full_policies_are_taken() {
  kubectl create -f - <<<"$(policy full '{"nodeSelector":{"matchLabels":{"pool":"a"}},"priority":7,"mode":"Approve","takeover":true,
    "deletionPolicy":"Revert","revisionHistoryLimit":3,
    "profile":{"inline":{"strategy":"mps","replicas":48,"renameByDefault":true,"failRequestsGreaterThanOne":true}},
    "rollout":{"maxUnavailable":2,"maxUnavailablePerGroup":"100%","canary":{"nodesPerGroup":2,"soak":"1h30m"},"workloads":"Evict","cordon":true,"evictBarePods":true,
      "idleTimeout":"1s","verifyTimeout":"15m","maxFailures":1,"onFailure":"Rollback",
      "maintenanceWindows":[{"cron":"0 2 * * SAT,SUN","duration":"4h","timeZone":"Europe/Berlin"},{"cron":"*/15 1-5 1 JAN *","duration":"1m"}]}}')"
  local spec
  spec=$(kubectl get sharingpolicy full -o 'jsonpath={.spec.profile.inline.resource} {.spec.rollout.mechanism} {.spec.rollout.maintenanceWindows[1].timeZone}')
  [[ $spec == "nvidia.com/gpu NodeByNode UTC" ]] || { echo "$spec"; return 1; }
  kubectl create -f - <<<"$(policy restart '{"rollout":{"mechanism":"DaemonSetRestart","workloads":"Interrupt","canary":{"nodesPerGroup":0}}}')"
  [[ $(kubectl get sharingpolicy restart -o 'jsonpath={.spec.deletionPolicy} {.spec.rollout.onFailure}') == "Retain Pause" ]]
}

rollouts_keep_their_identity() {
  kubectl create -f - <<<"$(rollout r '{"policy":"default","configMap":"gpu-operator/mps-config","key":"any","toRevision":"v1-1","profile":"version: v1"}')"
  local answer
  if answer=$(kubectl patch sharingrollout r --type merge -p '{"spec":{"toRevision":"v1-2"}}' 2>&1); then return 1; fi
  grep -F 'cannot change' <<<"$answer"
  if answer=$(kubectl patch sharingrollout r --type merge -p '{"spec":{"profile":"version: v2"}}' 2>&1); then return 1; fi
  grep -F 'profile is the text that was rolled out and cannot change' <<<"$answer"
  kubectl patch sharingrollout r --type merge -p '{"spec":{"paused":true,"aborted":true}}'
  if answer=$(kubectl patch sharingrollout r --type merge -p '{"spec":{"aborted":false}}' 2>&1); then return 1; fi
  grep -F 'an aborted rollout stays aborted' <<<"$answer"
  refused 'Too long' "$(rollout x "{\"policy\":\"p\",\"configMap\":\"a/b\",\"key\":\"k\",\"toRevision\":\"r\",\"profile\":\"$(head -c 65537 /dev/zero | tr '\0' x)\"}")"
}

status_is_a_subresource() {
  kubectl patch sharingpolicy minimal --type merge -p '{"status":{"currentRollout":"ignored"}}'
  [[ -z $(kubectl get sharingpolicy minimal -o 'jsonpath={.status.currentRollout}') ]]
  kubectl patch sharingpolicy minimal --subresource status --type merge \
    -p '{"status":{"mode":"Observe","nodes":{"total":3,"upToDate":2,"blocked":1},"conditions":[{"type":"Ready","status":"False","reason":"Blocked","message":"one node is blocked","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
  # As an old kubectl wait or Argo CD reads it.
  kubectl wait --for=condition=Ready=False --timeout=5s sharingpolicy/minimal
}

columns_are_shown() {
  kubectl get gsp minimal
  [[ $(kubectl get gsp minimal --no-headers | tr -s ' ' | cut -d' ' -f1-3) == 'minimal Observe 3' ]]
  kubectl get gsr r -o wide | grep -E 'POLICY +KEY +REVISION +PHASE'
  kubectl get gpusharing | grep sharingrollout
}

fields_are_explained() {
  kubectl explain sharingpolicy.spec.rollout.maxUnavailable | grep -F 'percentage'
  kubectl explain sharingrollout.spec.aborted | grep -F 'Ends this rollout'
}

check "the CRDs are established and structural" crds_are_established
check "defaults are filled in" defaults_are_filled_in
check "wrong policies are refused, and why is said" wrong_policies_are_refused
check "policies that use every field are taken, and the rest is filled in" full_policies_are_taken
check "a rollout keeps its identity, and its switches turn" rollouts_keep_their_identity
check "status is a subresource, with conditions to wait for" status_is_a_subresource
check "columns, short names and the category work" columns_are_shown
check "kubectl explain knows the fields" fields_are_explained
close_checks
