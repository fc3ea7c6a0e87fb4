"""Connections to node agents (kubelets), in this process and remote."""
