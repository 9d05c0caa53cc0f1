// The CRDs of the Prometheus Operator, which the chart's ServiceMonitor and PrometheusRule are checked by. Only the
// module's files are used; nothing of it is built.
module gpusharing.dev/conformance/controlplane/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
