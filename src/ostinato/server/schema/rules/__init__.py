"""Validation rules in CEL (`x-kubernetes-validations`)."""
