"""PodSecurity: the Pod security standards, demanded by namespaces."""
