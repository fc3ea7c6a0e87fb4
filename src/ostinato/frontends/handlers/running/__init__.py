"""How handlers run: calls, the handling of a change, watch events, background tasks, indexes, startup and cleanup."""
