"""Events: recorders, aggregation into series and counts, and the spam filter."""
