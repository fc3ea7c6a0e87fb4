"""Failed reconciles: tracebacks, log lines, Warning events and the Ready condition."""
