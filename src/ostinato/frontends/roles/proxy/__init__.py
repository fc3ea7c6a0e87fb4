"""The proxy between a playbook and the API server."""
