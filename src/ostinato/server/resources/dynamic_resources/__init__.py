"""The resource.k8s.io group: devices and claims of them."""
