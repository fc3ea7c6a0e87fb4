"""What survives a restart: the progress of handlers, the last handled state of objects, and where both are stored."""
