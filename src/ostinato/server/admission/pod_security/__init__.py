"""PodSecurity: enforces the Pod Security Standards."""
