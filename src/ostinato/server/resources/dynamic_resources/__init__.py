"""The resource.k8s.io group: dynamic resource allocation (devices and claims)."""
