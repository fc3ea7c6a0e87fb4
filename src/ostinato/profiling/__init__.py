"""Profiles of the running process: stacks of threads and tasks, sampled or at once, and memory. Free while unused."""
