"""Containers of a Pod: their state, restart policy, start and stop, termination messages and log files."""
