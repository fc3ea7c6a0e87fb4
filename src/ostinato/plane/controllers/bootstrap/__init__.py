"""Controllers of bootstrap tokens, with which nodes join a cluster."""
