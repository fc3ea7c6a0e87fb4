"""Schemas: decoding, pruning, defaulting and validation of objects."""
