"""Verbs: one module per verb; `subresources` and `unstored` have the handlers of special resources."""
