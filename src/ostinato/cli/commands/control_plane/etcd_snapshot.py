"""`ostinato snapshot` of a store in etcd."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from ostinato.cli.commands.control_plane.snapshot import size
from ostinato.etcd import EtcdClient, EtcdError, EtcdSettings
from ostinato.etcd.settings import DEFAULT_PREFIX
from ostinato.server.store.etcd.snapshots import snapshot
from ostinato.server.store.records import UnusableStore
from ostinato.world import World


def run(options: argparse.Namespace, settings: EtcdSettings) -> None:
    """Run the subcommand; UnusableStore if etcd or the snapshot cannot be used."""
    actions = {"save": _save, "restore": _restore, "status": _status}
    asyncio.run(_run(actions[options.action], options, settings))


def print_snapshot_status(path: Path, prefix: str = DEFAULT_PREFIX) -> None:
    """Check a snapshot, and print the facts about it."""
    _print_status(snapshot.snapshot_status(path.resolve(), prefix))


def _print_status(found: snapshot.Status) -> None:
    used = f" (in use by {', '.join(found.servers)})" if found.servers else ""
    _print(f"path:                 {found.place}{used}")
    _print("format:               etcd")
    _print(f"objects:              {found.objects}")
    _print(f"last resourceVersion: {found.revision}")
    _print(f"size:                 {size(found.size)}")
    _print("integrity:            ok")


async def _run(
    action: Callable[[EtcdClient, argparse.Namespace], Awaitable[None]],
    options: argparse.Namespace,
    settings: EtcdSettings,
) -> None:
    world = World.real()
    try:
        async with EtcdClient(settings, world) as client:
            await action(client, options)
    except (EtcdError, ValueError) as error:
        raise UnusableStore(f"{settings}: {error}") from error
    finally:
        world.executor.close()


async def _save(client: EtcdClient, options: argparse.Namespace) -> None:
    saved = await snapshot.save(client, Path(options.file), World.real().ids)
    _print(f"saved {saved.objects} objects at resourceVersion {saved.revision} to {saved.place} ({size(saved.size)})")


async def _restore(client: EtcdClient, options: argparse.Namespace) -> None:
    done = await snapshot.restore(client, Path(options.file))
    _print(
        f"restored {client.settings}: {done.written} objects written, {done.deleted} deleted; "
        f"resourceVersions continue from {done.revision}"
    )


async def _status(client: EtcdClient, options: argparse.Namespace) -> None:
    if options.file:
        print_snapshot_status(Path(options.file), client.settings.prefix)
    else:
        _print_status(await snapshot.status(client))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
