"""Decisions: which plan runs, and why; without access to the cluster."""
