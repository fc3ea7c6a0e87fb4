"""Plugins for namespaces, nodes, storage and networking objects."""
