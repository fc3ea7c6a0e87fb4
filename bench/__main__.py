"""Run the named benchmarks, or all that need only Python."""

import sys
from importlib import import_module

ALL = ("wire", "changes", "selectors", "queue", "cache")

for name in sys.argv[1:] or ALL:
    import_module(f"bench.{name}").main()
