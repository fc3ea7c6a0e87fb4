"""Errors of a simulation, other than those raised by its main coroutine."""

from __future__ import annotations


class SimulationError(RuntimeError):
    """The program used something that does not exist in a simulation: a socket, process, signal or thread."""


class DeadlockError(SimulationError):
    """No callback is ready and no timer is set, but the main coroutine is not done. The message lists the waits."""


class LivelockError(SimulationError):
    """The limit of virtual time or steps is reached, but the main coroutine is not done."""


class BackgroundError(ExceptionGroup[Exception]):
    """Unhandled errors of callbacks, and of tasks whose result was not retrieved."""
