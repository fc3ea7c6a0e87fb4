"""Probes: the probe manager of a container, and the prober that runs commands, HTTP and TCP checks."""
