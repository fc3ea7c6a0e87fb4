"""Admission of Pods: defaults, restrictions, and what other objects decide about them."""
