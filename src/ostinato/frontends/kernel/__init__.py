"""What all front ends share: sync requests and results, the set applier, readiness, watches, recording."""
