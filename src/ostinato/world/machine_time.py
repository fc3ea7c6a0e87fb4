"""The machine's clocks, for programs that run without the package `ostinato`: standard library only.

The shim of the process runtime imports this file by itself. Everything else uses `Clock`, which a simulation replaces.
"""

from time import gmtime, monotonic, sleep, strftime, time_ns
from time import time as wall

__all__ = ["gmtime", "monotonic", "sleep", "strftime", "time_ns", "wall"]
