"""What the server makes of a value by its schema: reading, pruning, defaulting, validating."""
