"""Schema validation of values, with the messages of kube-openapi."""
