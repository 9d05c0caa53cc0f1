{{- define "gso.standaloneMpsName" -}}{{ include "gso.fullname" . }}-mps{{- end }}
{{- define "gso.standaloneMpsNamespace" -}}{{ .Values.standaloneMps.namespace | default .Release.Namespace }}{{- end }}
{{- /* The nodes of the daemons. The driver manager waits for the end of DaemonSet pods that have the GPU Operator's label in their
nodeSelector, and only of these. It is not selected before each node has it, because releases before 26.7 set it nowhere; and it stays selected,
so that a node that joins without it does not change the template back. */}}
{{- define "gso.standaloneMpsNodeSelector" -}}
{{- $mps := .Values.standaloneMps }}
{{- $label := "nvidia.com/gpu.deploy.client" }}
{{- $follows := eq $mps.followDriverUpgrades "Always" }}
{{- if eq $mps.followDriverUpgrades "Auto" }}
{{- $live := lookup "apps/v1" "DaemonSet" (include "gso.standaloneMpsNamespace" .) (include "gso.standaloneMpsName" .) }}
{{- $follows = hasKey (dig "spec" "template" "spec" "nodeSelector" dict $live) $label }}
{{- if not $follows }}
{{- $with := 0 }}
{{- $without := 0 }}
{{- range (lookup "v1" "Node" "" "").items }}
{{- $says := dig "metadata" "labels" $label "" . }}
{{- if not (include "gso.nodeLacks" (dict "node" . "selector" $mps.nodeSelector)) }}
{{- if or (eq $says "true") (hasPrefix "paused-for-" $says) }}{{ $with = add1 $with }}{{ else }}{{ $without = add1 $without }}{{ end }}
{{- end }}
{{- end }}
{{- $follows = and (gt (int $with) 0) (eq (int $without) 0) }}
{{- end }}
{{- end }}
{{- toYaml (merge (ternary (dict $label "true") dict $follows) $mps.nodeSelector) }}
{{- end }}
{{- /* "true" if the node has not all labels of the selector. */}}
{{- define "gso.nodeLacks" -}}
{{- $lacks := "" }}
{{- $labels := dig "metadata" "labels" dict .node }}
{{- range $key, $value := .selector }}
{{- if or (not (hasKey $labels $key)) (ne (get $labels $key) $value) }}{{ $lacks = "true" }}{{ end }}
{{- end }}
{{- $lacks }}
{{- end }}
{{- /* "true" if the node has a taint that ends pods and that no toleration covers. Kubernetes' own taints end no pod of a DaemonSet. */}}
{{- define "gso.nodeRepels" -}}
{{- $repels := "" }}
{{- range $taint := dig "spec" "taints" list .node }}
{{- $covered := or (ne $taint.effect "NoExecute") (hasPrefix "node.kubernetes.io/" $taint.key) }}
{{- range $.tolerations }}
{{- $exists := eq (get . "operator") "Exists" }}
{{- $fits := or (and $exists (not (get . "key"))) (and (eq (get . "key") $taint.key) (or $exists (eq (toString (get . "value")) (get $taint "value")))) }}
{{- if and $fits (has (get . "effect") (list "" "NoExecute")) }}{{ $covered = true }}{{ end }}
{{- end }}
{{- if not $covered }}{{ $repels = "true" }}{{ end }}
{{- end }}
{{- $repels }}
{{- end }}
{{- /* Where a revision selects a node no longer, or has no DaemonSet, the DaemonSet controller ends the daemon at once, whatever
updateStrategy says. */}}
{{- define "gso.refuseToEndDaemons" -}}
{{- $root := .root }}
{{- $selector := .selector }}
{{- if $root.Release.IsUpgrade }}
{{- range (lookup "apps/v1" "DaemonSet" "" "").items }}
{{- $ns := .metadata.namespace }}
{{- $uid := .metadata.uid }}
{{- $of := dig "metadata" "annotations" dict . }}
{{- $owner := printf "%s/%s" (get $of "meta.helm.sh/release-namespace") (get $of "meta.helm.sh/release-name") }}
{{- $main := first .spec.template.spec.containers }}
{{- $runs := and (eq $main.name "standalone-mps") (has "run" ($main.args | default list)) }}
{{- $allowed := eq (get $of "gpusharing.dev/end-daemons") (toString (int64 .metadata.generation)) }}
{{- if and $runs (eq $owner (include "gso.release" $root)) (not $allowed) }}
{{- $stays := and $root.Values.standaloneMps.enabled (eq $ns (include "gso.standaloneMpsNamespace" $root)) (eq .metadata.name (include "gso.standaloneMpsName" $root)) }}
{{- $tolerations := $root.Values.standaloneMps.tolerations }}
{{- $before := .spec.template.spec }}
{{- $same := and (eq (toJson $before.nodeSelector) (toJson $selector)) (eq (toJson ($before.tolerations | default list)) (toJson $tolerations)) }}
{{- if not (and $stays $same) }}
{{- $nodes := dict }}
{{- range (lookup "v1" "Node" "" "").items }}{{ $_ := set $nodes .metadata.name . }}{{ end }}
{{- $lost := list }}
{{- range (lookup "v1" "Pod" $ns "").items }}
{{- $node := get $nodes (dig "spec" "nodeName" "" .) | default dict }}
{{- $is := and (eq (dig "uid" "" (first (dig "metadata" "ownerReferences" (list dict) .))) $uid) (eq .status.phase "Running") }}
{{- $ends := or (not $stays) (include "gso.nodeLacks" (dict "node" $node "selector" $selector)) (include "gso.nodeRepels" (dict "node" $node "tolerations" $tolerations)) }}
{{- if and $is $ends }}{{ $lost = append $lost .spec.nodeName }}{{ end }}
{{- end }}
{{- if $lost }}
{{- $named := join ", " (slice $lost 0 (min 5 (len $lost))) }}
{{- $more := ternary (printf " and %d more" (sub (len $lost) 5)) "" (gt (len $lost) 5) }}
{{- $what := ternary "no longer selects or tolerates nodes of" "has no" $stays }}
{{- fail (printf "standaloneMps: this revision %s DaemonSet %s/%s, so the MPS daemons of %s%s would end at once, under their GPU clients, without drain, budget or canary. Nothing has been changed. Let the nodes keep them (labels of the new nodeSelector, tolerations); or take out one node after the other: kubectl cordon NODE, wait until its GPU pods have ended, kubectl label node NODE %s-, kubectl uncordon NODE; or accept it: kubectl annotate --overwrite daemonset --namespace %s %s gpusharing.dev/end-daemons=%d. Then upgrade again" $what $ns .metadata.name $named $more (first (keys (omit $before.nodeSelector "nvidia.com/gpu.deploy.client") | sortAlpha) | default "LABEL") $ns .metadata.name (int64 .metadata.generation)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
