"""Controller references: adoption and release of objects, and event handlers that enqueue their controllers."""
