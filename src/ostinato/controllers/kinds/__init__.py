"""Controllers of many kinds: which kinds, and one controller for each while the server serves it."""
