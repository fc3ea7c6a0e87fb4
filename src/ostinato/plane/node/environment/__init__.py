"""Container environment: variables, downward API, expanded references, and what a container is launched with."""
