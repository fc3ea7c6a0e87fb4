"""Profiler: stacks of threads and tasks, sampled or at once, and the memory of the process. It costs nothing unused."""
