"""Events, of the core group and of events.k8s.io."""
