"""Structural schemas: nodes, pruning, defaulting, list types, embedded resources."""
