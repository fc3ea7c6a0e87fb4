"""Validation functions that several API groups share."""
