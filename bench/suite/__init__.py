"""The whole comparison: one table of ratios beside the peers, measured in one run.

    python -m bench [--quick] [--only ROW ...] [--peer-cache] [--merge]

- `table.py` declares the rows, `sections/` measures them. Each section runs in a process of its own: one that fails is
  reported, and the others go on. Processes that it leaves behind are ended.
- Contenders alternate: each round measures both. A row is the median of the ratios of its rounds.
- Results are JSON (`bench/results/latest.json`); `python -m bench.report` makes docs/performance.md and its plots.
"""
