"""docs/performance.md and its plots, made from the stored results: `python -m bench.report [--check]`."""
