"""Type-check CEL: declarations from schemas, function signatures, rules for literals."""
