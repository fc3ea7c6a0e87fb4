"""Plugins for Pods: defaults, restrictions, scheduling."""
