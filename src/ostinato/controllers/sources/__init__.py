"""Sources, event handlers and predicates: which keys a controller enqueues, and when."""
