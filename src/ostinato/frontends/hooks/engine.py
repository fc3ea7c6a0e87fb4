"""Engine: queues of tasks, each with one worker, and what puts tasks into them.

- At the start the queue `main` gets the runs of `onStartup`, in their order; then, for each hook by name, a task that
  starts its `kubernetes` bindings and puts the first lists in front of all others, and one that starts its schedules.
- A failed task stays at the head and blocks its queue; it is repeated after a delay that doubles, from 5 to 32 seconds.
- Tasks that directly follow for the same hook are combined into one run; contexts of one group become one.
- With `key: object` each object has a queue of its own; at most `CONCURRENT` of them run at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from ostinato.api.errors import APIError
from ostinato.cache.sync_tracker import SyncError
from ostinato.client.discovery.mapping import AmbiguousResource, NoSuchResource
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.hooks.config.bindings import MAIN, KubernetesBinding, ScheduleBinding
from ostinato.frontends.hooks.contexts import STARTUP, Context, Rendering, combined
from ostinato.frontends.hooks.hook import Hook, Task
from ostinato.frontends.hooks.metrics import HookMetrics, MetricError
from ostinato.frontends.hooks.running.outcome import HookFailed, Outcome
from ostinato.frontends.hooks.statistics import Statistics
from ostinato.frontends.hooks.task_queue import TaskQueue
from ostinato.frontends.kernel.cron import Ticker
from ostinato.frontends.kernel.operations.executor import OperationExecutor
from ostinato.frontends.kernel.operations.specification import OperationError
from ostinato.frontends.kernel.snapshots.filters import FilterError
from ostinato.frontends.kernel.snapshots.snapshot import ChangeType, Item
from ostinato.world.supervision import supervised

Decide = Callable[[Hook, Rendering, Mapping[str, str]], Awaitable[Outcome]]

CONCURRENT: Final = 8  # runs in queues of single objects
_SETTLE_SECONDS: Final = 0.25

_EXPECTED: Final = (
    APIError,
    AmbiguousResource,
    FilterError,
    HookFailed,
    MetricError,
    NoSuchResource,
    OperationError,
    SyncError,
    TransportError,
)


class Engine:
    def __init__(
        self, dependencies: Dependencies, metrics: HookMetrics, statistics: Statistics, decide: Decide | None = None
    ) -> None:
        """`decide`: runs the program of a hook. Defaults to doing just that."""
        self.hooks: dict[str, Hook] = {}
        self.queues: dict[str, TaskQueue] = {}
        self._dependencies = dependencies
        self._clock = dependencies.world.clock
        self._logger: logging.Logger = dependencies.logger
        self._metrics = metrics
        self._decide = decide or run_program
        self._statistics = statistics
        self._operations = OperationExecutor(dependencies.client.live)
        self._objects = asyncio.Semaphore(CONCURRENT)
        self._tickers: dict[Hook, list[asyncio.Task[None]]] = {}
        self._is_running = False
        self._has_failed = False

    @property
    def has_started(self) -> bool:
        """Whether the bindings of all hooks have started and their first tasks are done, or a task has failed."""
        return self._is_running and (self._has_failed or not any(map(len, self.queues.values())))

    # Hooks

    def prepare(self, hook: Hook) -> None:
        """Make a hook known, without running it."""
        self.hooks[hook.name] = hook
        hook.prepare(self._clock, lambda binding, change, item: self._on_event(hook, binding, change, item))

    async def start_monitors(self, hook: Hook) -> None:
        """Start the bindings whose objects its webhooks need. Raises if one cannot be started."""
        for monitor in hook.monitors.values():
            await monitor.start(self._dependencies.client.live, self._dependencies.informers)

    def start(self, hooks: Iterable[Hook]) -> None:
        """Queue the first tasks of hooks, which are known already."""
        added = sorted(hooks, key=lambda each: each.name)
        first = [each for each in added if each.config.on_startup is not None]
        for hook in sorted(first, key=lambda each: (each.config.on_startup or 0, each.name)):
            self._add(Task(hook=hook, contexts=[STARTUP], binding=STARTUP.binding))
        for hook in added:
            if hook.config.kubernetes:
                self._add(Task(hook=hook, type="enable kubernetes bindings"))
            if hook.config.schedules:
                self._add(Task(hook=hook, type="enable schedules"))

    async def remove(self, hook: Hook) -> None:
        """Stop a hook; its queued tasks are dropped when their turn comes."""
        if self.hooks.get(hook.name) is hook:
            del self.hooks[hook.name]
        for ticker in self._tickers.pop(hook, ()):
            ticker.cancel()
        await hook.close()
        self._statistics.snapshots = {k: n for k, n in self._statistics.snapshots.items() if k[0] != hook.name}

    async def run(self) -> None:
        """Work until cancelled. Then running hooks may finish; a second cancellation kills them."""
        self._is_running = True
        for queue in self.queues.values():
            queue.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._is_running = False
            for ticker in [each for tickers in self._tickers.values() for each in tickers]:
                ticker.cancel()
            await self._stop_queues()

    async def _stop_queues(self) -> None:
        queues = list(self.queues.values())
        try:
            await asyncio.gather(*(queue.stop() for queue in queues))
        except asyncio.CancelledError:
            await asyncio.gather(*(queue.kill() for queue in queues), return_exceptions=True)
            raise

    # What puts tasks into queues

    def _add(self, task: Task) -> None:
        task.queued_at = self._clock.monotonic()
        self._queue(task.queue).add(task)

    def _queue(self, name: str, *, transient: bool = False) -> TaskQueue:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = TaskQueue(name, self._clock, self._process, self._gone, transient=transient)
            if self._is_running:
                queue.start()
        return queue

    def _gone(self, queue: TaskQueue) -> None:
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
            self._statistics.queues.pop(queue.name, None)

    def _on_event(self, hook: Hook, binding: KubernetesBinding, change: ChangeType, item: Item) -> None:
        if hook.is_closed:
            return
        context = Context(
            source="kubernetes",
            binding=binding.name,
            group=binding.group,
            include_snapshots=binding.include_snapshots,
            change=change,
            item=item,
        )
        queue = binding.queue
        if binding.key == "object":
            queue = f"{binding.queue}/{item.key}"
            self._queue(queue, transient=True)
        self._add(
            Task(
                hook=hook,
                contexts=[context],
                binding=binding.name,
                queue=queue,
                allow_failure=binding.allow_failure,
            )
        )

    async def _tick(self, hook: Hook, binding: ScheduleBinding) -> None:
        context = Context(
            source="schedule",
            binding=binding.name,
            group=binding.group,
            include_snapshots=binding.include_snapshots,
        )
        async for _ in Ticker(binding.schedule, self._clock):
            task = Task(
                hook=hook,
                contexts=[context],
                binding=binding.name,
                queue=binding.queue,
                allow_failure=binding.allow_failure,
            )
            self._add(task)
        self._logger.warning("schedule has no next time hook=%s crontab=%s", hook.name, binding.crontab)

    # Processing

    async def _process(self, queue: TaskQueue, task: Task) -> float | None:
        """Process the head of a queue; return None if it is done, or the seconds until its next attempt."""
        hook = task.hook
        if hook.is_closed:
            return None
        try:
            match task.type:
                case "enable kubernetes bindings":
                    await self._enable(task, queue)
                case "enable schedules":
                    loop = asyncio.get_running_loop()
                    self._tickers[hook] = [
                        loop.create_task(
                            supervised(
                                f"schedule {each.name} of {hook.name}", partial(self._tick, hook, each), self._clock
                            )
                        )
                        for each in hook.config.schedules
                    ]
                case "run" if queue.transient:
                    async with self._objects:
                        await self._run(task, queue)
                case "run":
                    await self._run(task, queue)
        except Exception as error:  # noqa: BLE001 - reported, and repeated
            return self._failed(task, queue, error)
        finally:
            self._statistics.queues[queue.name] = len(queue) - 1
        return None

    def _failed(self, task: Task, queue: TaskQueue, error: Exception) -> float | None:
        expected = isinstance(error, _EXPECTED)
        labels = _labels(task, queue)
        options = task.hook.config.options
        task.failures += 1
        self._has_failed = True
        task.last_error = str(error) if expected else f"{type(error).__name__}: {error}"
        given_up = bool(options.attempts) and task.failures >= options.attempts
        if task.allow_failure or given_up:
            self._statistics.count("run_allowed_errors", labels)
            message = "hook failed; allowed to fail" if task.allow_failure else "hook failed; given up"
            self._logger.warning("%s %s error=%s", message, _shown(labels), task.last_error)
            self._unlock(task)
            return None
        delay = min(options.backoff * 2.0 ** min(task.failures - 1, 60), options.longest_backoff)
        name = "run_errors" if task.type == "run" else "enable_kubernetes_bindings_errors"
        self._statistics.count(name, labels)
        self._logger.error(
            "hook failed; retrying %s failures=%d delay=%gs error=%s",
            _shown(labels),
            task.failures,
            delay,
            task.last_error,
            exc_info=None if expected else error,
        )
        task.queued_at = self._clock.monotonic()
        return delay

    async def _enable(self, task: Task, queue: TaskQueue) -> None:
        hook = task.hook
        await self.start_monitors(hook)
        first: list[Task] = []
        for binding in hook.config.kubernetes:
            monitor = hook.monitors[binding.name]
            if hook.config.version == "v0":
                monitor.unlock()
                continue
            context = Context(
                source="kubernetes",
                binding=binding.name,
                group=binding.group,
                include_snapshots=binding.include_snapshots,
            )
            synchronization = Task(
                hook=hook,
                contexts=[context],
                binding=binding.name,
                queue=MAIN if binding.wait_for_synchronization else binding.queue,
                allow_failure=binding.allow_failure,
                unlocks=[monitor],
                executes=binding.on_synchronization,
                queued_at=self._clock.monotonic(),
            )
            if synchronization.queue == MAIN:
                first.append(synchronization)
            else:
                self._add(synchronization)
        queue.add_first(first)
        self._logger.info("kubernetes bindings enabled hook=%s bindings=%d", hook.name, len(hook.config.kubernetes))

    async def _run(self, task: Task, queue: TaskQueue) -> None:
        hook = task.hook
        if task.executes:
            await self._clock.sleep(hook.delay())
            if task.can_combine:
                following = queue.take_following(lambda other: other.hook is hook and other.type == "run")
                if following:
                    task.contexts = combined([*task.contexts, *(c for each in following for c in each.contexts)])
                    task.unlocks = [*task.unlocks, *(each for other in following for each in other.unlocks)]
            labels = _labels(task, queue)
            self._statistics.observe("task_wait_in_queue", self._clock.monotonic() - task.queued_at, labels)
            await self.execute(hook, task.contexts, queue.name, task.binding)
        self._unlock(task)

    async def execute(self, hook: Hook, contexts: list[Context], queue: str, binding: str) -> Outcome:
        """Run a hook, execute its operations, then apply its metrics. Raises HookFailed and the errors of these."""
        labels = {"hook": hook.name, "binding": binding, "queue": queue}
        fields = {**labels, "event": contexts[0].source, "task": "HookRun"}
        await self._settle(hook, contexts)
        rendering = hook.rendering(contexts)
        rendering.refresh()
        for name, monitor in hook.monitors.items():
            self._statistics.snapshots[hook.name, name] = len(monitor)
        started = self._clock.monotonic()
        try:
            outcome = await self._decide(hook, rendering, fields)
        except HookFailed as failure:
            try:
                await self._operations.execute(failure.operations)
            except OperationError as error:
                raise HookFailed(f"{failure}; {error}") from None
            raise
        finally:
            self._statistics.observe("run", self._clock.monotonic() - started, labels)
        if outcome.usage is not None:
            self._statistics.used(outcome.usage, labels)
        if outcome.operations:
            await self._operations.execute(outcome.operations)
        if outcome.metrics:
            self._metrics.apply(outcome.metrics, hook.name)
        self._statistics.count("run_success", labels)
        self._logger.debug("hook executed %s contexts=%d", _shown(labels), len(contexts))
        return outcome

    async def _settle(self, hook: Hook, contexts: list[Context]) -> None:
        """Wait a moment for included snapshots that have not seen the event yet: each has a watch of its own."""
        deadline = self._clock.monotonic() + _SETTLE_SECONDS
        while any(map(hook.is_behind, contexts)) and self._clock.monotonic() < deadline:
            await self._clock.sleep(_SETTLE_SECONDS / 50)

    def _unlock(self, task: Task) -> None:
        for monitor in task.unlocks:
            monitor.unlock()


async def run_program(hook: Hook, rendering: Rendering, fields: Mapping[str, str]) -> Outcome:
    """Run the program of a hook."""
    return await hook.program.run(rendering, fields)


def _labels(task: Task, queue: TaskQueue) -> dict[str, str]:
    name = queue.name.partition("/")[0] if queue.transient else queue.name
    return {"hook": task.hook.name, "binding": task.binding, "queue": name}


def _shown(labels: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items() if value)
