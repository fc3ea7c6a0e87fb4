"""`ostinato tree KIND NAME`: an object and all that it owns, with readiness.

Asks a running page; without one, lists the objects of the namespace through the API.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.text.colour import colour_enabled
from ostinato.cli.error import CommandError
from ostinato.cli.page.asking import asked, find_page
from ostinato.cli.page.plain_text import plain
from ostinato.cli.reporting import command_errors
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.client.discovery.mapping import AmbiguousResource, NoSuchResource
from ostinato.client.http.transport import HttpTransport
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.manager.running import new_runner
from ostinato.page.facts import Tree
from ostinato.page.watching.collecting import collect
from ostinato.page.watching.trees import Filter, Owners, Trees
from ostinato.world import World

_NAMED: Final = 10  # kinds in a message
_COLOURS: Final = {"ready": "32", "progressing": "33", "failed": "31", "unknown": "2"}


class Target(NamedTuple):
    """What is asked for, and where. Without a kubeconfig or context, a running page is asked first."""

    kind: str
    name: str
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    socket: str | None
    state: Path

    def page(self) -> Path | None:
        return None if self.kubeconfig or self.context else find_page(self.socket, self.state)


def tree(target: Target) -> int:
    page = target.page()
    with new_runner() as runner, command_errors():
        found = runner.run(_by_page(target, page) if page is not None else _by_api(target))
    for line in lines(found, colour=colour_enabled(sys.stdout)):
        sys.stdout.write(f"{line}\n")
    return 0


async def _by_page(target: Target, socket: Path) -> Tree:
    world = World.real()
    try:
        async with asked(socket, world) as page:
            query = {"kind": target.kind, "namespace": target.namespace or "default", "name": target.name}
            uid = (await page.get("find", query))["uid"]
            roots = (await page.get("objects", {"root": uid}))["roots"]
    finally:
        world.executor.close()
    return _below(msgspec.convert(roots, list[Tree]), uid)


async def _by_api(target: Target) -> Tree:
    world = World.real()
    try:
        async with connected(target, world) as client:
            uid, namespace = await resolved(client, target)
            entries, unlisted = await collect(client, namespace, world.clock)
    finally:
        world.executor.close()
    if unlisted:
        sys.stderr.write(f"not shown, since they cannot be listed: {_some(unlisted)}\n")
    owners = Owners(entries)
    entry = owners.get(uid)
    if entry is None:
        raise CommandError(f"{target.kind} {target.name}: its kind cannot be listed")
    return await Trees(owners, Filter(root=uid), world.clock).build(entry)


def connected(target: Target, world: World) -> Client:
    """Return a client of the cluster of the kubeconfig."""
    config = Config.load(target.context, target.kubeconfig, namespace=target.namespace)
    return Client(HttpTransport(config, world), world=world, namespace=config.namespace, warn=_ignore)


def _ignore(_warning: str) -> None:
    """Ignore warnings of the server: deprecated kinds are listed on purpose."""


async def resolved(client: Client, target: Target) -> tuple[str, str]:
    """Return the uid of an object, and its namespace, "" if it is cluster-scoped. CommandError if there is none."""
    try:
        info = await client.mapper.find(target.kind)
        view = MetadataOf(Unstructured(info.gvk, info))
        found: Any = await client.get(view, target.name)
    except (NoSuchResource, AmbiguousResource, APIError) as error:
        raise CommandError(str(error)) from None
    return found.metadata.uid, found.metadata.namespace or ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _below(roots: list[Tree], uid: str) -> Tree:
    """Return the part of a tree that begins with an object."""
    waiting = [*roots]
    while waiting:
        each = waiting.pop()
        if each.ref.uid == uid:
            return each
        waiting += each.children
    raise CommandError("the object is gone")


def lines(found: Tree, *, colour: bool) -> Iterator[str]:
    """Return a tree as lines."""
    yield _line(found, colour=colour)
    yield from _children(found, "", colour=colour)


def _children(found: Tree, indent: str, *, colour: bool) -> Iterator[str]:
    for at, child in enumerate(found.children):
        is_last = at == len(found.children) - 1
        yield f"{indent}{'└─ ' if is_last else '├─ '}{_line(child, colour=colour)}"
        yield from _children(child, indent + ("   " if is_last else "│  "), colour=colour)


def _line(found: Tree, *, colour: bool) -> str:
    state = f"\x1b[{_COLOURS[found.ready]}m{found.ready}\x1b[0m" if colour else found.ready
    where = f" -n {found.ref.namespace}" if found.ref.namespace else ""
    message = f": {found.message}" if found.message else ""
    return f"{plain(f'{found.ref.kind} {found.ref.name}{where}')}  {state}{plain(message)}"
