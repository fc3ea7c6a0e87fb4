"""Wait for a condition; if it is not met in time, say what the last state was.

    await eventually(Deployment, "a")                                        # until it exists
    await eventually(Deployment, "a", lambda each: each.spec.replicas == 3)  # until the condition holds
    await eventually(Deployment, "a", gone=True)
    await eventually(lambda: client.list(Pod), timeout=60)                   # until it returns a true value

- A condition is checked again when objects have changed. It may raise: an error means that it does not hold yet.
- Returns the object, or the value of the condition.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.errors import NotFound
from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.client.views import Kind, view_of

if TYPE_CHECKING:
    from ostinato.testing.cluster import Cluster

T = TypeVar("T")

# A condition may depend on other things than objects. It is checked without a change after this many seconds, and later
# after this share of the time that has passed.
_RECHECK: Final = 0.05
_RECHECK_SHARE: Final = 0.05
_LONGEST: Final = 4000  # characters of an object in a message


class Eventually:
    """The function `eventually` of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @overload
    async def __call__(self, what: Callable[[], Awaitable[T]], /, *, timeout: float | None = None) -> T: ...  # noqa: ASYNC109
    @overload
    async def __call__(self, what: Callable[[], T], /, *, timeout: float | None = None) -> T: ...  # noqa: ASYNC109
    @overload
    async def __call__(
        self,
        what: Kind[T],
        name: str,
        condition: Callable[[T], object] | None = None,
        /,
        *,
        namespace: str = "",
        gone: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T: ...
    async def __call__(
        self,
        what: Any,
        name: str = "",
        condition: Callable[[Any], object] | None = None,
        /,
        *,
        namespace: str = "",
        gone: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the error shows the last state
    ) -> Any:
        """Wait until a condition holds; see the module.

        - `namespace`: of the object. Defaults to the client's.
        - `gone`: wait until the object does not exist. Defaults to False.
        - `timeout`: in seconds. Defaults to `Cluster.patience`.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        check: _Check = _Function(what)
        if name or not _is_function(what):
            if not name:
                raise TypeError("eventually() needs the name of the object, or a function; `lambda: ...` makes one")
            check = _Object(self._cluster, what, (name, namespace), condition, gone=gone)
        return await self._wait(check, self._cluster.patience if timeout is None else timeout)

    async def _wait(self, check: _Check, timeout: float) -> Any:  # noqa: ASYNC109
        __tracebackhide__ = True
        clock = self._cluster.world.clock
        await self._cluster.start()
        began = clock.monotonic()
        while True:
            changed = asyncio.get_running_loop().create_task(self._cluster.changed())  # before the check reads
            try:
                if await check.holds():
                    return check.value
                passed = clock.monotonic() - began
                if passed >= timeout:
                    raise AssertionError(self._message(check, timeout))
                wait = min(timeout - passed, max(_RECHECK, passed * _RECHECK_SHARE))
                pause = asyncio.get_running_loop().create_task(clock.sleep(wait))
                await asyncio.wait([changed, pause], return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
            finally:
                changed.cancel()

    def _message(self, check: _Check, timeout: float) -> str:
        lines = [f"not after {timeout:g} s: {check.what}", *check.last()]
        for manager in self._cluster.managers:
            lines += manager.unread_errors()
        return "\n".join(lines)


class _Check(ABC):
    what: str
    value: Any = None
    error: Exception | None = None

    async def holds(self) -> bool:
        try:
            return await self._holds()
        except Exception as error:  # noqa: BLE001 - checked again
            self.error = error
            return False

    @abstractmethod
    async def _holds(self) -> bool:
        """Whether the condition holds now; any error means that it does not."""

    def last(self) -> list[str]:
        """Return lines that describe the last state."""
        return [] if self.error is None else [f"last error: {type(self.error).__name__}: {self.error}"]


class _Function(_Check):
    def __init__(self, function: Callable[[], Any]) -> None:
        self.what = _described(function)
        self._function = function

    async def _holds(self) -> bool:
        self.value = self._function()
        if isawaitable(self.value):
            self.value = await self.value
        self.error = None
        return bool(self.value)

    def last(self) -> list[str]:
        return super().last() or [f"last value: {self.value!r}"]


class _Object(_Check):
    def __init__(
        self,
        cluster: Cluster,
        kind: Any,
        key: tuple[str, str],
        condition: Callable[[Any], object] | None,
        *,
        gone: bool,
    ) -> None:
        self._kind = kind
        self._name, namespace = key
        self._client = cluster.client.in_namespace(namespace) if namespace else cluster.client
        self._condition = condition
        self._gone = gone
        wanted = "is gone" if gone else "exists" if condition is None else f"fulfils {_described(condition)}"
        self.what = f"{view_of(kind).gvk.kind} {self._name} {wanted}"

    async def _holds(self) -> bool:
        try:
            self.value = await self._client.get(self._kind, self._name)
        except NotFound:
            self.value = None
            raise
        finally:
            self.error = None
        return not self._gone and (self._condition is None or bool(self._condition(self.value)))

    async def holds(self) -> bool:
        held = await super().holds()
        return held or (self._gone and isinstance(self.error, NotFound))

    def last(self) -> list[str]:
        if self.value is None:
            return super().last()
        text = _yaml(self.value)
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}..."
        return [*super().last(), "last state:", *(f"  {line}" for line in text.splitlines())]


def _yaml(instance: Any) -> str:
    """Return an object as YAML, without managedFields; models of other libraries as they print themselves."""
    if not isinstance(instance, dict | msgspec.Struct):
        return repr(instance)
    value = dict(instance if isinstance(instance, dict) else to_dict(instance))
    value["metadata"] = {field: each for field, each in value["metadata"].items() if field != "managedFields"}
    return encode_yaml(value).decode()


def _is_function(what: Any) -> bool:
    return callable(what) and not isinstance(what, type)


def _described(function: Callable[..., Any]) -> str:
    """Return where a function is defined, and its name unless it is a lambda."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    if code is None:
        return name
    return f"{name.rpartition('.')[2]} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"
