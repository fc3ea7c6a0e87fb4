"""The formats of a package. Each module returns the contents of its files by name; the result is deterministic."""
