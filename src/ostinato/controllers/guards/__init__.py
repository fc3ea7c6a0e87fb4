"""Guards: detect hot loops, echoes of own writes, stuck deletions and blocked event loops."""
