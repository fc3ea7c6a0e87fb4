"""What a controller reports of its runs: to metrics, and to an observer."""
