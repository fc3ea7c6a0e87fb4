"""`ostinato why KIND NAME`: the chain of causes of an object's last change, newest first.

Asks a running page. Without one, says what managedFields alone tell: who wrote which fields, and when.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ostinato.cli.commands.tree import Target, connected, resolved
from ostinato.cli.error import CommandError
from ostinato.cli.page.asking import asked
from ostinato.cli.page.plain_text import plain
from ostinato.cli.reporting import command_errors
from ostinato.client.views import Unstructured
from ostinato.manager.running import new_runner
from ostinato.page.answers.yaml_lines import owner_name
from ostinato.world import World

Json = dict[str, Any]
_MAX_FIELDS: Final = 8
_NO_PAGE: Final = (
    "No page reports the causes; these are the writers that the object records (managedFields), newest first.\n"
    "Start `ostinato up --page :0` or `ostinato run FILE --page :0` to see the chain of causes."
)


def why(target: Target) -> int:
    page = target.page()
    with new_runner() as runner, command_errors():
        found = runner.run(_by_page(target, page) if page is not None else _by_api(target))
    for line in found:
        sys.stdout.write(f"{plain(line)}\n")
    return 0


async def _by_page(target: Target, socket: Path) -> list[str]:
    world = World.real()
    try:
        async with asked(socket, world) as page:
            query = {"kind": target.kind, "namespace": target.namespace or "default", "name": target.name}
            ref = await page.get("find", query)
            chain = (await page.get("why", {name: str(value) for name, value in ref.items()}))["chain"]
    finally:
        world.executor.close()
    return [line for step in chain for line in step_lines(step)]


async def _by_api(target: Target) -> list[str]:
    world = World.real()
    try:
        async with connected(target, world) as client:
            await resolved(client, target)
            info = await client.mapper.find(target.kind)
            instance = await client.get(Unstructured(info.gvk, info), target.name)
    finally:
        world.executor.close()
    return [*_NO_PAGE.split("\n"), *owner_lines(instance)]


def step_lines(step: Json) -> Iterator[str]:
    """Return a step of a chain as lines."""
    match step["type"]:
        case "reconcile":
            run = step["reconcile"]
            because = ", ".join(run["reasons"]) or "no reason reported"
            took = f"{run['seconds'] * 1000:.0f} ms"
            yield f"{_time(run['at'])}  {run['controller']} reconciled {run['key']} ({took}): {because}"
            if run["error"]:
                yield f"              {run['result']}: {run['error']}"
            for each in step["also"]:
                yield f"              also because of: {_write(each)}"
        case "skipped":
            yield f"              … {step['n']} more steps …"
        case "reason":
            yield f"              {step['who']}: {step['why']}   ← the reason that it gave"
        case "unknown":
            if "write" in step:
                yield _write(step["write"])
            yield f"              {step['why']}"
        case "user":
            yield f"{_write(step['write'])}   ← {step['who']}"
        case _:
            yield _write(step["write"])


def _write(write: Json) -> str:
    ref = write["ref"]
    name = f"{ref['namespace']}/{ref['name']}" if ref["namespace"] else ref["name"]
    return f"{_time(write['at'])}  {ref['kind']} {name}: {write['summary']}   by {write['author']}"


def owner_lines(instance: Json) -> Iterator[str]:
    """Return who wrote which fields of an object, newest first."""
    entries = (instance.get("metadata") or {}).get("managedFields") or []
    if not entries:
        raise CommandError("the object has no managedFields; nothing tells who wrote it")
    for entry in sorted(entries, key=lambda each: str(each.get("time") or ""), reverse=True):
        fields = [*_fields(entry.get("fieldsV1") or {}, "")]
        more = f", {len(fields) - _MAX_FIELDS} more" if len(fields) > _MAX_FIELDS else ""
        yield f"{entry.get('time') or 'unknown time'}  {owner_name(entry)}: {', '.join(fields[:_MAX_FIELDS])}{more}"


def _fields(owned: Json, path: str) -> Iterator[str]:
    for name, inner in owned.items():
        if name.startswith("f:"):
            below = f"{path}.{name[2:]}" if path else name[2:]
            if isinstance(inner, dict) and inner and below.count(".") < 2:
                yield from _fields(inner, below)
            else:
                yield below


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S.%f")[:-3]
