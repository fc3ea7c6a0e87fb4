"""Debug pages: queues, hooks and snapshots, as text or, with the ending `.json`, as JSON.

| path | |
|---|---|
| `queue/list`, `queue/main` | the tasks of all queues, or of one |
| `hook/list` | the hooks, with their bindings |
| `hook/<name>/snapshots` | the objects of the bindings of a hook |
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.frontends.hooks.engine import Engine
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.task_queue import TaskQueue
from ostinato.http.server import HttpResponse


def debug_page(engine: Engine | None, path: str) -> HttpResponse:
    """Return a page. `path`: without the part that all have."""
    as_json = path.endswith(".json")
    value = None if engine is None else _value(engine, path.removesuffix(".json"))
    if value is None:
        pages = "queue/list, queue/NAME, hook/list, hook/NAME/snapshots"
        return HttpResponse(404, f"no such page; pages: {pages}\n".encode(), "text/plain")
    if as_json:
        return HttpResponse(200, msgspec.json.encode(value) + b"\n", "application/json")
    return HttpResponse(200, (_text(value) + "\n").encode(), "text/plain; charset=utf-8")


def _value(engine: Engine, path: str) -> Any:
    match path.split("/", 1):
        case ["queue", "list"]:
            return {name: _tasks(queue) for name, queue in sorted(engine.queues.items())}
        case ["queue", name] if name in engine.queues:
            return {name: _tasks(engine.queues[name])}
        case ["hook", "list"]:
            return {name: _bindings(hook) for name, hook in sorted(engine.hooks.items())}
        case ["hook", rest] if rest.endswith("/snapshots") and rest.removesuffix("/snapshots") in engine.hooks:
            hook = engine.hooks[rest.removesuffix("/snapshots")]
            return {name: [str(item.key) for item in each.peek()] for name, each in hook.monitors.items()}
    return None


def _tasks(queue: TaskQueue) -> list[str]:
    return [str(task) for task in queue.tasks()]


def _bindings(hook: Hook) -> list[str]:
    config = hook.config
    return [
        *([] if config.on_startup is None else [f"onStartup order={config.on_startup:g}"]),
        *(f"schedule name={each.name} crontab={each.crontab!r} queue={each.queue}" for each in config.schedules),
        *(f"kubernetes name={each.name} kind={each.kind} queue={each.queue}" for each in config.kubernetes),
        *(f"{'mutating' if each.mutating else 'validating'} name={each.name}" for each in config.admission),
        *(f"conversion name={each.name} crd={each.definition}" for each in config.conversions),
    ]


def _text(value: dict[str, list[str]]) -> str:
    lines = []
    for name, entries in value.items():
        lines.append(f"{name}: {len(entries)}")
        lines += [f"  {number}. {entry}" for number, entry in enumerate(entries, 1)]
    return "\n".join(lines)
