{{- /* Serving certificates. The operator reads files of a Secret and has no right on any: an existing Secret
(`certificateSecret`), one of cert-manager (`certManager`), or one that the chart issues at the installation and keeps.
Templates pass (dict "root" $ "server" "webhook" or "metrics" "of" the values of that server). */}}
{{- define "gso.servingHost" -}}{{ include "gso.fullname" .root }}-{{ .server }}.{{ .root.Release.Namespace }}.svc{{- end }}
{{- define "gso.servingSecret" -}}{{ .of.certificateSecret | default (printf "%s-%s-tls" (include "gso.fullname" .root) .server) }}{{- end }}
{{- /* Puts the certificate that the chart issues into `issued` of the values, once for all templates: the Secret and the
webhook's caBundle must agree. What the cluster has is kept until less than a year of its five is left; the authority
before stays trusted then, because pods read a changed Secret a minute later. */}}
{{- define "gso.issue" -}}
{{- if not (hasKey .of "issued") }}
{{- $held := lookup "v1" "Secret" .root.Release.Namespace (include "gso.servingSecret" .) | default dict }}
{{- $end := dig "metadata" "annotations" "gpusharing.dev/certificate-end" "" $held }}
{{- $layout := "2006-01-02T15:04:05Z07:00" }}
{{- $enough := now | dateModify "8760h" | unixEpoch | int64 }}
{{- if and $end (gt (toDate $layout $end | unixEpoch | int64) $enough) }}
{{- $_ := set .of "issued" (dict "end" $end "ca" (get $held.data "ca.crt" | b64dec) "certificate" (get $held.data "tls.crt" | b64dec) "key" (get $held.data "tls.key" | b64dec)) }}
{{- else if lookup "v1" "Namespace" "" "kube-system" }}
{{- $host := include "gso.servingHost" . }}
{{- $authority := genCAWithKey (printf "%s authority" $host) 1825 (genPrivateKey "ecdsa") }}
{{- $leaf := genSignedCertWithKey $host nil (list $host) 1825 $authority (genPrivateKey "ecdsa") }}
{{- $former := regexFind "(?s)-----BEGIN.*?-----END CERTIFICATE-----\n" (dig "data" "ca.crt" "" $held | b64dec) }}
{{- $_ := set .of "issued" (dict "end" (dateInZone $layout (now | dateModify "43800h") "UTC") "ca" (printf "%s%s" $authority.Cert $former) "certificate" $leaf.Cert "key" $leaf.Key) }}
{{- else }}
{{- $value := ternary "admissionWebhook" "metrics.secure" (eq .server "webhook") }}
{{- fail (printf "%s.enabled: this rendering cannot read the cluster (helm template, a dry run, Argo CD), so the chart cannot issue a certificate and keep it. Set %s.certManager.enabled=true, or %s.certificateSecret to a Secret of yours" $value $value $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* The objects behind it: none for an existing Secret. */}}
{{- define "gso.certificate" -}}
{{- $name := printf "%s-%s" (include "gso.fullname" .root) .server }}
{{- if .of.certManager.enabled }}
---
{{- if not .of.certManager.issuerRef }}
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "gso.labels" .root | nindent 4 }}
spec:
  selfSigned: {}
---
{{- end }}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "gso.labels" .root | nindent 4 }}
spec:
  secretName: {{ include "gso.servingSecret" . }}
  dnsNames: [{{ include "gso.servingHost" . }}]
  privateKey: {algorithm: ECDSA, rotationPolicy: Always}
  issuerRef: {{- .of.certManager.issuerRef | default (dict "kind" "Issuer" "name" $name) | toYaml | nindent 4 }}
{{- else if not .of.certificateSecret }}
{{- include "gso.issue" . }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "gso.servingSecret" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "gso.labels" .root | nindent 4 }}
  annotations:
    gpusharing.dev/certificate-end: {{ .of.issued.end | quote }}
type: kubernetes.io/tls
data:
  ca.crt: {{ .of.issued.ca | b64enc }}
  tls.crt: {{ .of.issued.certificate | b64enc }}
  tls.key: {{ .of.issued.key | b64enc }}
{{- end }}
{{- end }}
