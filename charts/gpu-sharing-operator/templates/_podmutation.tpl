{{- /* Whether a pod asks to be an MPS client, and where its daemon is: for the policy that adds fields and the one that warns. */}}
{{- define "gso.mpsClientVariables" -}}
- name: annotations
  expression: object.metadata.?annotations.orValue({})
# A fraction of KAI, and slices of nos.
- name: fraction
  expression: "'gpu-fraction' in variables.annotations || 'gpu-memory' in variables.annotations"
- name: slices
  expression: >-
    {{ include "gso.someContainer" "r.matches('^nvidia[.]com/gpu-[1-9][0-9]*gb$')" }}
# The pod's own word counts. Its namespace's counts for pods that would share a GPU by MPS.
- name: client
  expression: >-
    'gpusharing.dev/mps-client' in variables.annotations
    ? variables.annotations['gpusharing.dev/mps-client'] == 'true'
    : (variables.fraction || variables.slices) && namespaceObject.metadata.?labels[?'gpusharing.dev/mps-client'].orValue('') == 'true'
- name: directory
  expression: "variables.annotations[?'gpusharing.dev/mps-pipe-directory'].orValue('{{ include "gso.mpsPipeDirectory" . }}')"
- name: directoryIsValid
  expression: variables.directory.matches('^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$')
{{- end }}
{{- /* Some container or init container has a limit of a resource `r` for which that is true. */}}
{{- define "gso.someContainer" -}}
[object.spec.containers, object.spec.?initContainers.orValue([])].exists(l, l.exists(c, c.?resources.?limits.orValue({}).exists(r, {{ . }})))
{{- end }}
{{- define "gso.mpsPipeDirectory" -}}{{ .Values.podMutation.pipeDirectory }}{{- end }}
{{- /* Never the cluster's own namespaces, the operator's and the operands'. */}}
{{- define "gso.mutatedNamespaces" -}}
matchExpressions:
- {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ toJson (concat (list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace) .Values.operandNamespaces .Values.kai.reservationNamespaces | uniq) }}}
{{- end }}
