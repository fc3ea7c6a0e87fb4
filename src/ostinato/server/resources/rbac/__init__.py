"""The rbac.authorization.k8s.io group: roles and role bindings."""
