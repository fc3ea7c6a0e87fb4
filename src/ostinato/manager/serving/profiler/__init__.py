"""Profiler endpoint of a manager."""
