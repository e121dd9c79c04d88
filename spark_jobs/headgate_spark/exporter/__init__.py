"""The exporter: what the driver knows of its queries, in Prometheus' text format on a port of its own."""
