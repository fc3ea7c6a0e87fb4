"""Activities: startup handlers, which run before everything else, and cleanup handlers, which run at the end.

- They are called in order, and retried like other handlers. A startup handler that fails for good stops the operator.
- A cleanup handler that fails for good is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any

from ostinato.controllers.result import TemporaryError, is_permanent
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.handlers.handler import ErrorsMode, Handler
from ostinato.frontends.handlers.running.calls import log_failure, selected
from ostinato.frontends.handlers.running.memory import Shared


class ActivityFailed(Exception):  # noqa: N818 - named after the event
    """A startup handler has failed for good."""


async def run_activities(handlers: Iterable[Handler], shared: Shared, dependencies: Dependencies) -> None:
    """Call the handlers, one after the other. Raises `ActivityFailed` for one that fails for good."""
    for handler in handlers:
        await _run(handler, shared, dependencies)


async def _run(handler: Handler, shared: Shared, dependencies: Dependencies) -> None:
    clock, options = dependencies.world.clock, handler.options
    started, retry = clock.now(), 0
    backoff = options.backoff
    if backoff is None:
        backoff = shared.settings.execution.default_backoff
    while True:
        now = clock.now()
        arguments = {
            "logger": logging.getLogger("ostinato.handlers"),
            "param": handler.param,
            "retry": retry,
            "started": started,
            "runtime": now - started,
            "settings": shared.settings,
            "memo": shared.memo,
        }
        try:
            await _call(handler, arguments, dependencies)
        except Exception as error:
            retry += 1
            delay = error.delay if isinstance(error, TemporaryError) and error.delay is not None else backoff
            late = options.timeout is not None and (clock.now() - started).total_seconds() + delay >= options.timeout
            tired = options.retries is not None and retry >= options.retries
            mode = ErrorsMode.TEMPORARY if isinstance(error, TemporaryError) else options.errors
            if mode is ErrorsMode.IGNORED:
                log_failure(dependencies.logger, handler, error, f"{handler.form} handler failed; ignored")
                return
            if late or tired or is_permanent(error) or mode is ErrorsMode.PERMANENT:
                raise ActivityFailed(
                    f"{handler.form} handler {handler.id} failed: {type(error).__name__}: {error}"
                ) from error
            dependencies.logger.warning(
                "%s handler failed, retrying handler=%s delay=%gs error=%s: %s",
                handler.form,
                handler.id,
                delay,
                type(error).__name__,
                error,
            )
            await clock.sleep(delay)
        else:
            return


async def _call(handler: Handler, arguments: dict[str, Any], dependencies: Dependencies) -> None:
    work = partial(handler.function, **selected(handler.function, arguments))
    if handler.is_async:
        await work()
    else:
        await dependencies.world.executor.run(work)
