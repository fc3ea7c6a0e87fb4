"""Typed values: a value beside the merge rules of its schema. Validate, compare, merge, reconcile."""
