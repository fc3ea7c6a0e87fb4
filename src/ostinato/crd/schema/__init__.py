"""Structural schemas from the annotations and markers of Python classes."""
