"""Metrics: the registry of a manager, the Prometheus text format, metrics of the process."""
