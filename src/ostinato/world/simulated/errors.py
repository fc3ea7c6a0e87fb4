"""How a simulation fails, other than by an error of the program's own main coroutine."""

from __future__ import annotations


class SimulationError(RuntimeError):
    """The program did what a simulated world does not have: a socket, a process, a signal, another thread."""


class DeadlockError(SimulationError):
    """Nothing can ever happen again, and the main coroutine is not done. The message says who waits where."""


class LivelockError(SimulationError):
    """The bound on virtual time or on steps is reached, and the main coroutine is not done."""


class BackgroundError(ExceptionGroup[Exception]):
    """Errors that nothing handled: of callbacks, and of tasks whose outcome nobody looked at."""
