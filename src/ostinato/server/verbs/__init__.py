"""Verbs: what the server does on a resource, a module each; `subresources` and `unstored` hold the special ones."""
