"""What a manager serves: health, metrics with further handlers, and a profiler."""
