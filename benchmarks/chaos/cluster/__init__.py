"""Faults over a whole cluster: operator, control plane, Prometheus, nodes, pods, and the person at the terminal."""
