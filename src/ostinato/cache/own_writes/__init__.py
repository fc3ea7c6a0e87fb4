"""Own writes: how a controller reads what it wrote. See docs/concepts/cache.md."""
