"""Typed values: JSON values with the merge rules of their schema. Validate, compare, merge, remove, extract."""
