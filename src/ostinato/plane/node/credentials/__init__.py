"""Credentials of a node: cluster discovery with a bootstrap token, client and serving certificates."""
