"""Faults that a cluster can deal to a correct operator. Each module has those of one origin."""
