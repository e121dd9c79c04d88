module headgate.dev/tests/support/tools/monitoring

go 1.26.0

// For its CustomResourceDefinitions alone; nothing of it is built, so no `go mod tidy` here.
require github.com/prometheus-operator/prometheus-operator v0.93.0
