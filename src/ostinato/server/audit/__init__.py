"""Audit: which requests are recorded, what of them, and where the events go."""
