"""`python -m bench`: the whole comparison (see bench.suite); `python -m bench NAME ...`: single benchmarks by name."""

import sys
from importlib import import_module

names = sys.argv[1:]
if names and not any(each.startswith("-") for each in names):
    del sys.argv[1:]  # the benchmarks have options of their own
    for name in names:
        import_module(f"bench.{name}").main()
else:
    from bench.suite.run import main

    main(names)
