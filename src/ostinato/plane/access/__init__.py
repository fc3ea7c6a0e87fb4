"""Identities and RBAC roles of the control plane's components, and the `cluster-info` ConfigMap for joining nodes."""
