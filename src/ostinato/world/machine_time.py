"""The machine's clocks, for programs that run without the package `ostinato`: standard library only.

The shim of the process runtime imports this file by itself. Everything else uses `Clock`, which a simulation replaces,
except for the processor time of other processes.
"""

from time import clock_gettime, gmtime, monotonic, sleep, strftime, time_ns
from time import time as wall

__all__ = ["gmtime", "monotonic", "processor_time", "sleep", "strftime", "time_ns", "wall"]


_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of Linux: the scheduler's nanoseconds of all threads, ended ones included


def processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has used; OSError if it has ended. Linux only."""
    return clock_gettime(~pid << 3 | _PROCESS_CLOCK)  # what clock_getcpuclockid(3) returns
