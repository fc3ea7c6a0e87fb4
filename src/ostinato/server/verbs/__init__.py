"""Verbs: what the server does on a resource, a module each; subresources and resources that are not stored in rooms of their own."""
