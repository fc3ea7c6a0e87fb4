"""Own writes: cached reads that reflect the process's own writes. See docs/concepts/own-writes.md."""
