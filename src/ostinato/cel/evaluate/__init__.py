"""Evaluate CEL: a checked tree compiled to nested Python functions."""
