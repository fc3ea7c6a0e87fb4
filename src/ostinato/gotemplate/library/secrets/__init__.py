"""Functions that make certificates, passwords and random texts."""
