{{- /* 63 characters at most with the longest suffix that a Service or a Job gives it, "-metrics" or "-cleanup". */}}
{{- define "gso.name" -}}{{ .Values.nameOverride | default .Chart.Name }}{{- end }}
{{- define "gso.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains (include "gso.name" .) .Release.Name }}{{ .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name (include "gso.name" .) | trunc 55 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- /* The schema asks for a name where none is created: otherwise the namespace's `default` account would get the operator's permissions. */}}
{{- define "gso.serviceAccount" -}}
{{- default (include "gso.fullname" .) .Values.serviceAccount.name }}
{{- end }}
{{- define "gso.cleanupHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
{{- /* For the Job before an uninstall: its own account, if the chart creates accounts. */}}
{{- define "gso.cleanupAccount" -}}
{{- if .Values.serviceAccount.create }}{{ include "gso.fullname" . }}-cleanup{{ else }}{{ include "gso.serviceAccount" . }}{{ end }}
{{- end }}
{{- /* The account's name as the API server knows it. */}}
{{- define "gso.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "gso.serviceAccount" . }}
{{- end }}
{{- /* The digest of a release is an annotation of its chart: as a default value it would come back with --reuse-values. */ -}}
{{- define "gso.image" -}}
{{- $digest := .Values.image.digest }}
{{- if not (or $digest .Values.image.tag) }}{{ $digest = index .Chart.Annotations "gpusharing.dev/image-digest" }}{{ end -}}
{{ .Values.image.repository }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- define "gso.selector" -}}
app.kubernetes.io/name: {{ include "gso.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "gso.labels" -}}
{{ include "gso.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- /* The same with further ones, which win where a key is in both: labels must have each key once. */}}
{{- define "gso.labelsWith" -}}
{{ toYaml (mergeOverwrite (fromYaml (include "gso.labels" .root)) .labels) }}
{{- end }}
{{- /* What runs in every pod of the chart: no privilege of any kind. The image has a numeric user other than root; no id is
written here, because OpenShift gives each namespace its own range. */}}
{{- define "gso.podSecurity" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "gso.network" -}}
{{- if .Values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- end }}
{{- define "gso.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
{{- /* The account's credentials, where every Kubernetes client looks for them, with a token that expires. */}}
{{- define "gso.credentials" -}}
name: credentials
projected:
  sources:
  - serviceAccountToken: {path: token, expirationSeconds: 3600}
  - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
  - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
{{- /* "true" if the account can write: the rules of RBAC follow from the modes. */}}
{{- define "gso.rolls" -}}{{ if ne .Values.modes.rollouts "Observe" }}true{{ end }}{{- end }}
{{- define "gso.seesSlices" -}}{{ if ne .Values.modes.partitioning "Off" }}true{{ end }}{{- end }}
{{- define "gso.partitions" -}}{{ if and (eq .Values.modes.partitioning "Enforce") (include "gso.rolls" .) }}true{{ end }}{{- end }}
{{- define "gso.labelsNodes" -}}{{ if ne .Values.modes.labels "Observe" }}true{{ end }}{{- end }}
{{- /* The operator's configuration file: `config`, and what follows from `modes`. */}}
{{- define "gso.config" -}}
{{- $operands := concat .Values.operandNamespaces (ternary (list) (list .Values.partitioning.namespace) (eq .Values.modes.partitioning "Off")) }}
{{- with .Values.standaloneMps }}{{ if and .enabled .namespace }}{{ $operands = append $operands .namespace }}{{ end }}{{ end }}
{{- $config := merge (dict "operand-namespaces" (join "," ($operands | uniq)) "max-mode" .Values.modes.rollouts "kai-reservations" .Values.modes.reservations "partitioning-mode" .Values.modes.partitioning) .Values.config }}
{{- if not (hasKey .Values.config "kai-gc-without-crds") }}{{ $_ := set $config "kai-gc-without-crds" (gt (len .Values.kai.reservationNamespaces) 0) }}{{ end }}
{{- if .Values.rejectedPods.namespaces }}{{ $_ := set $config "remove-rejected-pods" (join "," .Values.rejectedPods.namespaces) }}{{ end }}
{{- if .Values.fixes.mpsSignal }}{{ $_ := set $config "mps-signal-fixed" true }}{{ end }}
{{- with .Values.podMutation }}{{ if and .enabled .nodeSelector (not (hasKey $.Values.config "mps-ready")) }}{{ $_ := set $config "mps-ready" "On" }}{{ end }}{{ end }}
{{- if ne (int64 .Values.podMutation.nosUser) 1000 }}{{ $_ := set $config "mps-user" (int64 .Values.podMutation.nosUser) }}{{ end }}
{{- if not (include "gso.labelsNodes" .) }}{{ $_ := set $config "label-mode" "verify" }}{{ end }}
{{- include "gso.refuseConfig" . }}
{{- toYaml $config }}
{{- end }}
{{- /* The validating webhook's objects. */}}
{{- define "gso.webhook" -}}{{ include "gso.fullname" . }}-webhook{{- end }}
{{- define "gso.webhookTerms" -}}
{{- $authorities := .Values.admissionWebhook.caBundle }}
{{- with .Values.admissionWebhook }}
{{- if and .certificateSecret (not .caBundle) (not .certManager.enabled) }}
{{- fail "admissionWebhook.certificateSecret needs admissionWebhook.caBundle: without it the API server trusts no answer, and every request is allowed unseen" }}
{{- end }}
{{- if not (or .certificateSecret .certManager.enabled) }}
{{- include "gso.issue" (dict "root" $ "server" "webhook" "of" .) }}
{{- $authorities = .issued.ca | b64enc }}
{{- end }}
{{- end -}}
clientConfig:
  service: {name: {{ include "gso.webhook" . }}, namespace: {{ .Release.Namespace }}, path: /validate, port: 443}
  {{- with $authorities }}
  caBundle: {{ . }}
  {{- end }}
failurePolicy: Ignore
timeoutSeconds: {{ .Values.admissionWebhook.timeoutSeconds }}
sideEffects: None
admissionReviewVersions: [v1]
matchPolicy: Equivalent
{{- end }}
{{- /* What the operator writes itself is checked before it plans it. */}}
{{- define "gso.webhookNotOurs" -}}
- name: not-by-the-operator
  expression: request.userInfo.username != '{{ include "gso.user" . }}'
{{- end }}
{{- /* A duration in milliseconds. */}}
{{- define "gso.milliseconds" -}}
{{- $sum := 0.0 }}
{{- $of := dict "h" 3600000.0 "m" 60000.0 "s" 1000.0 "ms" 1.0 "us" 0.001 "ns" 0.000001 }}
{{- range regexFindAll "[0-9]+([.][0-9]+)?[a-z]+" (toString .) -1 }}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $sum = addf $sum (mulf (float64 (trimSuffix $unit .)) (get $of $unit)) }}
{{- end }}
{{- $sum }}
{{- end }}
{{- /* What the operator would refuse at its start is refused here: `files/durations.yaml` has the range of each setting. */}}
{{- define "gso.refuseConfig" -}}
{{- $ranges := fromYaml (.Files.Get "files/durations.yaml") }}
{{- $milliseconds := dict }}
{{- range $name, $range := $ranges }}
{{- $text := get $.Values.config $name | default $range.default }}
{{- $value := include "gso.milliseconds" $text | float64 }}
{{- $_ := set $milliseconds $name $value }}
{{- $off := and $range.zero (eq $value 0.0) }}
{{- if and (not $off) (or (lt $value (include "gso.milliseconds" $range.least | float64)) (gt $value (include "gso.milliseconds" $range.most | float64))) }}
{{- fail (printf "config.%s: %s must be from %s to %s%s" $name $text $range.least $range.most (ternary ", or 0" "" (default false $range.zero))) }}
{{- end }}
{{- end }}
{{- if le (get $milliseconds "lease-duration") (get $milliseconds "renew-deadline") }}
{{- fail "config.lease-duration must be greater than config.renew-deadline (15s and 10s by default)" }}
{{- end }}
{{- if le (get $milliseconds "renew-deadline") (mulf 1.2 (get $milliseconds "retry-period")) }}
{{- fail "config.renew-deadline must be greater than 1.2 times config.retry-period (10s and 2s by default)" }}
{{- end }}
{{- if le (get $milliseconds "verify-timeout") (get $milliseconds "node-status-lag") }}
{{- fail "config.verify-timeout must be greater than config.node-status-lag: no node could be verified" }}
{{- end }}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create=false needs serviceAccount.name: the ServiceAccount under which the operator runs" }}
{{- end }}
{{- if and (eq (get .Values.config "label-mode" | toString) "enforce") (not (include "gso.labelsNodes" .)) }}
{{- fail "config.label-mode=enforce has no effect with modes.labels=Observe, which lets the operator write no label" }}
{{- end }}
{{- end }}
{{- /* A release as `namespace/name`. */}}
{{- define "gso.release" -}}{{ .Release.Namespace }}/{{ .Release.Name }}{{- end }}
{{- /* Who owns the CRD of that name in the cluster: a release as `namespace/name`, `/` for an owner other than helm, nothing
if the CRD does not exist. */}}
{{- define "gso.ownerOfCRD" -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" . }}
{{- $by := dig "metadata" "annotations" dict . }}
{{- printf "%s/%s" (get $by "meta.helm.sh/release-namespace") (get $by "meta.helm.sh/release-name") }}
{{- end }}
{{- end }}
{{- /* The CRDs that the last revision of this release brought, as its ConfigMap says: an upgrade, a rollback and a repair
leave helm's record of them there. */}}
{{- define "gso.broughtCRDs" -}}
{{- if .Release.IsUpgrade }}
{{- $config := lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-config" (include "gso.fullname" .)) }}
{{- dig "metadata" "annotations" "gpusharing.dev/crds" "" ($config | default dict) }}
{{- end }}
{{- end }}
{{- /* "true" if this release brings the CRD of that name: it does not exist, or is this release's. A CRD that the last
revision brought is still this release's where `kubectl replace` or `kubectl apply` has taken helm's annotations off. */}}
{{- define "gso.rendersCRD" -}}
{{- if .root.Values.crds.install }}
{{- $owner := include "gso.ownerOfCRD" .name }}
{{- $brought := has .name (splitList "," (include "gso.broughtCRDs" .root)) }}
{{- if or (not $owner) (eq $owner (include "gso.release" .root)) (and (eq $owner "/") $brought) }}true{{ end }}
{{- end }}
{{- end }}
{{- /* Helm deletes what a revision no longer has, unless the object in the cluster says that it is kept. */}}
{{- define "gso.refuseToDropCRD" -}}
{{- if .root.Release.IsUpgrade }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name }}
{{- if ne (dig "metadata" "annotations" "helm.sh/resource-policy" "" .) "keep" }}
{{- fail (printf "CRD %s: this revision does not contain it, and its annotation helm.sh/resource-policy=keep is missing, so helm could delete it with every object of its kind. Nothing has been changed. Run `kubectl annotate crd %s helm.sh/resource-policy=keep`, then upgrade again" .metadata.name .metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- /* Two operators that write would change the nodes of one namespace against each other, each within its own budget. */}}
{{- define "gso.refuseSecondOperator" -}}
{{- range $ns := .Values.operandNamespaces }}
{{- range (lookup "rbac.authorization.k8s.io/v1" "Role" $ns "").items }}
{{- $other := printf "%s/%s" (dig "annotations" "meta.helm.sh/release-namespace" "" .metadata) (dig "annotations" "meta.helm.sh/release-name" "" .metadata) }}
{{- $ours := and (hasPrefix (printf "%s-" $.Chart.Name) (dig "labels" "helm.sh/chart" "" .metadata)) (hasSuffix "-operands" .metadata.name) }}
{{- if and $ours (ne $other "/") (ne $other (include "gso.release" $)) (contains "delete" (toJson .rules)) }}
{{- fail (printf "operandNamespaces: release %s already rolls the device plugins in %q; two would do it against each other: take the namespace out of one of them, uninstall that one, or install this one with modes.rollouts=Observe" $other $ns) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- /* Names of the ConfigMaps that hold the operator's record: the head, and the shards of a large fleet. */}}
{{- define "gso.stateConfigMaps" -}}
gpu-sharing-operator-state{{ range until 16 }}, gpu-sharing-operator-state-{{ . }}{{ end }}
{{- end }}
{{- /* `helm upgrade --reuse-values` brings the values of the older chart, which do not have what this one has added: each
value that is missing gets this chart's default. Maps whose keys people choose are left as they are. Every template
includes this first. */}}
{{- define "gso.complete" -}}
{{- include "gso.fill" (dict "values" .Values "defaults" (fromYaml (.Files.Get "files/values.yaml"))) }}
{{- end }}
{{- define "gso.fill" -}}
{{- range $key, $default := .defaults }}
{{- if not (hasKey $.values $key) }}
{{- $_ := set $.values $key $default }}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $.values $key)) (not (has $key (list "config" "labels" "resources"))) }}
{{- include "gso.fill" (dict "values" (get $.values $key) "defaults" $default) }}
{{- end }}
{{- end }}
{{- end }}
