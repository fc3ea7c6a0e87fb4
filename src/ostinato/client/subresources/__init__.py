"""Subresources: logs, exec, attach and port forwarding of Pods, scale, service account tokens."""
