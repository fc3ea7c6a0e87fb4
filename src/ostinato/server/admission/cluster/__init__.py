"""Admission of namespaces, nodes, storage and networking objects."""
