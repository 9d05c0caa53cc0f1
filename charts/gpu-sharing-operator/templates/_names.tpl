{{- /* 63 characters at most with the longest suffix that a Service or a Job gives it, "-metrics" or "-cleanup". */}}
{{- define "gso.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 55 | trimSuffix "-" }}{{ end }}
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
{{- define "gso.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- define "gso.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "gso.labels" -}}
{{ include "gso.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
{{- /* What runs in every pod of the chart: no privilege of any kind. */}}
{{- define "gso.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
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
{{- define "gso.labelsNodes" -}}{{ if ne .Values.modes.labels "Observe" }}true{{ end }}{{- end }}
{{- /* The operator's configuration file: `config`, and what follows from `modes`. */}}
{{- define "gso.config" -}}
{{- $config := merge (dict "max-mode" .Values.modes.rollouts "kai-reservations" .Values.modes.reservations "kai-gc-without-crds" (gt (len .Values.kai.reservationNamespaces) 0)) .Values.config }}
{{- if .Values.rejectedPods.namespaces }}{{ $_ := set $config "remove-rejected-pods" (join "," .Values.rejectedPods.namespaces) }}{{ end }}
{{- if .Values.fixes.mpsSignal }}{{ $_ := set $config "mps-signal-fixed" true }}{{ end }}
{{- if not (include "gso.labelsNodes" .) }}{{ $_ := set $config "label-mode" "verify" }}{{ end }}
{{- toYaml $config }}
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
{{- /* Two operators that write would change the nodes of one namespace against each other, each within its own budget. */}}
{{- define "gso.refuseSecondOperator" -}}
{{- range $ns := .Values.operandNamespaces }}
{{- range (lookup "rbac.authorization.k8s.io/v1" "Role" $ns "").items }}
{{- $other := printf "%s/%s" (dig "annotations" "meta.helm.sh/release-namespace" "" .metadata) (dig "annotations" "meta.helm.sh/release-name" "" .metadata) }}
{{- $ours := and (eq (dig "labels" "app.kubernetes.io/name" "" .metadata) $.Chart.Name) (hasSuffix "-operands" .metadata.name) }}
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
