"""Hook: a loaded hook with its configuration, its program and the objects of its bindings; and the tasks of hooks."""

from __future__ import annotations

from typing import Literal

import msgspec

from ostinato.frontends.hooks.config.bindings import MAIN, HookConfig
from ostinato.frontends.hooks.contexts import Context, Rendering
from ostinato.frontends.hooks.monitor import Emit, Monitor
from ostinato.frontends.hooks.running.outcome import Program
from ostinato.frontends.kernel.snapshots.snapshot import Item
from ostinato.queue.limiters import TokenBucket
from ostinato.world import Clock

TaskType = Literal["run", "enable kubernetes bindings", "enable schedules"]


class Hook:
    def __init__(self, name: str, config: HookConfig, program: Program, *, path: str = "") -> None:
        """`path`: of its file; "" if it has none."""
        self.name = name
        self.config = config
        self.program = program
        self.path = path
        self.monitors: dict[str, Monitor] = {}  # by binding
        self.is_closed = False
        self._limiter: TokenBucket | None = None

    def prepare(self, clock: Clock, emit: Emit) -> None:
        """Create the monitors and the rate limiter."""
        for binding in self.config.kubernetes:
            self.monitors.setdefault(binding.name, Monitor(binding, emit))
        settings = self.config.settings
        if settings is not None and settings.interval > 0:
            self._limiter = TokenBucket(clock, 1 / settings.interval, settings.burst)

    def delay(self) -> float:
        """Return the seconds that the next run has to wait."""
        return 0.0 if self._limiter is None else self._limiter.when(self.name)

    def rendering(self, contexts: list[Context]) -> Rendering:
        return Rendering(contexts, self.items)

    def is_behind(self, context: Context) -> bool:
        """Whether a snapshot that a context includes has not seen its event yet."""
        monitor = self.monitors.get(context.binding)
        if context.change is None or context.item is None or monitor is None or monitor.kind is None:
            return False
        included = (self.monitors[name] for name in context.include_snapshots if name != context.binding)
        return any(each.is_behind(monitor.kind, context.change, context.item) for each in included)

    def items(self, binding: str) -> list[Item]:
        monitor = self.monitors.get(binding)
        return [] if monitor is None else monitor.items()

    async def close(self) -> None:
        """Stop its monitors; tasks that are queued are dropped."""
        self.is_closed = True
        for monitor in self.monitors.values():
            await monitor.stop()
        await self.program.close()


class Task(msgspec.Struct, kw_only=True, eq=False):
    """An entry of a queue.

    - `contexts`: of a run. `binding`: the name of that of the first.
    - `unlocks`: monitors whose events follow once the run has succeeded: it is their first list.
    - `executes`: False: the hook does not want the first list, so nothing is run.
    """

    hook: Hook
    type: TaskType = "run"
    contexts: list[Context] = []
    binding: str = ""
    queue: str = MAIN
    allow_failure: bool = False
    unlocks: list[Monitor] = []
    executes: bool = True
    queued_at: float = 0.0
    failures: int = 0
    last_error: str = ""

    @property
    def can_combine(self) -> bool:
        """Whether the tasks that follow can be combined with it: not a first list, unless it is of a group."""
        if self.type != "run" or not self.executes or self.hook.config.version == "v0":
            return False
        first = self.contexts[0]
        return not first.is_synchronization or bool(first.group)

    def __str__(self) -> str:
        described = f"{self.type} hook={self.hook.name}"
        if self.type == "run":
            described += f" binding={self.binding} contexts={len(self.contexts)}"
        if self.failures:
            described += f" failures={self.failures} error={self.last_error}"
        return described
