"""External systems: fakes of a user whose calls are points, too.

    explore(buckets_operator, external={"s3": FakeS3}, ...)

- The operator's factory receives the system by name: `def buckets_operator(s3): return [controller]`.
- A fake is made for each world and survives the processes of the operator. `state()` is compared at the end; without
  it, its attributes are.
- Faults: crash before and after a call, a call that fails (`ExternalUnavailable`), one that is done but not answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from ostinato.testing.explore.points import PointKind
from ostinato.testing.explore.world.replica import current

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run


class ExternalUnavailable(ConnectionError):  # noqa: N818
    """The external system did not answer; whether it has done it is not known."""


class External:
    """The system as the operator sees it."""

    def __init__(self, run: Run, name: str, fake: Any) -> None:
        self._run = run
        self._name = name
        self._fake = fake

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fake, name)
        if not callable(found):
            return found
        return self._asynchronous(name, found) if iscoroutinefunction(found) else self._blocking(name, found)

    def _asynchronous(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def call(*args: Any, **options: Any) -> Any:
            replica, faults = self._arrive(name, args)
            self._before(replica, faults)
            state = state_of_fake(self._fake)
            result = await function(*args, **options)
            self._after(replica, faults, f"{self._name}.{name}{args!r}", state)
            return result

        return call

    def _blocking(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            replica, faults = self._arrive(name, args)
            self._before(replica, faults)
            state = state_of_fake(self._fake)
            result = function(*args, **options)
            self._after(replica, faults, f"{self._name}.{name}{args!r}", state)
            return result

        return call

    def _arrive(self, name: str, args: tuple[Any, ...]) -> tuple[Replica, list[FaultKind]]:
        replica = current.get()
        if replica is None or replica.dead:
            raise ExternalUnavailable("the process was killed")
        shown = " ".join(self._run.objects.stable(each) for each in args if isinstance(each, str))
        point = self._run.arrive(PointKind.EXTERNAL, f"external {self._name}.{name} {shown}".rstrip())
        return replica, self._run.due(point)

    def _before(self, replica: Replica, faults: list[FaultKind]) -> None:
        for fault in faults:
            fault.before_call(self._run, replica)

    def _after(self, replica: Replica, faults: list[FaultKind], what: str, state: str) -> None:
        """`state`: of the fake before the call. One that changes nothing, such as a periodic check, is no activity."""
        self._run.note(replica.name, "external", what)
        if state_of_fake(self._fake) != state:
            self._run.active()
        for fault in faults:
            if fault.late:
                self._run.show(fault)
            fault.after_call(self._run, replica)


def state_of_fake(fake: Any) -> str:
    """Return what is compared of a fake."""
    state = getattr(fake, "state", None)
    return repr(state() if callable(state) else sorted(vars(fake).items()))
