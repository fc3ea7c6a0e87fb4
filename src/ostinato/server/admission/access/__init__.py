"""Plugins that check permissions: roles, certificates, owner references, nodes."""
