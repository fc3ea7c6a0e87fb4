"""Guards: detect hot loops, events of own writes, stuck deletions and blocked event loops."""
